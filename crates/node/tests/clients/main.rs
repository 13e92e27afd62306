//! The clients over real sockets, against servers that play scripts and against recorded replies.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod chains;
mod comet;
mod cosmos;
mod evm;
mod feed;
mod grpc;
mod heads;
mod logged;
mod numbers;
mod outages;
mod pauses;
mod pool;
mod recorded;
mod scripted;
mod search;
mod state;
mod trust;
