//! Route planner: finds how an asset gets from one chain to another.
//!
//! Pure and deterministic: the input is a registry, the latest chain facts, quotes and a request; the output is plans,
//! best first, or the reason why no plan exists. No clock and no IO: the same input gives the same plans, byte for
//! byte, because clients compare them.
//!
//! | module | one job |
//! |---|---|
//! | [`plan`](mod@plan) | public types: requests, plans, reasons |
//! | `find` | entry point: request to plans |
//! | `graph`, `biconnected` | graph of a registry's assets and its biconnected components, built once per registry |
//! | `request_graph` | that graph and the derived vouchers of one request |
//! | `conditions` | current state of an edge |
//! | `amount` | exact amount after a hop |
//! | `chaining` | hops that one signature covers |
//! | `search`, `heuristic` | A* search for the best paths, and its lower bound |
//! | `exact_out` | least amount in for an amount out |
//! | [`swap`] | swaps: the pools' arithmetic |
//! | `reason` | why no route exists |
//! | [`operation`], [`asset`], [`usd`] | JSON form of a plan |
//! | [`client_operations`] | operations that clients send back |

mod amount;
pub mod asset;
mod biconnected;
mod chaining;
pub mod client_operations;
mod conditions;
mod exact_out;
mod find;
mod graph;
mod heuristic;
pub mod operation;
pub mod plan;
mod reason;
mod request_graph;
mod search;
pub mod swap;
pub mod usd;

pub use asset::WireAsset;
pub use client_operations::{BadOperation, Mismatch, same_route};
pub use exact_out::{least_amount_in, same_value};
pub use find::plan;
pub use graph::Graph;
pub use operation::{Operation, OperationKind, operations};
pub use plan::{Hop, MAX_HOPS, NoRoute, Plan, Quotes, Request, Step, World};
