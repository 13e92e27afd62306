//! Time of the planner on registries of 200 chains and 5,000 assets: one whose tokens are a forest of vouchers, as in
//! the public registries, and one whose tokens are connected by hundreds of LayerZero groups.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use benches::report;
use criterion::{Criterion, Throughput};
use planner::{Graph, Request, World, operations, plan};
use random::{Dice, GeneratedWorld, Size};
use routing_api::{Config, Service};
use web::app::App;

#[path = "route/beside.rs"]
mod beside;
#[path = "../routing/planner/tests/random/mod.rs"]
mod random;
#[path = "route/swaps.rs"]
mod swaps;

/// Groups of LayerZero tokens, and the rate of parts that are paused, unknown or have a fee.
const REGISTRIES: [(&str, usize, usize); 3] = [
    ("forest", 0, 0),
    ("forest, one part in 30 troubled", 50, 30),
    ("web, one part in 30 troubled", 1_000, 30),
];
/// Requests on each registry.
const REQUESTS: usize = 5_000;

fn main() -> Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    for (name, ofts, trouble) in REGISTRIES {
        let size = Size { chains: 200, assets: 5_000, ofts, trouble };
        let parts = random::parts(1, size);
        let made = random::build(&parts, 0, size);
        let graph = Graph::new(&made.registry);
        let (mut dice, neighbours) = (Dice(2), random::neighbours(&parts));
        let requests: Vec<_> =
            (0..REQUESTS).map(|_| random::request(&mut dice, &made, &neighbours)).collect();
        bench(&mut criterion, name, &made, &graph, &requests);
        if benches::measuring() {
            rows.push(row(name, &made, &graph, &requests)?);
        }
    }
    if benches::measuring() {
        let heads = ["plan(), 200 chains, 5,000 assets", "p50 µs", "p99 µs", "max µs", "plans/s", "found"];
        report::table(&heads, &rows);
    }
    if benches::measuring() {
        let heads =
            ["POST /v2/fungible/route, one core, no sockets", "requests/s", "p50 µs", "p99 µs", "found"];
        report::table(
            &heads,
            &[whole_requests(Case::Plain)?, whole_requests(Case::WithPools)?, whole_requests(Case::Swaps)?],
        );
        report::table(&beside::HEADS, &beside::rows()?);
    }
    criterion.final_summary();
    Ok(())
}

/// What whole requests ask.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Plain,
    /// The same requests, while the service knows 200 pools.
    WithPools,
    /// Swaps over these pools.
    Swaps,
}

/// Whole requests, from the request's bytes to the response's, sequentially on one thread.
fn whole_requests(case: Case) -> Result<Vec<String>> {
    let size = Size { chains: 200, assets: 5_000, ofts: 0, trouble: 30 };
    let parts = random::parts(1, size);
    let mut made = random::build(&parts, 0, size);
    let (mut dice, neighbours) = (Dice(3), random::neighbours(&parts));
    let mut bodies: Vec<_> =
        (0..REQUESTS).map(|_| body(&made, &random::request(&mut dice, &made, &neighbours))).collect();
    let market = swaps::market(&made.registry)?;
    // Over more than one pool, with hops before and after.
    made.facts.adapters.insert(market.chain.clone(), "0x1".to_owned());
    made.facts.hooks.insert(market.chain.clone(), true);
    if case == Case::Swaps {
        bodies = swaps::bodies(&market, REQUESTS);
    }
    let dir = tempfile::tempdir()?;
    let service = Service::open(made.registry, dir.path(), Config::default(), "bench")?;
    service.learn(made.facts);
    if case != Case::Plain {
        service.learn_market(market, Instant::now());
    }
    let app = App::new(service, routing_api::ENDPOINTS)?;
    let head = http::Request::post("/v2/fungible/route").body(())?.into_parts().0;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (mut times, mut found) = (Vec::with_capacity(bodies.len()), 0);
    for body in &bodies {
        let started = Instant::now();
        let answer = black_box(runtime.block_on(app.respond_later(&head, body.as_bytes())));
        times.push(started.elapsed());
        found += usize::from(answer.status() == http::StatusCode::OK);
    }
    let sum: Duration = times.iter().sum();
    times.sort_unstable();
    let rate = report::per_second(u64::try_from(times.len())?, sum);
    Ok(vec![
        match case {
            Case::Plain => "200 chains, 5,000 assets",
            Case::WithPools => "the same, 200 pools known",
            Case::Swaps => "swaps over the 200 pools",
        }
        .to_owned(),
        format!("{rate:.0}"),
        at(&times, 500)?,
        at(&times, 990)?,
        format!("{} %", found * 100 / times.len()),
    ])
}

fn body(made: &GeneratedWorld, request: &Request) -> String {
    let registry = &made.registry;
    let id = |asset: registry::AssetRef| &registry[registry[asset].chain].id;
    format!(
        r#"{{"amount_in":"{}","source_asset_denom":"{}","source_asset_chain_id":"{}","dest_asset_denom":"{}","dest_asset_chain_id":"{}"}}"#,
        request.amount_in,
        registry[request.from].denom,
        id(request.from),
        registry[request.to].denom,
        id(request.to),
    )
}

/// The quantile `share` / 1000, in microseconds.
fn at(times: &[Duration], share: usize) -> Result<String> {
    let time = times.get((times.len() * share / 1_000).min(times.len() - 1)).context("no requests")?;
    Ok(format!("{:.1}", report::micros_each(*time, 1)))
}

fn bench(criterion: &mut Criterion, name: &str, made: &GeneratedWorld, graph: &Graph, requests: &[Request]) {
    let mut group = criterion.benchmark_group(format!("route/{name}"));
    group.throughput(Throughput::Elements(1));
    let world = world(made);
    let mut next = requests.iter().cycle();
    group.bench_function("plan", |bencher| {
        bencher.iter(|| plan(graph, world, black_box(next.next().expect("there is a request"))));
    });
    let mut next = requests.iter().cycle();
    group.bench_function("plan and operations", |bencher| {
        bencher.iter(|| {
            let plans = plan(graph, world, black_box(next.next().expect("there is a request")));
            plans.map(|plans| operations(world, &plans[0]))
        });
    });
    group.bench_function("graph of a registry", |bencher| bencher.iter(|| Graph::new(&made.registry)));
    group.finish();
}

/// Each request once, timed.
fn row(name: &str, made: &GeneratedWorld, graph: &Graph, requests: &[Request]) -> Result<Vec<String>> {
    let (world, mut times, mut found) = (world(made), Vec::with_capacity(requests.len()), 0);
    for request in requests {
        let started = Instant::now();
        let plans = black_box(plan(graph, world, request));
        times.push(started.elapsed());
        found += usize::from(plans.is_ok());
    }
    let sum: Duration = times.iter().sum();
    times.sort_unstable();
    let rate = report::per_second(u64::try_from(times.len())?, sum);
    let found = format!("{} %", found * 100 / times.len());
    Ok(vec![
        name.to_owned(),
        at(&times, 500)?,
        at(&times, 990)?,
        at(&times, 1_000)?,
        format!("{rate:.0}"),
        found,
    ])
}

fn world(made: &GeneratedWorld) -> World<'_> {
    World { registry: &made.registry, facts: &made.facts, quotes: &made.quotes }
}
