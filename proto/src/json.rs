//! Protobuf to JSON transcoder: prints wire bytes as the chain's own REST does, from the chain's own descriptors.
//!
//! # Invariants
//!
//! - No input panics. The output is valid JSON of bounded size and depth.
//! - An error leaves the output unchanged.
//! - Values and the order of members are those of a node's REST; any difference is a bug of this module.
//!
//! # Structure
//!
//! ```text
//! descriptors --compile--> tables --+
//! wire bytes ----------- index -----+--> emit --> JSON bytes
//! ```
//!
//! [`Registry`] is built once per set of descriptors (`descriptor_patches`, `compile`, `table`). A message is then
//! printed in two steps (`emit`): its wire bytes are indexed field by field (`wire`), and the fields are written in
//! declaration order (`scalar`, `text`, `amount`, `time_json`, `inline_json`). No tree is built in between.
//!
//! Of a transaction, the way back is `tx_bytes`.
//!
//! The rules are those of cosmos gogoproto's `jsonpb` with original names and defaults emitted, applied to the Go
//! types that gogoproto generates: hence `null` for absent bytes, strings for 64-bit integers, and zero objects
//! for fields that are not nullable.

mod amount;
mod compile;
mod descriptor_patches;
mod emit;
mod error;
mod inline_json;
mod registry;
mod scalar;
mod signers;
mod table;
mod text;
mod time_json;
mod tx;
mod tx_bytes;
mod wire;

pub use emit::{MAX_DEPTH, MAX_JSON};
pub use error::Error;
pub use registry::Registry;
pub use signers::signers_named_by_message;
pub use tx::{write_message, write_opaque_tx, write_tx};
pub use tx_bytes::{Empty, tx_bytes};
