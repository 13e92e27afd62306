//! The gRPC server over real sockets, read by the generated client: an index of recordings, its JSON replies next to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod indexed;
mod limits;
mod lists;
mod same_as_json;
mod services;
mod streams;
