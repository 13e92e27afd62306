//! Fuzz targets and the properties that they check.
//!
//! A target is a function of any bytes that panics if a property is violated: a value that does not round-trip, a wrong
//! order, an exceeded limit, a server error. The targets of `libfuzzer/` call these functions. `tests/short.rs` runs
//! them on a bounded number of mutated seeds in every test run. `docs/src/fuzzing.md` describes long runs.
//!
//! | module | one job |
//! |---|---|
//! | [`cursor`], [`request`], [`json_rpc`], [`mod@etherscan`] | requests of clients to the indexer |
//! | [`abi`] | calls, by types that somebody gave |
//! | [`rows`] | keys and values of every table |
//! | [`events`], [`traces`], [`tx`], [`views`], [`metadata`], [`evm`] | answers of nodes, and what is rebuilt from them |
//! | [`memo`], [`registry_files`] | input of the routing service |
//! | [`recording_files`] | recordings that a replay node serves |
//! | [`input`], [`edit`], [`mutate`] | bytes as choices, bytes as edits of JSON, mutations of bytes |
//! | [`recorded`] | the recordings that provide seeds and rules |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a target panics at the first violation: that is its purpose"
)]

pub mod abi;
pub mod cursor;
pub mod edit;
pub mod etherscan;
pub mod events;
pub mod evm;
pub mod input;
pub mod json_rpc;
pub mod memo;
pub mod metadata;
pub mod mutate;
pub mod recorded;
pub mod recording_files;
pub mod registry_files;
pub mod request;
pub mod rows;
pub mod traces;
pub mod tx;
pub mod views;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its file in `libfuzzer/targets`.
    pub name: &'static str,
    /// Takes any bytes and panics if a property is violated. Returns whether the bytes were accepted: a run in which no
    /// input is accepted tests nothing.
    pub run: fn(&[u8]) -> bool,
    /// Seed inputs, small and of every form that the target accepts.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The dictionary: pieces of inputs that random mutations would not find.
    pub words: &'static [&'static str],
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "cursor", run: cursor::run, seeds: cursor::seeds, words: cursor::WORDS },
    Target { name: "query_string", run: request::run, seeds: request::seeds, words: request::WORDS },
    Target { name: "etherscan", run: etherscan::run, seeds: etherscan::seeds, words: etherscan::WORDS },
    Target { name: "abi", run: abi::run, seeds: abi::seeds, words: &[] },
    Target { name: "json_rpc", run: json_rpc::run, seeds: json_rpc::seeds, words: json_rpc::WORDS },
    Target { name: "rows", run: rows::run, seeds: rows::seeds, words: &[] },
    Target { name: "events", run: events::run, seeds: events::seeds, words: events::WORDS },
    Target { name: "traces", run: traces::run, seeds: traces::seeds, words: traces::WORDS },
    Target { name: "evm_header", run: evm::header, seeds: evm::header_seeds, words: evm::WORDS },
    Target { name: "evm_tx", run: evm::tx, seeds: evm::tx_seeds, words: evm::WORDS },
    Target { name: "tx", run: tx::run, seeds: tx::seeds, words: tx::WORDS },
    Target { name: "views", run: views::run, seeds: views::seeds, words: views::WORDS },
    Target { name: "metadata", run: metadata::run, seeds: metadata::seeds, words: metadata::WORDS },
    Target { name: "memo", run: memo::run, seeds: memo::seeds, words: memo::WORDS },
    Target {
        name: "registry",
        run: registry_files::run,
        seeds: registry_files::seeds,
        words: registry_files::WORDS,
    },
    Target {
        name: "replay",
        run: recording_files::run,
        seeds: recording_files::seeds,
        words: recording_files::WORDS,
    },
];

/// Runs the target `name`.
///
/// # Panics
/// If no target has that name.
pub fn run(name: &str, data: &[u8]) -> bool {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target in the list");
    (target.run)(data)
}
