//! Server time of the explorer's pages, from the request's head to the compressed response, without a socket, on the
//! database of a recorded chain of 34,183 EVM transactions. The goal is a 99th percentile below 5 ms for each view.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::pick::Pick;
use benches::recorded::{Played, longest, raw_txs};
use benches::report;
use http::header::ACCEPT_ENCODING;
use http::{Request, StatusCode};
use query::Indexer;
use query::cursor::{Cursor, Space, encode};
use replay::Recording;
use schema::tx::AccountTxs;
use serde_json::Value;
use store::{Snapshot, Store};
use testkit::indexed;
use web::app::App;

/// Requests of each view.
const REQUESTS: u64 = 1_000;

/// The view and its requests.
type View = (&'static str, Vec<String>);

fn main() -> Result<()> {
    if !benches::measuring() {
        return Ok(());
    }
    let played = Played::start("evm-load")?;
    let ingested = played.ingest(true)?;
    ingested.store.compact()?;
    let indexer = indexed::indexer(Arc::clone(&ingested.store) as Arc<dyn Store>)?;
    let last = played.recording().last();
    let app = explorer::mount(App::new(indexer, query::ENDPOINTS)?, None, Arc::new(move || Some(last)))?;
    let views = views(&app, played.recording(), &*ingested.store.snapshot()?)?;
    drop(played);
    let rows = views.iter().map(|view| row(&app, view)).collect::<Result<Vec<_>>>()?;
    report::table(&["page, gzip", "p50 ms", "p99 ms", "max ms", "bytes"], &rows);
    Ok(())
}

/// The views, each with distinct records where there are as many, in a random order.
fn views(app: &App<Indexer>, recording: &Recording, snapshot: &dyn Snapshot) -> Result<Vec<View>> {
    let mut pick = Pick::seeded(4);
    let ((account, _), _) = longest::<AccountTxs>(snapshot)?;
    let about = recording.summary();
    let heights = recording.last() - recording.first() + 1;
    let blocks = (0..REQUESTS).map(|_| format!("/block/{}", recording.first() + pick.below(heights)));
    let blocks = blocks.collect();
    let mut txs: Vec<String> = raw_txs(recording)?
        .iter()
        .map(|raw| format!("/tx/{}", chain::hash::to_hex(&chain::hash::tx_hash(raw))))
        .collect();
    pick.shuffle(&mut txs);
    // A tenth of the requests for each of ten places of the list.
    let mut evm_txs = Vec::new();
    for _ in 0..10 {
        let offset = pick.below(about.evm_txs - REQUESTS);
        let page =
            json(app, &format!("/indexer/tx/v1/evm-txs?pagination.limit=100&pagination.offset={offset}"))?;
        evm_txs.extend(members(&page["txs"], "/transactionHash").map(|hash| format!("/evm-tx/{hash}")));
    }
    let collections = json(app, "/indexer/nft/v1/collections")?;
    let collection = members(&collections["collections"], "/object_addr").next().context("no collection")?;
    let path = format!("/indexer/nft/v1/tokens/by_collection/{collection}?pagination.limit=1000");
    let tokens = json(app, &path)?;
    let tokens = members(&tokens["tokens"], "/nft/token_id").map(|id| format!("/token/{collection}?id={id}"));
    let tokens = tokens.collect();
    let mut pages = |path: &str, space: Space, len: u64| -> Vec<String> {
        let page = |_| format!("{path}pagination.key={}", encode(space, Cursor::After(1 + pick.below(len))));
        (0..REQUESTS).map(page).collect()
    };
    let account = format!("/account/{}", account.0.to_hex());
    Ok(vec![
        ("overview", vec!["/".to_owned()]),
        ("block", blocks),
        ("transactions", pages("/txs?", Space::Txs, about.txs)),
        ("transaction", txs),
        ("EVM transactions", pages("/evm-txs?", Space::EvmTxs, about.evm_txs)),
        ("EVM transaction", evm_txs),
        ("account", pages(&format!("{account}?"), Space::Txs, about.txs)),
        ("account, EVM", pages(&format!("{account}?tab=evm&"), Space::EvmTxs, about.evm_txs)),
        ("account, internal", vec![format!("{account}?tab=internal")]),
        ("account, NFTs", vec![format!("{account}?tab=nfts")]),
        ("collections", vec!["/collections".to_owned()]),
        ("collection", vec![format!("/collection/{collection}")]),
        ("token", tokens),
        ("holders", vec!["/holders?denom=GAS".to_owned()]),
        ("search", vec!["/search?q=nothing".to_owned()]),
    ])
}

fn json(app: &App<Indexer>, target: &str) -> Result<Value> {
    let response = app.get(target);
    ensure!(response.status() == StatusCode::OK, "{target}: {}", response.status());
    Ok(serde_json::from_slice(response.body())?)
}

/// A text of each element of a list, by its JSON pointer.
fn members<'a>(list: &'a Value, pointer: &'a str) -> impl Iterator<Item = &'a str> {
    let elements = list.as_array().map_or(&[] as &[Value], Vec::as_slice);
    elements.iter().filter_map(move |element| element.pointer(pointer)?.as_str())
}

/// The times of the requests of a view.
fn row(app: &App<Indexer>, (name, targets): &View) -> Result<Vec<String>> {
    let (mut times, mut bytes) = (Vec::new(), 0);
    for target in targets.iter().cycle().take(usize::try_from(REQUESTS)?) {
        let head = Request::get(target).header(ACCEPT_ENCODING, "gzip").body(())?.into_parts().0;
        let started = Instant::now();
        let response = black_box(app.respond(&head, b""));
        times.push(started.elapsed());
        ensure!(response.status() == StatusCode::OK, "{target}: {}", response.status());
        bytes += response.body().len();
    }
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len() - 1)).copied();
    let millis = |time: Option<Duration>| -> Result<String> {
        Ok(format!("{:.2}", time.context("no requests")?.as_secs_f64() * 1e3))
    };
    let mean = bytes / times.len();
    Ok(vec![(*name).to_owned(), millis(at(50))?, millis(at(99))?, millis(at(100))?, mean.to_string()])
}
