//! Fuzz targets and the properties that they check.
//!
//! A target is a function of any bytes that stops where something does not hold: not only where there is a panic, but
//! where what was read is not written again as it was, where an order is not kept, a limit is passed or an answer is a
//! server's error. The targets of `libfuzzer/` call these functions; `tests/short.rs` runs them with a bounded number of
//! changed seeds, so that they are part of every test run. `docs/fuzzing.md` says how to run them for long.
//!
//! | module | one job |
//! |---|---|
//! | [`cursor`], [`request`] | what clients send to the indexer |
//! | [`rows`] | keys and values of every table |
//! | [`events`], [`traces`], [`tx`] | what nodes answer |
//! | [`memo`], [`registry_files`] | what the routing service reads |
//! | [`recording_files`] | what a replay node is played from |
//! | [`input`], [`edit`], [`mutate`] | bytes as choices, as changes of JSON; changed bytes |
//! | [`recorded`] | the recordings that seeds and rules are taken from |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a target stops at the first surprise: that is what it is for"
)]

pub mod cursor;
pub mod edit;
pub mod events;
pub mod input;
pub mod memo;
pub mod mutate;
pub mod recorded;
pub mod recording_files;
pub mod registry_files;
pub mod request;
pub mod rows;
pub mod traces;
pub mod tx;

/// Something that is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, that of the file in `libfuzzer/targets` too.
    pub name: &'static str,
    /// Takes any bytes and panics where something does not hold. Whether they were more than refused: a run of which nothing
    /// is says nothing.
    pub run: fn(&[u8]) -> bool,
    /// Inputs to begin with, small and of every form that the target knows.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Pieces that inputs are made of, to be put in where chance would not find them.
    pub words: &'static [&'static str],
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "cursor", run: cursor::run, seeds: cursor::seeds, words: cursor::WORDS },
    Target { name: "query_string", run: request::run, seeds: request::seeds, words: request::WORDS },
    Target { name: "rows", run: rows::run, seeds: rows::seeds, words: &[] },
    Target { name: "events", run: events::run, seeds: events::seeds, words: events::WORDS },
    Target { name: "traces", run: traces::run, seeds: traces::seeds, words: traces::WORDS },
    Target { name: "tx", run: tx::run, seeds: tx::seeds, words: tx::WORDS },
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
/// If there is none of that name.
pub fn run(name: &str, data: &[u8]) -> bool {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target in the list");
    (target.run)(data)
}
