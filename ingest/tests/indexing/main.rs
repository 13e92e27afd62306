//! Recorded chains, indexed from nodes that are well, in trouble, or not to be believed.
//!
//! One program, since each would take a minute to compile.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod faults;
mod following;
mod full_disk;
mod histories;
mod lagging;
mod latency;
mod lies;
mod nfts;
mod odd_answers;
mod odd_traces;
mod pruned;
mod recordings;
mod resume;
mod rewind;
mod rich_list;
mod threads;
mod verify;
