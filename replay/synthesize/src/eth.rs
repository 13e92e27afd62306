//! Ethereum's hash of a transaction and the bloom filter of its logs.
//!
//! Independent of the indexer's own check, which this chain must pass.

use alloy::primitives::{Bloom, BloomInput, U256, keccak256};
use alloy::rlp::{Encodable as _, Header};

/// A transaction of the first type (EIP-155), without a fee.
#[derive(Debug, Clone)]
pub(crate) struct LegacyTx<'a> {
    pub(crate) nonce: u64,
    pub(crate) gas_limit: u64,
    /// Empty for a creation.
    pub(crate) to: &'a [u8],
    pub(crate) value: U256,
    pub(crate) input: &'a [u8],
    /// `r`, `s` and the parity of `y`.
    pub(crate) signature: &'a [u8],
}

impl LegacyTx<'_> {
    pub(crate) fn hash(&self, chain_id: u64) -> [u8; 32] {
        let mut items = Vec::with_capacity(self.input.len() + 256);
        self.nonce.encode(&mut items);
        U256::ZERO.encode(&mut items);
        self.gas_limit.encode(&mut items);
        self.to.encode(&mut items);
        self.value.encode(&mut items);
        self.input.encode(&mut items);
        let (numbers, parity) = self.signature.split_at(self.signature.len().min(64));
        let parity = parity.first().copied().unwrap_or_default();
        (u64::from(parity) + 35 + 2 * chain_id).encode(&mut items);
        for number in numbers.chunks(32) {
            U256::from_be_slice(number).encode(&mut items);
        }
        let mut list = Vec::with_capacity(items.len() + 4);
        Header { list: true, payload_length: items.len() }.encode(&mut list);
        list.extend_from_slice(&items);
        keccak256(&list).0
    }
}

/// The chain id of the EVM (`minievm:types/chain_config.go`).
pub(crate) fn chain_id(chain_id: &str) -> u64 {
    const MAX: u64 = 4_503_599_627_370_476;
    let mut first = [0; 8];
    first.copy_from_slice(&keccak256(chain_id.as_bytes())[..8]);
    u64::from_be_bytes(first) % MAX
}

/// Adds an address or a topic to a filter.
pub(crate) fn accrue(bloom: &mut Bloom, item: &[u8]) {
    bloom.accrue(BloomInput::Raw(item));
}

/// An address as a topic.
pub(crate) fn word(address: &[u8; 20]) -> [u8; 32] {
    let mut word = [0; 32];
    word[12..].copy_from_slice(address);
    word
}
