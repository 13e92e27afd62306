//! Shared support of the bench targets: recorded chains and databases of them, clients, and the meters of this process.
//!
//! | module | contents |
//! |---|---|
//! | [`apart`] | a replay node in a process of its own |
//! | [`recorded`] | a recording, its replay node and database, and requests for its data |
//! | [`client`] | a minimal HTTP client, and the closed loop |
//! | [`bare`] | the minimal hyper server, for comparison |
//! | [`meter`] | CPU by thread name, memory, load of the machine |
//! | [`pick`] | seeded pseudo-random choices |
//! | [`report`] | figures as text |
//!
//! # Invariants
//!
//! - A target measures over real sockets and files wherever the product uses them.
//! - It sets up once per process, and makes the same choices in every run.
//! - Compared figures are measured in the same run, in turns, because absolute ones vary with the load of the machine.

use anyhow::{Context as _, Result};
use schema::index::Index;

/// That of the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub mod apart;
pub mod bare;
pub mod client;
pub mod meter;
pub mod pick;
pub mod recorded;
pub mod report;

/// Whether this process measures (`cargo bench`) and does not list, test or profile: figures outside of criterion are
/// measured only then.
pub fn measuring() -> bool {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| args.iter().any(|arg| arg == name);
    given("--bench") && !["--list", "--test", "--profile-time"].into_iter().any(given)
}

/// The optional indexes with these names, which commas separate.
pub fn indexes(names: &str) -> Result<Vec<&'static Index>> {
    let named = |name| schema::index::named(name).with_context(|| format!("no index `{name}`"));
    names.split(',').filter(|name| !name.is_empty()).map(named).collect()
}

/// The environment variable `name`, or `default`.
pub fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}
