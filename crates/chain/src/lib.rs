//! Domain types of an indexed chain: parsers of node answers, and the JSON records derived from them.
//!
//! # Invariants
//!
//! Pure and synchronous: no IO, no storage, no clock. Parsers borrow from the answer's bytes, use memory bounded by
//! them, and return an error for malformed input; they never panic.

pub mod address;
pub mod bridge;
pub mod comet;
pub mod evm;
mod excerpt;
pub mod fee;
pub mod hash;
pub mod involved;
mod json;
pub mod key;
pub mod metadata;
pub mod movement;
pub mod nft;
pub mod packet;
pub mod record;
pub mod rendering;
mod sanitize;
mod serde_lenient;
pub mod signer;
pub mod time;
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
