//! The messages that a client signs.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod addresses;
mod any_plan;
mod conformance;
mod forwarding;
mod nfts;
mod omnichain;
mod op_hooks;
mod quotes;
mod recordings;
mod support;
mod swaps;
mod transactions;
mod worked_examples;
