//! Registry files: what loads, what is refused, and why.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod any_text;
mod check;
mod example;
mod flaws;
mod imports;
mod own;
