//! EVM transactions and their indexes.

use memchr::memmem;
use store::{List as _, TableSpec};

use crate::keys::{AccountKey, HashPrefix, Role};
use crate::payload::Payload;
use crate::postings::{Hashed, Postings};
use crate::records::Records;

store::tables! {
    /// EVM transactions' records (their receipts) as they are served, in chunks.
    ///
    /// | seq of the chunk's first record (8, BE) | → compressed records ([`crate::payload::Chunk`])
    pub table EvmTxs("evm_tx", 0x20, Append): u64 => Payload;
}

impl Records for EvmTxs {
    /// Receipts are shorter than transactions.
    const MAX_RECORDS: usize = 6;
}

/// Its list.
pub(crate) const LISTS: [&TableSpec; 1] = [AccountEvmTxs::SPEC];

impl Hashed for EvmTxs {
    type ByHash = EvmTxByHash;
}

store::tables! {
    /// EVM transactions by EVM hash, like [`crate::tx::TxByHash`].
    ///
    /// | first 8 bytes of the hash | → sequences with their numbers ([`Postings`])
    pub table EvmTxByHash("evm_tx_by_hash", 0x21, Hash): HashPrefix => Postings;

    /// EVM transactions of an account, oldest first.
    ///
    /// | account (1 + 20 or 32) | role (1) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list AccountEvmTxs("account_evm_tx", 0x22): (AccountKey, Role);
}

/// The member of receipts and logs with the EVM block's hash, up to its digits.
const BLOCK_HASH: &[u8] = br#""blockHash":"0x"#;
/// Digits of a hash.
const HASH_DIGITS: usize = 64;

/// Replaces the digits of each EVM block hash in records by zeros.
///
/// minievm computes this hash itself and no other hash covers it: a node that rebuilds its EVM index after a crash gives
/// the same blocks other hashes, because it adds up their gas in another way. So it is not part of a comparison.
pub fn blank_block_hashes(records: &mut [u8]) {
    let mut from = 0;
    while let Some(at) = memmem::find(&records[from..], BLOCK_HASH) {
        let digits = from + at + BLOCK_HASH.len();
        from = digits;
        if let Some(hash) = records.get_mut(digits..digits + HASH_DIGITS)
            && hash.iter().all(u8::is_ascii_hexdigit)
        {
            hash.fill(b'0');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_block_hashes_are_blanked() {
        let hash = "aB".repeat(32);
        let blank = "0".repeat(64);
        let record = |hash: &str| {
            format!(
                r#"{{"blockHash":"0x{hash}","logs":[{{"blockHash":"0x{hash}","data":"0xab"}},{{"blockHash":"0x12"}}]}}"#
            )
        };
        let mut records = record(&hash).into_bytes();
        blank_block_hashes(&mut records);
        assert_eq!(String::from_utf8(records).unwrap(), record(&blank));
        let mut cut = br#"{"blockHash":"0x12"#.to_vec();
        blank_block_hashes(&mut cut);
        assert_eq!(cut, br#"{"blockHash":"0x12"#);
    }
}
