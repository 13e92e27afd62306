//! A text with slots: the parts of a recorded text that differ in each copy of its transaction.

use memchr::memmem;

/// An account of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Recipient,
    /// The contract that the transaction creates.
    Contract,
}

/// A way of writing an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// 40 digits in lower case.
    Hex,
    /// 40 digits with the checksum of EIP-55.
    Checksum,
    /// Hex without leading zeros, as Move prints it.
    ShortHex,
    Bech32,
    Bytes,
    /// The account's store of the chain's token on Move, as [`Form::ShortHex`].
    Store,
}

/// The content of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Account(Role, Form),
    /// The sender's sequence, decimal.
    Sequence,
    /// The signature, base64.
    Signature,
    /// The result's data, base64.
    Data,
    /// The hash of the Ethereum transaction, of the EVM's block, and the height: hex without `0x`.
    EthHash,
    EthBlock,
    Height,
    /// The position in the block from 1, and the gas of the block up to the transaction: hex without `0x`.
    Position,
    GasSoFar,
    /// The bloom filter of the logs, hex without `0x`.
    Bloom,
    /// The number of an NFT: 64 hex digits, and [`WIDTH`] decimal digits.
    TokenWord,
    TokenText,
    /// The address of an NFT's object on Move: 32 bytes.
    Object(Form),
}

/// Digits of [`Slot::TokenText`].
pub(crate) const WIDTH: usize = 12;

/// The decimal text of an NFT's number.
pub(crate) fn token_text(token: u64) -> String {
    format!("{token:0WIDTH$}")
}

/// A text to look for, and its replacement by slots and constant parts.
#[derive(Debug, Clone)]
pub(crate) struct Needle {
    text: Vec<u8>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Constant(&'static str),
    Slot(Slot),
}

impl Needle {
    pub(crate) fn new(text: impl Into<Vec<u8>>, slot: Slot) -> Self {
        Self::with_parts(text, &[Part::Slot(slot)])
    }

    pub(crate) fn with_parts(text: impl Into<Vec<u8>>, parts: &[Part]) -> Self {
        Self { text: text.into(), parts: parts.to_vec() }
    }
}

/// Constant bytes with slots at offsets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    constant: Vec<u8>,
    slots: Vec<(usize, Slot)>,
}

impl Text {
    /// Cuts the needles out of a text. Of needles at one place the longest counts.
    pub(crate) fn cut(source: &[u8], needles: &[Needle]) -> Self {
        let mut found: Vec<(usize, &Needle)> = needles
            .iter()
            .filter(|needle| !needle.text.is_empty())
            .flat_map(|needle| memmem::find_iter(source, &needle.text).map(move |at| (at, needle)))
            .collect();
        found.sort_by_key(|(at, needle)| (*at, usize::MAX - needle.text.len()));
        let (mut text, mut rest) = (Self::default(), 0);
        for (at, needle) in found {
            if at < rest {
                continue;
            }
            text.constant.extend_from_slice(&source[rest..at]);
            for part in &needle.parts {
                match part {
                    Part::Constant(constant) => text.constant.extend_from_slice(constant.as_bytes()),
                    Part::Slot(slot) => text.slots.push((text.constant.len(), *slot)),
                }
            }
            rest = at + needle.text.len();
        }
        text.constant.extend_from_slice(&source[rest..]);
        text
    }

    /// The slot of a text with one slot.
    pub(crate) fn only_slot(&self) -> Option<Slot> {
        if let [(_, slot)] = self.slots[..] { Some(slot) } else { None }
    }

    /// Appends the text with the contents that `write` appends for each slot.
    pub(crate) fn render(&self, out: &mut Vec<u8>, mut write: impl FnMut(Slot, &mut Vec<u8>)) {
        let mut rest = 0;
        for (at, slot) in &self.slots {
            out.extend_from_slice(&self.constant[rest..*at]);
            write(*slot, out);
            rest = *at;
        }
        out.extend_from_slice(&self.constant[rest..]);
    }
}
