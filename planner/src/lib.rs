//! Finds how an asset gets from one chain to another.
//!
//! Pure and deterministic: a registry, what the chains said last, quotes and a request go in; plans come out, the best
//! first, or the reason why there is none. No clock, no IO: the same input gives the same plans, byte for byte, because
//! clients compare them.

pub mod plan;

pub use plan::{Hop, NoRoute, Plan, Quotes, Request, Step, World};
