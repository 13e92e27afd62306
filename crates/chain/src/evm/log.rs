//! Transfer logs of ERC-721 in the `evm` events of a block: those of ERC-20 have their third value in the data.
//!
//! An `evm` event holds any number of attributes `log`; all of them count. Contracts choose the content of logs,
//! so logs that are not well-formed transfers are skipped. Event types and keys must match exactly: the logs of a
//! failed IBC callback remain under renamed types and keys.

use memchr::memmem::Finder;

use crate::comet::Event;
use crate::evm::Log;

/// keccak-256 of `Transfer(address,address,uint256)`, as the node writes it.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// The start of a log's member `data`; if a digit follows, the data is not empty.
const DATA: &str = r#""data":"0x"#;

/// A `Transfer` log of a contract.
pub(crate) struct Transfer {
    /// The contract that logged.
    pub(crate) contract: [u8; 20],
    /// Zero for a mint.
    pub(crate) from: [u8; 20],
    /// Zero for a burn.
    pub(crate) to: [u8; 20],
    /// The id of the token.
    pub(crate) value: [u8; 32],
}

/// Finds transfer logs in events of type `evm`. Nearly every log of a block passes through, so texts are searched
/// before they are parsed.
pub(crate) struct TransferLogs {
    topic: Finder<'static>,
    data: Finder<'static>,
}

impl TransferLogs {
    pub(crate) fn new() -> Self {
        Self { topic: Finder::new(TRANSFER), data: Finder::new(DATA) }
    }

    /// A transfer of ERC-721: four topics, the last one the token's id, and no data.
    pub(crate) fn token(&self, text: &str) -> Option<Transfer> {
        if !self.is_candidate(text) || self.has_data(text) {
            return None;
        }
        let log: Log<'_> = serde_json::from_str(text).ok()?;
        let [kind, from, to, token] = &log.topics[..] else { return None };
        let is_token = kind == TRANSFER && matches!(&*log.data, "" | "0x");
        is_token.then(|| transfer(&log.address, [from, to, token])).flatten()
    }

    fn is_candidate(&self, text: &str) -> bool {
        self.topic.find(text.as_bytes()).is_some()
    }

    fn has_data(&self, text: &str) -> bool {
        let at = self.data.find(text.as_bytes());
        at.and_then(|at| text.as_bytes().get(at + DATA.len())).is_some_and(u8::is_ascii_hexdigit)
    }
}

/// The texts of all logs in an event of type `evm`.
pub(crate) fn logs<'e>(event: &'e Event<'_>) -> impl Iterator<Item = &'e str> {
    event.attributes.iter().filter(|attribute| attribute.key == "log").map(|log| log.value.as_ref())
}

/// A transfer of `value`, by its words in hex.
pub(crate) fn transfer(contract: &str, [from, to, value]: [&str; 3]) -> Option<Transfer> {
    let address = |topic| {
        let topic: [u8; 32] = bytes(topic)?;
        let (zeros, address) = topic.split_first_chunk::<12>()?;
        (*zeros == [0; 12]).then(|| address.try_into().ok()).flatten()
    };
    Some(Transfer {
        contract: bytes(contract)?,
        from: address(from)?,
        to: address(to)?,
        value: bytes(value)?,
    })
}

/// `0x` and exactly so many bytes in hex.
pub(crate) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}
