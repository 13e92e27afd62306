//! The pages over recorded chains and over hostile data, without a socket.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod account;
mod activity;
mod block_data;
mod bridge;
mod contract;
mod dom;
mod elsewhere;
mod frame;
mod hostile;
mod known;
mod reverts;
mod routes;
mod searching;
mod site;
mod swaps;
mod transaction;
mod walk;
