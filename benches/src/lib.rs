//! Shared support of the bench targets: recorded chains and databases of them, clients, and the meters of this process.
//!
//! | module | holds |
//! |---|---|
//! | [`recorded`] | a recording played by a node of its own, ingested, and what of it there is to ask for |
//! | [`client`] | an HTTP client that costs little, and the closed loop |
//! | [`bare`] | the least that an answer over hyper can cost |
//! | [`meter`] | CPU by thread name, memory, load of the machine |
//! | [`pick`] | choices that look random and are the same in every run |
//! | [`report`] | figures as text |
//!
//! What must hold: a target measures over real sockets and files wherever the product has them, sets up once per
//! process, and makes the same choices in every run. Absolute figures swing with the machine's other work, so what is
//! compared is measured in the same run, in turns.

pub mod bare;
pub mod client;
pub mod meter;
pub mod pick;
pub mod recorded;
pub mod report;

/// Whether this process is to measure (`cargo bench`), rather than to list, to test or to be profiled: figures that
/// criterion does not know of are taken only then.
pub fn measuring() -> bool {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| args.iter().any(|arg| arg == name);
    given("--bench") && !["--list", "--test", "--profile-time"].into_iter().any(given)
}
