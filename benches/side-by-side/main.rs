//! cairn beside a PostgreSQL stand-in and beside a bare hyper server, in one run: `make side-by-side`.
//!
//! The stand-in is a PostgreSQL with the tables, indexes and statements of the indexer that these chains have today, and
//! nothing else of it: it gets its rows ready made, and its replies are measured at the socket of the database. So its
//! figures are an upper bound of what an indexer over such a database can reach.
//!
//! Both hold the same chain. Measurements are taken in turns, and answers are compared with each other while they are
//! measured. The result is written to `docs/benchmarks.md`, with plots beside it.

#![expect(clippy::print_stderr, reason = "the progress of a run of many minutes")]

mod cases;
mod document;
mod load;
mod plots;
mod postgres;
mod rows;
mod sessions;
mod stand_in;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use benches::meter;
use benches::recorded::{Ingested, Lanes, Played, open};
use store::Store;
use synthesize::BlockSizes;
use testkit::indexed;
use web::app::App;
use web::limits::Limits;
use web::serve::server::{Server, default_workers};

use self::document::{Document, IngestRound};
use self::postgres::Postgres;
use self::rows::Rows;
use self::stand_in::{Durability, StandIn};

/// The chain: extended, it is the long one.
const RECORDING: &str = "evm-load";

/// The stand-in has no rich list.
const LANES: Lanes = Lanes { rich_list: false, ..Lanes::ALL };

/// Rounds of an ingest of the recorded chain.
const INGEST_ROUNDS: usize = 3;

/// Transactions of the long chain, unless the command line names another number.
const LONG: u64 = 200_000;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let txs = args.next().map_or(Ok(LONG), |text| text.parse()).context("the number of transactions")?;
    let docs = args.next().map_or_else(|| PathBuf::from("docs"), PathBuf::from);
    ensure!(args.next().is_none(), "usage: side-by-side [TRANSACTIONS [DIRECTORY]]");

    let load_before = meter::load()?;
    let postgres = Postgres::start()?;
    let rounds = ingest_rounds(&postgres)?;

    eprintln!("ingest of {txs} transactions");
    let recording = synthesize::extend(open(RECORDING)?, txs, BlockSizes::default())?;
    let played = Played::new(Arc::new(recording))?;
    let ingested = played.ingest(LANES)?;
    drop(played);
    ingested.store.flush()?;
    let rows = Rows::read(&*ingested.store.snapshot()?)?;
    let mut stand_in = StandIn::create(&postgres, Durability::Relaxed)?;
    let loaded = stand_in.load(&postgres, &rows, &*ingested.store.snapshot()?)?;
    stand_in.settle()?;

    let indexer = indexed::indexer(Arc::clone(&ingested.store) as Arc<dyn Store>)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let app = Arc::new(App::new(indexer, query::ENDPOINTS)?);
    let web = Server::start(listener, app, Limits::default(), default_workers())?;
    let cases = cases::all(&rows, &*ingested.store.snapshot()?, &stand_in.commonest_msg_type()?)?;
    eprintln!("requests, in turns");
    let requests = load::measure(web.address(), &postgres, &cases)?;
    eprintln!("pages by offset");
    let by_offset = load::by_offset(web.address(), &postgres, &cases::offsets(&rows)?)?;
    eprintln!("latency by connections");
    let by_connections = load::by_connections(web.address(), &postgres, &cases)?;
    web.stop();

    let document = Document {
        version: postgres.version()?,
        load: [load_before, meter::load()?],
        rounds,
        txs: rows.txs(),
        progress: [ingested.txs_over_time(&rows.txs_by_height()), loaded.progress],
        tables: ingested.store.table_sizes()?,
        relations: stand_in.sizes()?,
        requests,
        by_offset,
        by_connections,
    };
    document.write(&docs)
}

/// Ingests the recorded chain by both in turns.
fn ingest_rounds(postgres: &Postgres) -> Result<Vec<IngestRound>> {
    let played = Played::start(RECORDING)?;
    let mut rounds = Vec::new();
    for round in 1..=INGEST_ROUNDS {
        eprintln!("ingest of the recorded chain, round {round} of {INGEST_ROUNDS}");
        let Ingested { store, elapsed, cpu, .. } = &played.ingest(LANES)?;
        let rows = Rows::read(&*store.snapshot()?)?;
        let load = |durability| {
            let loaded = StandIn::create(postgres, durability)?.load(postgres, &rows, &*store.snapshot()?)?;
            anyhow::Ok((loaded.elapsed(), loaded.cpu))
        };
        let (relaxed, strict) = (load(Durability::Relaxed)?, load(Durability::Strict)?);
        rounds.push(IngestRound {
            txs: rows.txs(),
            figures: [(*elapsed, cpu.ingest + cpu.rocksdb), relaxed, strict],
        });
    }
    Ok(rounds)
}
