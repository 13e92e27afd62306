//! A replay node over sockets, and the recorder.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod clients;
mod ethereum;
mod forks;
mod node;
mod record;
mod recordings;
mod websocket;
