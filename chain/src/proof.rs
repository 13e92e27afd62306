//! What a block header proves about the answers of a node.
//!
//! The header commits to the block's transactions and, one block later, to the part of their results that all nodes
//! agree on (code, data, gas). An endpoint that mixes up heights, or lies about these, does not reproduce the roots.
//! Events and logs are covered by no header.

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::comet::{BlockAnswer, TxResult};
use crate::hash::{Hash, tx_hash};
use crate::wire::{push_bytes_field, push_varint_field};

/// Root over the transactions of a block (`header.data_hash`): leaves are the transaction hashes.
pub fn data_hash<T: AsRef<[u8]>>(raw_txs: &[T]) -> Hash {
    let leaves: Vec<Hash> = raw_txs.iter().map(|raw| leaf(&tx_hash(raw.as_ref()))).collect();
    root(&leaves)
}

/// Root over the results of a block, as the *next* header's `last_results_hash` has it.
pub fn results_hash(results: &[TxResult<'_>]) -> Result<Hash, base64::DecodeError> {
    let leaves: Result<Vec<Hash>, _> =
        results.iter().map(|result| Ok(leaf(&deterministic(result)?))).collect();
    Ok(root(&leaves?))
}

/// The transactions are not those that the header commits to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the transactions of block {height} do not hash to its data_hash: ask another endpoint")]
pub struct WrongTxs {
    /// Height of the block.
    pub height: u64,
}

/// Checks a block's transactions, decoded by [`BlockAnswer::raw_txs`], against its own header.
pub fn check_txs<T: AsRef<[u8]>>(block: &BlockAnswer<'_>, raw_txs: &[T]) -> Result<(), WrongTxs> {
    match block.header.data_hash {
        Some(expected) if expected != data_hash(raw_txs) => Err(WrongTxs { height: block.header.height }),
        _ => Ok(()),
    }
}

/// The protobuf of a result's fields that all nodes agree on (`CometBFT` `types.deterministicExecTxResult`).
fn deterministic(result: &TxResult<'_>) -> Result<Vec<u8>, base64::DecodeError> {
    let mut out = Vec::new();
    push_varint_field(&mut out, 1, u64::from(result.code));
    push_bytes_field(&mut out, 2, &result.data_bytes()?);
    // Protobuf writes an int64 as the varint of its two's complement.
    push_varint_field(&mut out, 5, result.gas_wanted.cast_unsigned());
    push_varint_field(&mut out, 6, result.gas_used.cast_unsigned());
    Ok(out)
}

/// RFC 6962 with `CometBFT`'s split: the left side is the largest power of two below the length.
fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Sha256::digest([]).into(),
        [one] => *one,
        many => {
            let (left, right) = many.split_at(many.len().next_power_of_two() / 2);
            Sha256::new()
                .chain_update([1])
                .chain_update(root(left))
                .chain_update(root(right))
                .finalize()
                .into()
        }
    }
}

fn leaf(bytes: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(bytes).finalize().into()
}
