//! Tables, lists, ranked sets and transactions, on every engine.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod copies;
mod damage;
mod damaged_lists;
mod demands;
mod engines;
mod followers;
mod keys;
mod lists;
mod model;
mod play;
mod ranked;
mod recovery;
mod rocks;
mod txns;
mod undo;
