//! `CometBFT`'s Merkle roots: RFC 6962 over SHA-256.
//!
//! A leaf and an inner node are hashed with different first bytes, so that no leaf passes for a node; the list of
//! nothing has the root SHA-256 of nothing.

use sha2::{Digest, Sha256};

use crate::hash::Hash;

/// The root over hashed leaves; the left side is the largest power of two below their number.
///
/// The depth of the recursion is the logarithm of the number of leaves.
pub(crate) fn root(leaves: &[Hash]) -> Hash {
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

/// The hash of one leaf.
pub(crate) fn leaf(bytes: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(bytes).finalize().into()
}
