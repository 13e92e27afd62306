//! Ethereum's JSON-RPC over the index, on an address of its own: HTTP and WebSocket.
//!
//! What the index has is read from it; calls that need state, a mempool or a trace are forwarded to a node if the operator
//! switches their group on ([`Group`]), and refused otherwise. Texts and codes of errors are those of go-ethereum, because
//! clients match them.
//!
//! The envelope is written here, over the server of `web`. Compared was jsonrpsee's server: it has no limits per address,
//! no rates, no times for slow clients and no lanes for expensive reads, and its errors have texts of their own.
//!
//! The same address has the pages of Otterscan, an explorer whose methods are among them, if there is a folder with them.
//!
//! # Invariants
//! * A request reads one snapshot, all calls of its batch together.
//! * No call reaches a node unless its group is switched on.
//! * What is over a limit or not indexed is an error, never a short result or `null`.

mod calls;
mod filters;
mod follower;
mod forward;
mod go_json;
mod log_query;
pub mod meter;
pub mod methods;
mod ots;
mod ots2;
mod otterscan;
mod params;
mod reads;
mod rpc_error;
mod server;
mod subscriptions;
mod unique_id;

pub use chain::evm::dialect::Dialect;
pub use query::evm::Frames;

pub use self::calls::MAX_RESPONSE;
pub use self::forward::{Forward, ForwardAt, Group};
pub use self::otterscan::{Otterscan, Unusable};
pub use self::server::{ENDPOINTS, EvmRpc, Index, MAX_BODY, Ready, Tip};
