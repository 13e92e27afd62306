//! The program as its users start it.
//!
//! One program, because linking takes longer than most tests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and prints what it cannot test"
)]

mod abi;
mod backup;
mod book;
mod bridge_l1;
mod chains;
mod config;
mod daemon;
mod damage;
mod demo;
mod export;
mod header_breaks;
mod init;
mod interrupted;
mod kill;
mod metrics;
mod optional_index;
mod packaging;
mod record;
mod route;
mod route_in_run;
mod secrets;
mod service;
mod support;
mod training;
mod upgrade;
mod usage;
mod verify;
