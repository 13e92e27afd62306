//! Measurements of requests: both servers in turns, and a bare hyper server for cairn's overhead.
//!
//! # Invariants
//!
//! - Both servers answer the same requests, equally many at a time, in every round.
//! - In each round some replies of both are compared, record by record, and a difference ends the run.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use benches::bare::{self, Bare};
use benches::client::{Client, ClosedLoop, Load, get};
use benches::meter;
use benches::report::{bytes_each, median, micros_each, per_second};
use serde_json::Value;
use web::serve::server::default_workers;

use crate::cases::{Case, UNDER_LOAD};
use crate::postgres::Postgres;
use crate::sessions::Sessions;

/// Connections that always have a request in flight, unless the measurement varies them.
const CONNECTIONS: usize = 16;

/// Rounds; the median is reported.
const ROUNDS: usize = 5;

/// Requests of a case in a round: of one whose answers are records, and of one whose answers are pages.
const RECORDS: usize = 4_000;
const PAGES: usize = 200;

/// One of so many answers is compared.
const COMPARED: usize = 50;

/// Factor of the bare server's requests: it is fast, and short readings are coarse.
const BARE_TIMES: usize = 3;

/// Prefix of the names of the server's threads.
const SERVER_THREADS: &str = "web";

/// Medians of one server in one case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    /// Latency in milliseconds: median and 99th percentile.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// CPU of the server's threads or processes per answer, in microseconds.
    pub(crate) cpu: f64,
}

/// One case.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// Bytes of cairn's answer.
    pub(crate) body: f64,
    pub(crate) cairn: Figures,
    pub(crate) stand_in: Figures,
    /// CPU of a bare hyper answer of that size, in microseconds.
    pub(crate) bare: f64,
    /// Replies that were compared.
    pub(crate) compared: usize,
}

/// One reading of one server.
struct Sample {
    load: Load,
    cpu: Duration,
}

impl Sample {
    fn take(cpu: impl Fn() -> Result<Duration>, load: impl FnOnce() -> Result<Load>) -> Result<Self> {
        let before = cpu()?;
        let load = load()?;
        Ok(Self { load, cpu: cpu()?.saturating_sub(before) })
    }

    fn count(&self) -> u64 {
        self.load.waits.len() as u64
    }

    /// Latency that `percent` of the replies do not exceed, in milliseconds.
    fn wait(&self, percent: usize) -> f64 {
        let waits = &self.load.waits;
        let place = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
        waits.get(place).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3)
    }
}

fn over(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    median(&mut samples.iter().map(figure).collect::<Vec<_>>())
}

impl Figures {
    fn of(samples: &[Sample]) -> Self {
        Self {
            per_second: over(samples, |sample| per_second(sample.count(), sample.load.elapsed)),
            p50: over(samples, |sample| sample.wait(50)),
            p99: over(samples, |sample| sample.wait(99)),
            cpu: over(samples, |sample| micros_each(sample.cpu, sample.count())),
        }
    }
}

fn cairn_cpu() -> Result<Duration> {
    meter::cpu(|name| name.starts_with(SERVER_THREADS))
}

fn bare_cpu() -> Result<Duration> {
    meter::cpu(|name| name == bare::THREADS)
}

/// Measures all cases in turns.
pub(crate) fn measure(cairn: SocketAddr, server: &Postgres, cases: &[Case]) -> Result<Vec<Measured>> {
    let bare = Bare::start(default_workers())?;
    let mut ours = ClosedLoop::connect(cairn, CONNECTIONS)?;
    let mut theirs = Sessions::connect(server, CONNECTIONS)?;
    let mut bares = ClosedLoop::connect(bare.address(), CONNECTIONS)?;
    let mut samples: Vec<[Vec<Sample>; 3]> = cases.iter().map(|_| Default::default()).collect();
    let mut compared = vec![0; cases.len()];
    for round in 0..ROUNDS {
        for ((case, samples), compared) in cases.iter().zip(&mut samples).zip(&mut compared) {
            let count = if case.page { PAGES } else { RECORDS };
            let first = round * count;
            let sample = Sample::take(cairn_cpu, || ours.run(&case.requests, first, count))?;
            let same_size = [get(&format!("/{}", sample.load.body_bytes / sample.count().max(1)))];
            samples[0].push(sample);
            let cpu = || server.cpu();
            samples[1].push(Sample::take(cpu, || theirs.run(&case.queries, first, count))?);
            samples[2].push(Sample::take(bare_cpu, || bares.run(&same_size, 0, BARE_TIMES * count))?);
            for turn in (first..first + count).step_by(COMPARED) {
                compare(cairn, &mut theirs, case, turn).with_context(|| case.name.to_owned())?;
                *compared += 1;
            }
        }
    }
    let measured = |((case, [ours, theirs, bare]), compared): ((&Case, &[Vec<Sample>; 3]), usize)| Measured {
        name: case.name,
        body: over(ours, |sample| bytes_each(sample.load.body_bytes, sample.count())),
        cairn: Figures::of(ours),
        stand_in: Figures::of(theirs),
        bare: Figures::of(bare).cpu,
        compared,
    };
    Ok(cases.iter().zip(&samples).zip(compared).map(measured).collect())
}

