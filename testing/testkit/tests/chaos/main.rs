//! Chaos test with all faults at random and combined: the final index equals that of an undisturbed run, and a client
//! that reads the API meanwhile gets only prefixes of true histories.
//!
//! A run is a function of its seed, except for the scheduling of threads. `CHAOS_SEED` is the first seed, `CHAOS_RUNS`
//! the number of runs, `CHAOS_SECONDS` the time after which no run begins. This repeats the run that printed 17:
//! `CHAOS_SEED=17 CHAOS_RUNS=1 cargo test -p testkit --test chaos`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops where something is not as it must be, and says where"
)]

mod dice;
mod reader;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use self::reader::Read;
use self::world::World;

/// Runs in every test run; `make soak` has more.
const RUNS: u64 = 12;

/// Timeout of a run, which takes seconds; a deadlock is a finding.
const LIFETIME: Duration = Duration::from_mins(5);

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_the_index_is_that_of_an_undisturbed_run() {
    // No output unless `RUST_LOG=info` is set.
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let (first, runs) = (number("CHAOS_SEED", 1), number("CHAOS_RUNS", RUNS));
    let (mut happened, mut pages, begun) = (BTreeMap::<&str, u64>::new(), 0, Instant::now());
    let time = Duration::from_secs(number("CHAOS_SECONDS", u64::MAX));
    let (mut lived, mut lagged) = (0, 0);
    for seed in (first..first + runs).take_while(|_| begun.elapsed() < time) {
        let started = Instant::now();
        let mut world = World::new(seed).await.unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        let outcome = tokio::time::timeout(LIFETIME, world.live_through()).await;
        let outcome = outcome.unwrap_or_else(|_| Err(anyhow::anyhow!("it does not end")));
        let story = world.story().join(", ");
        let read = outcome.unwrap_or_else(|error| panic!("seed {seed}: {error:#}\nafter: {story}"));
        let Read { pages: first, with_blocks, second } = read;
        eprintln!(
            "seed {seed}: {:.1} s, {first} first pages read, {with_blocks} with blocks, {second} second ones; {story}",
            started.elapsed().as_secs_f64()
        );
        pages += first + second;
        lagged += world.lagged();
        lived += 1;
        for event in world.kinds() {
            *happened.entry(event).or_default() += 1;
        }
    }
    eprintln!(
        "{lived} runs in {:.0} s, {pages} pages read, {lagged} answers of the state before; {happened:?}",
        begun.elapsed().as_secs_f64()
    );
    // One run may have no lag, but not all of several.
    assert!(lagged > 0 || lived < RUNS, "no state lagged");
}
