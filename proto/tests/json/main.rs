//! Descriptors, and messages as JSON.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod mutations;
mod recorded;
mod recordings;
mod reflection;
mod rules;
mod synthetic;
