//! The engine contract on object storage in memory, and the guarantees that are the engine's own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

#[path = "../../../store/tests/engine/demands.rs"]
mod demands;
#[path = "../../../store/tests/engine/play.rs"]
mod play;

mod contract;
mod heights;
mod model;
mod one_view;
mod trees;
mod waiting;
mod writers;

use std::sync::{Arc, LazyLock};

use slate::object_store::memory::InMemory;
use slate::{Engine, Location, Options};

const CHAIN: &str = "chain-1";

/// One engine for all tests, as in a process with many chains.
static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| Engine::start(Options::default()).unwrap());

/// A new object store.
fn bucket() -> Location {
    Location::in_store("memory://test", Arc::new(InMemory::new()))
}

/// Where a test of the contract has its database.
fn new_place() -> (Location, String) {
    (bucket(), CHAIN.to_owned())
}
