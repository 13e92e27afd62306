//! The server over real sockets: responses and limits.
//!
//! One program, because linking each file as its own takes longer than running it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod answers;
mod bounds;
mod document;
mod handler;
mod health;
mod http2;
mod mounted;
mod mounts;
mod routes;
mod shares;
#[path = "../shop/mod.rs"]
mod shop;
#[path = "../socket/mod.rs"]
mod socket;
mod streams;
mod waiting;
mod websocket;
