//! Finds how an asset gets from one chain to another.
//!
//! Pure and deterministic: a registry, what the chains said last, quotes and a request go in; plans come out, the best
//! first, or the reason why there is none. No clock, no IO: the same input gives the same plans, byte for byte, because
//! clients compare them.
//!
//! | module | one job |
//! |---|---|
//! | [`plan`](mod@plan) | requests, plans, reasons: the words |
//! | `find` | from a request to plans |
//! | `graph`, `blocks` | the assets of a registry and what connects them, once for each registry |
//! | `conditions` | what a connection is at this moment |
//! | `amount` | what is left behind a hop, to the unit |
//! | `chaining` | which hops one signature covers |
//! | `search`, `bound` | the best ways, and the least that is still to come |
//! | `reason` | what stands in the way |
//! | [`operation`], [`asset`], [`usd`] | a plan as clients see it |
//! | [`echo`] | what clients send back of it |

mod amount;
pub mod asset;
mod blocks;
mod bound;
mod chaining;
mod conditions;
pub mod echo;
mod find;
mod graph;
pub mod operation;
pub mod plan;
mod reason;
mod search;
pub mod usd;

pub use asset::WireAsset;
pub use echo::{BadOperation, Mismatch, same_route};
pub use find::plan;
pub use graph::Graph;
pub use operation::{Operation, OperationKind, operations};
pub use plan::{Hop, MAX_HOPS, NoRoute, Plan, Quotes, Request, Step, World};
