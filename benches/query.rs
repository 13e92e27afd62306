//! Cost of a response over a real socket, on the database of a recorded chain of 34,183 EVM transactions.
//!
//! Criterion measures the latency of one client. Then responses per second and the server's CPU per response are
//! measured on 16 connections that always have a request in flight, and compared with a bare hyper server that sends
//! equally many bytes: all cases in turn, the median of several rounds. Client and server share the machine's cores, so
//! CPU is the figure to compare.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

#[path = "query/cases.rs"]
mod cases;
#[path = "query/rounds.rs"]
mod rounds;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use benches::client::Client;
use benches::recorded::{Lanes, Played};
use benches::{measuring, report};
use criterion::Criterion;
use store::Store;
use testkit::indexed;
use web::app::App;
use web::limits::Limits;
use web::serve::server::{Server, default_workers};

use self::cases::Case;

fn main() -> Result<()> {
    let played = Played::start("evm-load")?;
    let ingested = played.ingest(Lanes::ALL)?;
    // Older databases are compacted.
    ingested.store.compact()?;
    let cases = cases::all(played.recording(), &*ingested.store.snapshot()?)?;
    drop(played);

    let indexer = indexed::indexer(Arc::clone(&ingested.store) as Arc<dyn Store>)?;
    let app = Arc::new(App::new(indexer, query::ENDPOINTS)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = Server::start(listener, app, Limits::default(), default_workers())?;

    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, &server, &cases)?;
    criterion.final_summary();
    if measuring() {
        report::line("");
        rounds::print(server.address(), &cases)?;
    }
    server.stop();
    Ok(())
}

/// Latency of one client.
fn bench(criterion: &mut Criterion, server: &Server, cases: &[Case]) -> Result<()> {
    let mut group = criterion.benchmark_group("query");
    group.sample_size(30).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for case in cases {
        let mut client = Client::connect(server.address())?;
        let mut requests = case.requests.iter().cycle();
        group.bench_function(case.name, |bencher| {
            bencher.iter(|| {
                let request = requests.next().expect("a case has requests");
                client.ask(request).expect("the server answers").len()
            });
        });
    }
    group.finish();
    Ok(())
}
