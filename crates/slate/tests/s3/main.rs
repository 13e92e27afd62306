//! The engine on a real S3 interface: versitygw, whose program the variable `VERSITYGW` names (`make test-slate` builds
//! it). Each test has a gateway of its own, where it stops or replaces it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

#[path = "../engine/contract.rs"]
mod contract;
#[path = "../../../store/tests/engine/demands.rs"]
mod demands;
#[path = "../engine/heights.rs"]
mod heights;

mod credentials;
mod faults;
mod gateway;
mod proxy;
mod writers;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use slate::{Engine, Location, Options};

use crate::gateway::Gateway;

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

/// Where a test of the contract has its database: a chain of its own in the bucket of one gateway. Statics are not
/// dropped: the gateway ends with this process, by its own watch.
fn new_place() -> (Location, String) {
    static GATEWAY: LazyLock<Gateway> = LazyLock::new(Gateway::start);
    static CHAINS: AtomicU32 = AtomicU32::new(0);
    (GATEWAY.bucket(), format!("chain-{}", CHAINS.fetch_add(1, Ordering::Relaxed)))
}
