//! The chains of tracked transfers: clients, limits, and the queries of one poll.

pub(crate) mod breaker;
pub(crate) mod clients;
mod executor_withdrawals;
pub mod known_chain;
pub(crate) mod limiter;
pub(crate) mod local_index;
pub(crate) mod queries;
pub(crate) mod query_error;
mod recent_blocks;
mod search;
