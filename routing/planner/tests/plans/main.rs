//! Plans on real and flawed registries.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod echo;
mod examples;
mod mainnet;
mod quotes;
mod reasons;
