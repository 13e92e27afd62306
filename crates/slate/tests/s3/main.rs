//! The engine on a real S3 interface: versitygw, whose program the variable `VERSITYGW` names (`make test-slate` builds
//! it). Each test has a gateway of its own, where it stops or replaces it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

#[path = "../../../store/tests/engine/demands.rs"]
mod demands;
#[path = "../engine/heights.rs"]
mod heights;

mod contract;
mod credentials;
mod faults;
mod gateway;
mod proxy;
mod writers;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use slate::{Engine, Options};

const CHAIN: &str = "chain-1";

/// An engine whose limits are short, so that an outage is an error soon.
static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| {
    let options = Options {
        read_timeout: Duration::from_secs(5),
        commit_timeout: Duration::from_secs(10),
        retries: 6,
        ..Options::default()
    };
    Engine::start(options).unwrap()
});