/// The median latency of a page at each offset, in milliseconds: cairn's and the stand-in's, one request at a time.
pub(crate) fn by_offset(
    cairn: SocketAddr,
    server: &Postgres,
    offsets: &[(u64, Case)],
) -> Result<Vec<(u64, [f64; 2])>> {
    const TIMES: usize = 30;
    let mut ours = ClosedLoop::connect(cairn, 1)?;
    let mut theirs = Sessions::connect(server, 1)?;
    let mut samples: Vec<[Vec<Sample>; 2]> = offsets.iter().map(|_| Default::default()).collect();
    for _ in 0..ROUNDS {
        for ((_, case), samples) in offsets.iter().zip(&mut samples) {
            samples[0].push(Sample::take(cairn_cpu, || ours.run(&case.requests, 0, TIMES))?);
            samples[1].push(Sample::take(cairn_cpu, || theirs.run(&case.queries, 0, TIMES))?);
        }
    }
    let figures = |((offset, _), samples): (&(u64, Case), &[Vec<Sample>; 2])| {
        (*offset, [0, 1].map(|server: usize| Figures::of(&samples[server]).p50))
    };
    Ok(offsets.iter().zip(&samples).map(figures).collect())
}

/// Figures at each number of connections: cairn's and the stand-in's.
pub(crate) fn by_connections(
    cairn: SocketAddr,
    server: &Postgres,
    cases: &[Case],
) -> Result<Vec<(usize, [Figures; 2])>> {
    let case = cases.iter().find(|case| case.name == UNDER_LOAD).context("no such case")?;
    let mut figures = Vec::new();
    for connections in [1, 2, 4, 8, 16, 32, 64] {
        let mut ours = ClosedLoop::connect(cairn, connections)?;
        let mut theirs = Sessions::connect(server, connections)?;
        let (mut of_ours, mut of_theirs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let first = round * PAGES;
            of_ours.push(Sample::take(cairn_cpu, || ours.run(&case.requests, first, PAGES))?);
            of_theirs.push(Sample::take(|| server.cpu(), || theirs.run(&case.queries, first, PAGES))?);
        }
        figures.push((connections, [Figures::of(&of_ours), Figures::of(&of_theirs)]));
    }
    Ok(figures)
}

/// Compares both replies to the request `turn` of `case`.
fn compare(cairn: SocketAddr, theirs: &mut Sessions, case: &Case, turn: usize) -> Result<()> {
    let place = turn % case.requests.len();
    let request = &case.requests[place];
    let answer: Value = serde_json::from_slice(Client::connect(cairn)?.ask(request)?)?;
    let member = answer.get(case.member).with_context(|| format!("no {} in {answer}", case.member))?;
    let ours: Vec<&Value> =
        member.as_array().map_or_else(|| vec![member], |records| records.iter().collect());
    let other = theirs.answer(&case.queries[place])?;
    let records: Vec<Value> =
        other.records.iter().map(|text| serde_json::from_str(text)).collect::<Result<_, _>>()?;
    let request = String::from_utf8_lossy(request);
    let request = request.lines().next().unwrap_or_default();
    ensure!(!records.is_empty(), "{request}: the stand-in has no record");
    ensure!(
        ours.len() == records.len(),
        "{request}: {} records, the stand-in has {}",
        ours.len(),
        records.len()
    );
    for (ours, theirs) in ours.into_iter().zip(&records) {
        ensure!(ours == theirs, "{request}: {ours} where the stand-in has {theirs}");
    }
    if let Some(total) = other.total {
        let ours = answer["pagination"]["total"].as_str();
        ensure!(ours == Some(total.to_string().as_str()), "{request}: the totals are {ours:?} and {total}");
    }
    Ok(())
}
