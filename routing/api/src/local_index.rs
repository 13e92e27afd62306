//! Balances of a chain that the same process indexes: its nodes need not be asked.

use chain::{Account, U256};
use futures_util::stream::BoxStream;

/// The index of this process.
pub trait LocalIndex: Send + Sync {
    /// What `account` has on the chain with the id `chain`, by denom. `None` if the chain is not indexed here, or if the index does not know
    /// all of it exactly: then a node is asked.
    fn balances(&self, chain: &str, account: Account) -> Option<Vec<(String, U256)>>;

    /// An item after movements of `account`, as long as there are any; `None` if the chain is not indexed here.
    fn changes(&self, chain: &str, account: Account) -> Option<BoxStream<'static, ()>>;
}
