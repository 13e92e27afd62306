//! Ids of subscriptions and filters.

use std::hash::{BuildHasher as _, RandomState};

/// A number of 128 bits that nobody can guess, in the form of go-ethereum (`rpc/subscription.go`): hex without leading zeros. The
/// keys of the standard library's hash maps are random.
pub(crate) fn unique_id() -> String {
    let random = || u128::from(RandomState::new().hash_one("id"));
    format!("{:#x}", random() << 64 | random())
}
