//! The routing service from the view of a client.
//!
//! One program, because each would take a minute to compile.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod amounts;
mod any_body;
mod balances;
mod check_online;
mod client;
mod facts;
mod health;
mod lists;
mod nfts;
mod openapi;
mod portfolio;
mod prices;
mod recorded_chains;
mod refusals;
mod reloads;
mod submit;
mod swap_pools;
mod swaps;
mod transport;
mod worked_examples;
mod wrapped;
