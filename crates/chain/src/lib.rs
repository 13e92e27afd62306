//! Domain types of an indexed chain: parsers of node answers, and the JSON records derived from them.
//!
//! # Invariants
//!
//! Pure and synchronous: no IO, no storage, no clock. Parsers borrow from the answer's bytes, use memory bounded by
//! them, and return an error for malformed input; they never panic.

pub mod abi;
pub mod address;
pub mod comet;
pub mod erc20;
mod eth_form;
pub mod eth_tx;
pub mod evm;
mod evm_data;
mod evm_log;
mod excerpt;
pub mod fee;
pub mod hash;
pub mod header;
pub mod involved;
mod json;
pub mod key;
pub mod light;
pub mod nft;
pub mod order;
pub mod proof;
pub mod record;
pub mod rendering;
mod sanitize;
mod serde_lenient;
pub mod signer;
pub mod time;
pub mod trace;
pub mod tx;
pub mod vm;
mod wire;

pub use address::{Account, AccountSet};
pub use alloy::primitives::U256;
pub use excerpt::{excerpt, truncated};
pub use sanitize::Text;
pub use serde_lenient::{HexBytes, JsonText};
pub use time::Timestamp;
pub use vm::Vm;
