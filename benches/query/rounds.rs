//! Responses per second and CPU per response, compared with a bare hyper server.
//!
//! # Invariants
//!
//! - Both servers have the same number of threads, requests and connections, the same client, and a turn in every
//!   round.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use benches::bare::{self, Bare};
use benches::client::{ClosedLoop, Load, get};
use benches::meter;
use benches::report::{bytes_each, line, median, micros_each, per_second, table};
use web::serve::server::default_workers;

use super::cases::{ACCOUNT, ASCENDING, BY_HASH, Case, DEEP, SHALLOW, STATUS, UNCOUNTED};

/// Connections that always have a request in flight.
const CONNECTIONS: usize = 16;

/// Rounds; the median is reported.
const ROUNDS: usize = 9;

/// Requests of a case in a round, and of one whose answers are pages.
const SMALL_ONES: usize = 8_000;
const PAGES: usize = 500;

/// Factor of the bare server's requests: it is fast, and short readings are coarse.
const BARE_TIMES: usize = 3;

/// Prefix of the names of the server's threads.
const SERVER_THREADS: &str = "web";

/// The medians of one case.
struct Figures {
    per_second: f64,
    /// Latency in milliseconds: median and 99th percentile.
    waits: [f64; 2],
    body: f64,
    cpu: f64,
    bare: f64,
    /// Ratio of the two within a round, so that the load of the machine cancels out.
    ratio: f64,
}

/// Measures all cases on `server` and prints the figures and their reference.
pub(crate) fn print(server: SocketAddr, cases: &[Case]) -> Result<()> {
    let bare = Bare::start(default_workers())?;
    let mut ours = ClosedLoop::connect(server, CONNECTIONS)?;
    let mut theirs = ClosedLoop::connect(bare.address(), CONNECTIONS)?;
    let before = meter::load()?;
    let mut samples: Vec<Vec<Sample>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        for (case, samples) in cases.iter().zip(&mut samples) {
            samples.push(Sample::take(&mut ours, &mut theirs, case, round)?);
        }
    }
    let figures: Vec<Figures> = samples.iter().map(|samples| Figures::of(samples)).collect();
    line(&format!(
        "{CONNECTIONS} connections, medians of {ROUNDS} rounds; load average before {before}, after {}",
        meter::load()?
    ));
    let rows: Vec<_> = cases.iter().zip(&figures).map(|(case, figures)| figures.row(case.name)).collect();
    table(&["case", "answers/s", "p50 ms", "p99 ms", "bytes", "CPU us", "bare us", "ratio"], &rows);
    compare(cases, &samples)
}

/// One case in one round.
struct Sample {
    load: Load,
    /// Our server's CPU.
    cpu: Duration,
    /// The bare server's CPU, for equally many responses.
    bare: Duration,
}

impl Sample {
    fn take(ours: &mut ClosedLoop, theirs: &mut ClosedLoop, case: &Case, round: usize) -> Result<Self> {
        let count = if case.page { PAGES } else { SMALL_ONES };
        let server = |name: &str| name.starts_with(SERVER_THREADS);
        let (load, cpu) = metered(server, || ours.run(&case.requests, round * count, count))?;
        let body = load.body_bytes / u64::try_from(count)?;
        let same_size = [get(&format!("/{body}"))];
        let server = |name: &str| name == bare::THREADS;
        let (_, bare) = metered(server, || theirs.run(&same_size, 0, BARE_TIMES * count))?;
        Ok(Self { load, cpu, bare: bare / u32::try_from(BARE_TIMES)? })
    }
}

/// Runs `load`; also returns the CPU time of `threads` meanwhile.
fn metered(threads: impl Fn(&str) -> bool, load: impl FnOnce() -> Result<Load>) -> Result<(Load, Duration)> {
    let before = meter::cpu(&threads)?;
    let load = load()?;
    let used = meter::cpu(&threads)?.saturating_sub(before);
    Ok((load, used))
}

impl Figures {
    fn of(samples: &[Sample]) -> Self {
        let over = |figure: &dyn Fn(&Sample, u64) -> f64| {
            let figure =
                |sample: &Sample| figure(sample, u64::try_from(sample.load.waits.len()).unwrap_or(0));
            median(&mut samples.iter().map(figure).collect::<Vec<_>>())
        };
        let wait = |percent: usize| {
            over(&move |sample: &Sample, _| {
                let waits = &sample.load.waits;
                let at = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
                waits.get(at).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3)
            })
        };
        Self {
            per_second: over(&|sample, count| per_second(count, sample.load.elapsed)),
            waits: [wait(50), wait(99)],
            body: over(&|sample, count| bytes_each(sample.load.body_bytes, count)),
            cpu: over(&|sample, count| micros_each(sample.cpu, count)),
            bare: over(&|sample, count| micros_each(sample.bare, count)),
            ratio: over(&|sample, _| sample.cpu.div_duration_f64(sample.bare)),
        }
    }

    fn row(&self, name: &str) -> Vec<String> {
        let Self { per_second, waits: [half, most], body, cpu, bare, ratio } = self;
        vec![
            name.to_owned(),
            format!("{per_second:.0}"),
            format!("{half:.2}"),
            format!("{most:.2}"),
            format!("{body:.0}"),
            format!("{cpu:.1}"),
            format!("{bare:.1}"),
            format!("{ratio:.2}"),
        ]
    }
}

/// The figures with goals.
fn compare(cases: &[Case], samples: &[Vec<Sample>]) -> Result<()> {
    let find = |name: &str| -> Result<&[Sample]> {
        let mut both = cases.iter().zip(samples);
        both.find(|(case, _)| case.name == name).map(|(_, samples)| &**samples).context("no such case")
    };
    line("");
    for (goal, name, limit) in [("Q1", STATUS, 1.4), ("Q2", BY_HASH, 3.0), ("Q3", ACCOUNT, 6.0)] {
        let ratio = Figures::of(find(name)?).ratio;
        line(&format!("{goal} CPU of `{name}` to bare hyper: {ratio:.2} (goal: {limit} at most)"));
    }
    for (goal, name, to, limit) in
        [("Q6", DEEP, SHALLOW, 1.2), ("Q7", ACCOUNT, UNCOUNTED, 1.05), ("Q8", ASCENDING, ACCOUNT, 1.1)]
    {
        let rounds = find(name)?.iter().zip(find(to)?);
        let ratio =
            median(&mut rounds.map(|(one, other)| one.cpu.div_duration_f64(other.cpu)).collect::<Vec<_>>());
        line(&format!("{goal} CPU of `{name}` to `{to}`: {ratio:.2} (goal: {limit} at most)"));
    }
    Ok(())
}
