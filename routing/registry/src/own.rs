//! Our own form of a registry: TOML or JSON with the keys of `README.md`.
//!
//! Must hold: a key that is none, a value of a wrong type or outside its range is refused with file, line and key; two
//! files that hold the same parts say the same.

mod keys;
mod table;
mod tree;
mod variables;

pub(crate) use keys::{Import, NETWORKS, TRANSFER, read};
pub(crate) use variables::Environment;
