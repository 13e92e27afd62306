//! CometBFT's methods that read a node's index of transactions, over ours: `tx`, `tx_search`, `block_search`, by `GET` with parameters
//! in the URI and by `POST` with JSON-RPC.
//!
//! # Invariants
//! * A request reads one snapshot, all calls of its batch together, and no node.
//! * Replies are those of a node that has all blocks, errors included, or errors that say why they are not given.

mod methods;
mod params;
mod rpc_error;
mod server;

pub use self::server::{CometRpc, ENDPOINTS, Index, MAX_BODY, Ready};
