//! Native file format of a registry: TOML or JSON with the keys of `README.md`.
//!
//! # Invariants
//!
//! * An unknown key, a wrong type or a value out of range is an error with file, line and key.
//! * Two files with the same parts have the same meaning.

mod keys;
mod table;
mod tree;
mod variables;

pub(crate) use keys::{Import, NETWORKS, TRANSFER, read};
pub(crate) use variables::Environment;
