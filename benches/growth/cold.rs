//! Latency of reads of which nothing is cached: neither blocks in the process nor files in the page cache.
//!
//! Before each case the server is started anew and the database's files are dropped from the page cache. One request is
//! in flight at a time.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use benches::client::{Client, get};
use benches::pick::Pick;
use benches::recorded::longest;
use benches::report::{line, table};
use rustix::fs::{Advice, fadvise};
use schema::evm_tx::AccountEvmTxs;
use schema::internal_tx::AccountCalls;
use schema::payload::Codec;
use schema::records;
use schema::tx::{AccountTxs, Txs};
use store::{RocksOptions, RocksStore, Snapshot, Store};
use testkit::indexed;
use web::app::App;
use web::limits::Limits;
use web::serve::server::Server;

/// Distinct requests of a case.
const REQUESTS: usize = 500;

/// Rows of a page.
const PAGE: u64 = 100;

/// Prints the latencies of each case on the database in `directory`, which nothing else uses.
pub(crate) fn print(directory: &Path) -> Result<()> {
    let cases = cases(&*open(directory)?.snapshot()?)?;
    let mut rows = Vec::new();
    for (name, targets) in cases {
        let mut waits = measure(directory, &targets).context(name)?;
        waits.sort_unstable();
        let at = |percent: usize| {
            let wait = waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1)));
            format!("{:.2}", wait.map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3))
        };
        rows.push(vec![name.to_owned(), at(50), at(99), at(100)]);
    }
    line(&format!("{REQUESTS} requests one after the other, nothing cached before"));
    table(&["case", "p50 ms", "p99 ms", "most ms"], &rows);
    Ok(())
}

fn open(directory: &Path) -> Result<RocksStore> {
    Ok(RocksStore::open(directory, schema::TABLES, RocksOptions::default())?)
}

/// The cases with their targets.
fn cases(snapshot: &dyn Snapshot) -> Result<[(&'static str, Vec<String>); 5]> {
    let mut pick = Pick::seeded(5);
    let ((account, _), of_account) = longest::<AccountTxs>(snapshot)?;
    let ((evm_account, _), of_evm_account) = longest::<AccountEvmTxs>(snapshot)?;
    let (caller, of_caller) = longest::<AccountCalls>(snapshot)?;
    let txs = schema::meta::read::<schema::meta::BlockLane>(snapshot)?.unwrap_or_default().txs;
    let mut pages = |path: String, len: u64| -> Vec<String> {
        let page = |_| format!("{path}?pagination.limit={PAGE}&pagination.offset={}", pick.below(len - PAGE));
        (0..REQUESTS).map(page).collect()
    };
    let list = "/indexer/tx/v1";
    let cases = [
        ("100 txs, random offset", pages(format!("{list}/txs"), txs)),
        ("account's txs", pages(format!("{list}/txs/by_account/{}", account.0.to_hex()), of_account)),
        (
            "account's EVM txs",
            pages(format!("{list}/evm-txs/by_account/{}", evm_account.0.to_hex()), of_evm_account),
        ),
        (
            "account's internal txs",
            pages(format!("{list}/evm-internal-txs/by_account/{}", caller.0.to_hex()), of_caller),
        ),
    ];
    let seqs: Vec<u64> = (0..REQUESTS).map(|_| 1 + pick.below(txs)).collect();
    let (codec, mut hashes) = (Codec::load(snapshot)?, Vec::new());
    records::each::<Txs>(snapshot, &codec, &seqs, |record| {
        hashes.push(record.get(11..75).map(<[u8]>::to_vec));
    })?;
    let by_hash = |hash: Option<Vec<u8>>| -> Result<String> {
        let hash = String::from_utf8(hash.context("a record begins with its hash")?)?;
        Ok(format!("{list}/txs/{hash}"))
    };
    let by_hash = hashes.into_iter().map(by_hash).collect::<Result<_>>()?;
    let [one, two, three, four] = cases;
    Ok([("tx by hash", by_hash), one, two, three, four])
}

/// The latency of each request to a new server.
fn measure(directory: &Path, targets: &[String]) -> Result<Vec<Duration>> {
    for file in std::fs::read_dir(directory)? {
        fadvise(File::open(file?.path())?, 0, None, Advice::DontNeed)?;
    }
    let store = Arc::new(open(directory)?) as Arc<dyn Store>;
    let app = Arc::new(App::new(indexed::indexer(store)?, query::ENDPOINTS)?);
    let server = Server::start(TcpListener::bind("127.0.0.1:0")?, app, Limits::default(), 1)?;
    let mut client = Client::connect(server.address())?;
    let ask = |target: &String| -> Result<Duration> {
        let started = Instant::now();
        client.ask(&get(target))?;
        Ok(started.elapsed())
    };
    let waits = targets.iter().map(ask).collect();
    server.stop();
    waits
}
