//! A short run of every target: its seeds, and a bounded number of mutated seeds.
//!
//! `FUZZ_SEED` selects other mutations, `FUZZ_RUNS` their number. A failure names target and input; the input of a
//! fixed failure is added to [`FINDINGS`].

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails at the first violation")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fuzz::mutate::{Random, mutated};
use fuzz::{TARGETS, Target};

/// Maximum number of mutated seeds of a target.
const RUNS: u64 = 20_000;
/// Maximum duration of one target.
const TIME: Duration = Duration::from_secs(2);
/// Maximum length of a mutated seed.
const LONGEST: usize = 64 << 10;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn run(target: &Target, seed: u64, number: u64, input: &[u8]) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    outcome.unwrap_or_else(|_| {
        panic!("{} fails on input {number} of FUZZ_SEED={seed}: {}", target.name, hex::encode(input))
    })
}

/// Minimum number of accepted inputs of every hundred; with fewer the run tests nothing.
const MIN_ACCEPTED: u64 = 4;

fn short(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let (seed, runs) = (setting("FUZZ_SEED", 1), setting("FUZZ_RUNS", RUNS));
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{name} has seeds");
    let good = seeds.iter().filter(|input| run(target, seed, 0, input)).count();
    assert!(good * 2 >= seeds.len(), "{name}: {good} of {} seeds are accepted", seeds.len());
    let mut random = Random(seed);
    let begun = Instant::now();
    let (mut done, mut accepted) = (0, 0);
    for number in 1..=runs {
        if runs == RUNS && begun.elapsed() > TIME {
            break;
        }
        let (base, other) = (random.below(seeds.len()), random.below(seeds.len()));
        let mut input = mutated(&mut random, &seeds[base], &seeds[other], target.words);
        input.truncate(LONGEST);
        accepted += u64::from(run(target, seed, number, &input));
        done = number;
    }
    assert!(accepted * 100 >= done * MIN_ACCEPTED, "{name}: {accepted} of {done} mutated seeds are accepted");
}

macro_rules! targets {
    ($($test:ident => $name:literal),* $(,)?) => {
        $(#[test] fn $test() { short($name); })*

        #[test]
        fn every_target_has_a_short_run_and_a_file() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$($name),*]);
            let folder = testkit::root().join("testing/fuzz/libfuzzer/targets");
            let mut files: Vec<_> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            files.sort_unstable();
            let mut names = names;
            names.sort_unstable();
            assert_eq!(files, names);
        }
    };
}

targets! {
    changed_cursors_are_places_or_refused => "cursor",
    changed_requests_are_answered_or_refused => "query_string",
    any_form_of_etherscan_gets_an_envelope => "etherscan",
    any_call_has_few_arguments_or_none => "abi",
    any_body_of_json_rpc_gets_a_response_to_each_call => "json_rpc",
    changed_rows_are_rows_or_refused => "rows",
    changed_blocks_are_derived_or_asked_again => "events",
    changed_traces_are_derived_or_asked_again => "traces",
    changed_headers_are_those_of_their_hashes_or_refused => "evm_header",
    changed_records_are_transactions_of_their_hashes_or_refused => "evm_tx",
    changed_transactions_are_json_or_refused => "tx",
    changed_views_are_pools_that_give_no_more_than_they_have_or_refused => "views",
    changed_replies_about_tokens_are_short_and_visible_or_marked => "metadata",
    changed_memos_are_read_as_they_say => "memo",
    changed_registries_hold_together_or_are_refused => "registry",
    changed_recordings_answer_or_are_refused => "replay",
}

/// Inputs that failed in the past, by target, in hex.
const FINDINGS: &[(&str, &str)] = &[];

#[test]
fn fixed_failures_stay_fixed() {
    for (name, input) in FINDINGS {
        fuzz::run(name, &hex::decode(input).unwrap());
    }
}
