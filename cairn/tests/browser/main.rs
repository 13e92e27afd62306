//! The pages in a browser: Chromium without a window, driven over the DevTools protocol.
//!
//! It needs Chromium: `make test-needs` installs Debian's. Screenshots are written if the variable `SCREENSHOTS` names
//! a folder for them; `AXE` names the file of axe-core, which looks for faults of accessibility (`make tests` fetches it).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

#[path = "../program/support/mod.rs"]
mod support;

mod chromium;
mod devtools;
mod figures;
mod live;
mod otterscan;
mod pages;
mod tab;
mod walk;
