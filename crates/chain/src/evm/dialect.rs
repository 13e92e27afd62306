//! Receipts and logs as JSON-RPC prints them, made of stored receipts.

use memchr::memmem;

use super::{Log, Receipt, hex_quantity};
use crate::json;

/// How values are printed in which minievm (up to v1.2) deviates from Ethereum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As Ethereum does: `logIndex` is the position in the block, a stand-in has the chain's id.
    Fixed,
    /// As the node does: `logIndex` is the position in the transaction, the id of a stand-in is that of no chain.
    Node,
}

impl Dialect {
    /// Appends a receipt, from its stored record.
    pub fn write_receipt(self, out: &mut Vec<u8>, record: &[u8]) -> Result<(), serde_json::Error> {
        let start = out.len();
        match self {
            // Stored receipts have positions in the block.
            Self::Fixed => out.extend_from_slice(record),
            Self::Node => {
                let mut receipt: Receipt<'_> = serde_json::from_slice(record)?;
                for (ordinal, log) in (0..).zip(&mut receipt.logs) {
                    log.log_index = hex_quantity(ordinal);
                }
                json::push(out, &receipt);
            }
        }
        // A record names the receiver of a creation like the deployed indexer, by an empty text.
        if let Some(at) = memmem::rfind(&out[start..], br#","to":"","#) {
            let value = start + at + br#","to":"#.len();
            out.splice(value..value + 2, *b"null");
        }
        Ok(())
    }

    /// Appends the log of a stored receipt that has `ordinal` logs before it.
    pub fn write_log(self, out: &mut Vec<u8>, log: &Log<'_>, ordinal: u64) {
        match self {
            Self::Fixed => json::push(out, log),
            Self::Node => json::push(out, &Log { log_index: hex_quantity(ordinal), ..log.clone() }),
        }
    }
}
