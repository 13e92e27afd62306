//! Recorded chains against the deployed server and against themselves; the layers of the crates.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod balance_csv;
mod balances;
mod bridge;
mod bridge_claims;
mod bridge_index;
mod bridge_killed;
mod bridge_pair;
mod comet_rpc;
mod cosmos_evm;
mod etherscan;
mod evm_reads;
mod evm_rpc;
mod examples;
mod golden;
mod held;
mod layers;
mod ledger;
mod node_search;
mod old_channels;
mod ophost_paths;
mod oracles;
mod otterscan;
mod packets;
mod records;
mod streams;
mod supplies;
mod tokens;
mod transfer_csv;
mod transfer_filters;
mod transfers;
mod tx_search;
