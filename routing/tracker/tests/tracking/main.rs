//! Tracking: the rules in isolation, and every recorded transfer over replay nodes from its source transaction to its
//! end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there and then")]

mod bridge_cases;
mod difficult;
mod evm_calls;
mod expected;
mod goldens;
mod layer_zero;
mod life;
mod local;
mod order;
mod refusals;
mod silent;
mod states;
mod steps;
mod storage;
mod swaps;
mod unfollowed;
mod whole;
mod world;
