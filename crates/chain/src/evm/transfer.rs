//! Transfers of tokens in logs, in the forms of ERC-20, ERC-721 and ERC-1155.
//!
//! Contracts choose their logs: one that has not exactly the form of a standard is no transfer.

use alloy::primitives::{B256, U256};
use alloy::sol_types::{SolEvent as _, SolType as _, sol_data};

use super::Log;
use super::log::bytes;

mod signatures {
    alloy::sol! {
        event Transfer(address from, address to, uint256 value);
        event TransferSingle(address operator, address from, address to, uint256 id, uint256 value);
        event TransferBatch(address operator, address from, address to, uint256[] ids, uint256[] values);
    }
}

/// Bytes of a word.
const WORD: usize = 32;

/// The form of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// An amount.
    Erc20,
    /// A token.
    Erc721,
    /// An amount of a token.
    Erc1155,
}

/// A transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The sender; zero for a mint.
    pub from: [u8; 20],
    /// The recipient; zero for a burn.
    pub to: [u8; 20],
    /// The token; `None` for ERC-20.
    pub id: Option<U256>,
    /// The amount in base units; `None` for ERC-721.
    pub amount: Option<U256>,
}

impl Standard {
    /// The first topics of its transfers.
    pub fn events(self) -> Vec<[u8; 32]> {
        use signatures::{Transfer, TransferBatch, TransferSingle};
        match self {
            Self::Erc20 | Self::Erc721 => vec![Transfer::SIGNATURE_HASH.0],
            Self::Erc1155 => vec![TransferSingle::SIGNATURE_HASH.0, TransferBatch::SIGNATURE_HASH.0],
        }
    }

    /// The topics that have sender and recipient.
    pub fn places(self) -> [usize; 2] {
        if self == Self::Erc1155 { [2, 3] } else { [1, 2] }
    }

    /// The transfers in `log`; none if it has another form. A batch has one for each token.
    pub fn read(self, log: &Log<'_>) -> Vec<Transfer> {
        let found = read(log).filter(|(standard, _)| *standard == self);
        found.map(|(_, transfers)| transfers).unwrap_or_default()
    }
}

/// The transfers in a log with their standard; `None` if it has the form of none.
pub fn read(log: &Log<'_>) -> Option<(Standard, Vec<Transfer>)> {
    use signatures::{Transfer as Plain, TransferBatch, TransferSingle};
    let topics = log.topics.iter().map(|topic| bytes(topic)).collect::<Option<Vec<[u8; 32]>>>()?;
    let (event, topics) = topics.split_first()?;
    let data = hex::decode(log.data.strip_prefix("0x").unwrap_or(&log.data)).ok()?;
    let transfer = |[from, to]: [&[u8; 32]; 2], id, amount| {
        Some(Transfer { from: address(from)?, to: address(to)?, id, amount })
    };
    let one = |standard, transfer: Option<Transfer>| Some((standard, vec![transfer?]));
    let is = |known: B256| *event == known.0;
    match (topics, &data[..]) {
        ([from, to], amount) if is(Plain::SIGNATURE_HASH) && amount.len() == WORD => {
            one(Standard::Erc20, transfer([from, to], None, Some(U256::from_be_slice(amount))))
        }
        ([from, to, id], []) if is(Plain::SIGNATURE_HASH) => {
            one(Standard::Erc721, transfer([from, to], Some(U256::from_be_bytes(*id)), None))
        }
        ([_, from, to], values) if is(TransferSingle::SIGNATURE_HASH) && values.len() == 2 * WORD => {
            let (id, amount) = values.split_at(WORD);
            let number = |word| Some(U256::from_be_slice(word));
            one(Standard::Erc1155, transfer([from, to], number(id), number(amount)))
        }
        ([_, from, to], values) if is(TransferBatch::SIGNATURE_HASH) => {
            type Numbers = sol_data::Array<sol_data::Uint<256>>;
            let (ids, amounts) = <(Numbers, Numbers)>::abi_decode_params(values).ok()?;
            if ids.len() != amounts.len() {
                return None;
            }
            let all = ids.into_iter().zip(amounts).map(|(id, n)| transfer([from, to], Some(id), Some(n)));
            Some((Standard::Erc1155, all.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// An address as a topic.
pub fn topic(address: [u8; 20]) -> [u8; 32] {
    let mut topic = [0; 32];
    topic[12..].copy_from_slice(&address);
    topic
}

/// The address in a topic.
fn address(topic: &[u8; 32]) -> Option<[u8; 20]> {
    let (zeros, address) = topic.split_first_chunk::<12>()?;
    (*zeros == [0; 12]).then(|| address.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(topics: &[[u8; 32]], data: &[[u8; 32]]) -> Log<'static> {
        Log {
            topics: topics.iter().map(|topic| format!("0x{}", hex::encode(topic)).into()).collect(),
            data: format!("0x{}", hex::encode(data.concat())).into(),
            ..Log::default()
        }
    }

    fn word(number: u8) -> [u8; 32] {
        U256::from(number).to_be_bytes()
    }

    #[test]
    fn a_log_is_a_transfer_of_the_standard_whose_form_it_has() {
        let [transfer] = Standard::Erc20.events()[..] else { panic!() };
        let [single, batch] = Standard::Erc1155.events()[..] else { panic!() };
        let (from, to) = (topic([1; 20]), topic([2; 20]));
        let erc20 = log(&[transfer, from, to], &[word(7)]);
        let erc721 = log(&[transfer, from, to, word(8)], &[]);
        let one = log(&[single, topic([9; 20]), from, to], &[word(8), word(7)]);
        let two = [word(64), word(160), word(2), word(3), word(4), word(2), word(5), word(6)];
        let several = log(&[batch, topic([9; 20]), from, to], &two);
        let read = |standard: Standard, log| -> Vec<(Option<u8>, Option<u8>)> {
            let small = |number: Option<U256>| number.map(|number| number.to());
            let transfers = standard.read(log);
            assert!(transfers.iter().all(|it| (it.from, it.to) == ([1; 20], [2; 20])));
            transfers.iter().map(|it| (small(it.id), small(it.amount))).collect()
        };
        assert_eq!(read(Standard::Erc20, &erc20), [(None, Some(7))]);
        assert_eq!(read(Standard::Erc721, &erc721), [(Some(8), None)]);
        assert_eq!(read(Standard::Erc1155, &one), [(Some(8), Some(7))]);
        assert_eq!(read(Standard::Erc1155, &several), [(Some(3), Some(5)), (Some(4), Some(6))]);
        for (standard, log) in [
            (Standard::Erc721, &erc20),
            (Standard::Erc20, &erc721),
            (Standard::Erc1155, &erc721),
            (Standard::Erc20, &one),
        ] {
            assert_eq!(standard.read(log), []);
        }
        // More amounts than tokens; an offset behind the end.
        let uneven = [word(64), word(160), word(2), word(3), word(4), word(1), word(5)];
        assert_eq!(Standard::Erc1155.read(&log(&[batch, from, from, to], &uneven)), []);
        assert_eq!(Standard::Erc1155.read(&log(&[batch, from, from, to], &[[0xff; 32], word(64)])), []);
        assert_eq!(Standard::Erc20.read(&log(&[transfer, [7; 32], to], &[word(7)])), []);
    }
}
