//! Indexing of recorded chains from healthy, failing and dishonest nodes.
//!
//! One test program, because each takes a minute to link.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod dictionaries;
mod false_answers;
mod faults;
mod following;
mod full_disk;
mod histories;
mod lagging;
mod latency;
mod malformed_answers;
mod malformed_traces;
mod metadata;
mod nfts;
mod pruned;
mod recordings;
mod resume;
mod rewind;
mod rich_list;
mod synthesized;
mod threads;
mod verify;
