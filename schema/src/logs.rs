//! The optional index `logs`: EVM transactions by what their logs contain.

use chain::evm::{Log, Receipt};
use store::List as _;
use twox_hash::XxHash3_64;

use crate::Error;
use crate::evm_tx::EvmTxs;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::records::damaged;

/// The index.
pub const LOGS: Index = Index {
    name: "logs",
    version: 1,
    tables: &[LogTxs::SPEC],
    replies: &[],
    input: Input::Records,
    needs_evm: true,
    rows,
};

store::tables! {
    /// EVM transactions that have a log with a certain content, oldest first, each once. Contents are hashed, and hashes may
    /// collide: a reader compares the logs of a transaction with what it looks for.
    ///
    /// | fingerprint of the content (8) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list LogTxs("log_tx", 0x24): Fingerprint;
}

/// XXH3-64, big-endian, of a [`Content`]: its number, and its bytes.
pub type Fingerprint = [u8; 8];

/// A content of logs by which transactions are listed.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Number 0: a log of this contract.
    Address(&'a [u8; 20]),
    /// Number 1: a log of this contract with this first topic.
    Event(&'a [u8; 20], &'a [u8; 32]),
    /// Number 2 to 5: a log with this topic at this place, from 0.
    Topic(usize, &'a [u8; 32]),
}

/// The list of transactions with this content.
pub fn fingerprint(content: Content<'_>) -> Fingerprint {
    let mut bytes = [0; 53];
    let len = match content {
        Content::Address(address) => {
            bytes[1..21].copy_from_slice(address);
            21
        }
        Content::Event(address, topic) => {
            bytes[0] = 1;
            bytes[1..21].copy_from_slice(address);
            bytes[21..].copy_from_slice(topic);
            53
        }
        Content::Topic(place, topic) => {
            // A log has at most four topics.
            bytes[0] = 2 + u8::try_from(place).unwrap_or(u8::MAX - 2);
            bytes[1..33].copy_from_slice(topic);
            33
        }
    };
    XxHash3_64::oneshot(&bytes[..len]).to_be_bytes()
}

/// Topics of a log, of which each place has a list.
pub const MAX_TOPICS: usize = 4;

/// Adds the fingerprints of what `log` contains. A member that is not well-formed is in no list.
pub fn fingerprints(log: &Log<'_>, out: &mut Vec<Fingerprint>) {
    let address = log.address_bytes();
    out.extend(address.as_ref().map(|address| fingerprint(Content::Address(address))));
    for (place, topic) in log.topics.iter().take(MAX_TOPICS).enumerate() {
        let Some(topic) = Log::topic_bytes(topic) else { continue };
        out.push(fingerprint(Content::Topic(place, &topic)));
        if let (0, Some(address)) = (place, &address) {
            out.push(fingerprint(Content::Event(address, &topic)));
        }
    }
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let mut owners = Vec::new();
    block.evm_txs(|seq, record| {
        let receipt: Receipt<'_> =
            serde_json::from_slice(record).map_err(|error| damaged::<EvmTxs>(seq, &error.to_string()))?;
        owners.clear();
        receipt.logs.iter().for_each(|log| fingerprints(log, &mut owners));
        owners.sort_unstable();
        owners.dedup();
        owners.iter().try_for_each(|owner| rows.push::<LogTxs>(owner, seq))
    })
}
