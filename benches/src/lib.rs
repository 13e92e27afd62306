//! Shared support of the bench targets: recorded chains and databases of them, clients, and the meters of this process.
//!
//! | module | contents |
//! |---|---|
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

/// That of the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
