//! Random factors of a batch signature verification, derived from the batch (Fiat-Shamir).
//!
//! Batch verification is sound only if no one can choose signatures after the factors are known. A hash of all keys,
//! signatures and messages ensures that, needs no source of randomness, and makes every run deterministic.

use k256::elliptic_curve::rand_core::{CryptoRng, Error, RngCore};
use sha2::{Digest, Sha256};

use crate::hash::Hash;

/// Hash state over the signatures of a batch.
pub(super) struct FactorSeed(Sha256);

/// Deterministic generator of factors: hashes of the batch hash and a counter.
pub(super) struct BatchFactors {
    seed: Hash,
    counter: u64,
    block: Hash,
    used: usize,
}

impl FactorSeed {
    /// A batch of signatures under one block.
    pub(super) fn new(block: &Hash) -> Self {
        Self(Sha256::new().chain_update(b"cairn batch of signatures").chain_update(block))
    }

    /// Adds one signature. Only its last part has variable length, so its encoding is unambiguous.
    pub(super) fn absorb(&mut self, key: &[u8; 32], signature: &[u8; 64], message: &[u8]) {
        self.0.update(key);
        self.0.update(signature);
        self.0.update(Sha256::digest(message));
    }

    /// The factors.
    pub(super) fn finish(self) -> BatchFactors {
        BatchFactors { seed: self.0.finalize().into(), counter: 0, block: [0; 32], used: 32 }
    }
}

impl RngCore for BatchFactors {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        for byte in out {
            if self.used == self.block.len() {
                let next = Sha256::new().chain_update(self.seed).chain_update(self.counter.to_le_bytes());
                self.block = next.finalize().into();
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(out);
        Ok(())
    }
}

impl CryptoRng for BatchFactors {}
