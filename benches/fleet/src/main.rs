//! A model of many chains whose databases are in one object store: requests to the store, caches, servers, cost, and the
//! first limit that is reached. `cargo run --release --bin fleet` writes the tables of `docs/scale.md`.
//!
//! | module | contents |
//! |---|---|
//! | [`inputs`] | what was measured, list prices and scenarios, from TOML files |
//! | [`engine`] | one writer and one reader of one chain: requests and times |
//! | [`demand`] | the chains of a scenario: size, blocks and requests of each |
//! | [`cache`] | hit ratio of a cache with LRU eviction: simulated, and by Che's approximation |
//! | [`placement`] | chains on servers, by rendezvous hashing |
//! | [`prediction`] | a scenario: servers, utilisation, cost |
//! | [`document`] | the tables of `docs/scale.md` |
//!
//! # Invariants
//!
//! - The same inputs give the same document: no clock, no random numbers without a fixed seed.
//! - No crate of the engine is imported: the model knows it by its figures only, and builds in seconds.

use std::fs;

use anyhow::Context as _;

mod cache;
mod demand;
mod document;
mod engine;
mod inputs;
mod placement;
mod prediction;
#[cfg(test)]
mod tests;

fn main() -> anyhow::Result<()> {
    let path = inputs::root().join(document::PATH);
    let name = path.display();
    let before = fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
    let (measured, model) = inputs::read()?;
    let after = document::replace(&before, &document::tables(&measured, &model)?)?;
    fs::write(&path, after).with_context(|| format!("writing {name}"))
}
