//! Indexing of recorded chains from healthy, failing and dishonest nodes.
//!
//! One test program, because each takes a minute to link.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod call_errors;
mod cosmos_evm;
mod dictionaries;
mod evm_indexes;
mod false_answers;
mod faults;
mod following;
mod full_disk;
mod histories;
mod lagging;
mod latency;
mod ledger;
mod malformed_answers;
mod malformed_traces;
mod metadata;
mod nfts;
mod node_versions;
mod optional;
mod packets;
mod planted;
mod pruned;
mod reconcile;
mod recordings;
mod resume;
mod rewind;
mod rich_list;
mod spoiled;
mod synthesized;
mod threads;
mod token_logs;
mod tokens;
mod verify;
