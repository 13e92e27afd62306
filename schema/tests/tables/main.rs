//! The tables, their documentation and their format.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod activity_rows;
mod bridge_rows;
mod doc;
mod format;
