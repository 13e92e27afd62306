//! Registry files: accepted ones, refused ones, and the reasons.
//!
//! One program, because linking takes longer than most tests.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod any_text;
mod broken;
mod check;
mod derived;
mod example;
mod flaws;
mod imports;
mod own;
