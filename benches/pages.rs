//! Server time of the explorer's pages, on the database of a recorded chain of 34,183 EVM transactions.
//!
//! A page is rendered and compressed as for a browser, without a socket. Each view has many distinct pages; the figures
//! are quantiles over all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::pick::Pick;
use benches::recorded::{Lanes, Played};
use benches::{measuring, report};
use explorer::media::Media;
use explorer::{Head, Inputs};
use http::Request;
use http::header::ACCEPT_ENCODING;
use query::Indexer;
use schema::activity::ACTIVITY;
use schema::contracts::CONTRACTS;
use schema::ledger::LEDGER;
use schema::packets::PACKETS;
use schema::tokens::TOKENS;
use serde_json::Value;
use store::Store;
use testkit::indexed;
use web::app::App;

/// Distinct pages of a view, and how often each is rendered.
const DISTINCT: u64 = 200;
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let played = Played::start("evm-load")?;
    let ingested = played
        .ingest(Lanes { indexes: &[&ACTIVITY, &LEDGER, &PACKETS, &CONTRACTS, &TOKENS], ..Lanes::ALL })?;
    ingested.store.compact()?;
    drop(played);
    let indexer = indexed::indexer(Arc::clone(&ingested.store) as Arc<dyn Store>)?;
    let (head, base): (Head, _) = (Arc::new(|| None), String::new());
    let inputs = Inputs { routing: None, head, contracts: None, base, media: Media::None };
    let app = explorer::mount(App::new(indexer, query::ENDPOINTS)?, inputs)?;
    let rounds = if measuring() { ROUNDS } else { 1 };
    let mut rows = Vec::new();
    for (view, targets) in views(&app)? {
        let mut times = Vec::new();
        let mut bytes = 0;
        for target in targets.iter().cycle().take(targets.len() * rounds) {
            let (time, length) = render(&app, target)?;
            times.push(time);
            bytes = bytes.max(length);
        }
        times.sort_unstable();
        let millis =
            |share: usize| format!("{:.2}", times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3);
        rows.push(vec![
            view.to_owned(),
            millis(50),
            millis(99),
            millis(100),
            format!("{:.1}", report::megabytes(bytes) * 1e3),
        ]);
    }
    report::table(&["page", "p50 ms", "p99 ms", "max ms", "max kB gzip"], &rows);
    Ok(())
}

/// Time and compressed length of a page.
fn render(app: &App<Indexer>, target: &str) -> Result<(Duration, u64)> {
    let (request, ()) = Request::get(target).header(ACCEPT_ENCODING, "gzip").body(())?.into_parts();
    let begun = Instant::now();
    let response = app.respond(&request, b"");
    let time = begun.elapsed();
    ensure!(response.status() == 200, "{target}: {}", response.status());
    Ok((time, response.body().len() as u64))
}

/// The views with their pages.
fn views(app: &App<Indexer>) -> Result<Vec<(&'static str, Vec<String>)>> {
    let blocks = sample(app, "/indexer/block/v1/blocks", "/blocks", "/height")?;
    let txs = sample(app, "/indexer/tx/v1/txs", "/txs", "/txhash")?;
    let accounts = sample(app, "/indexer/tx/v1/evm-txs", "/txs", "/from")?;
    let tokens = tokens(app)?;
    let pages = |path: &str, keys: &[String], tail: &str| {
        keys.iter().map(|key| format!("{path}{key}{tail}")).collect()
    };
    let same = |path: &str| vec![path.to_owned(); 100];
    Ok(vec![
        ("overview", same("/")),
        ("blocks", same("/blocks")),
        ("transactions", same("/txs")),
        ("EVM transactions", same("/evm-txs")),
        ("block", pages("/block/", &blocks, "")),
        ("transaction", pages("/tx/", &txs, "")),
        ("account", pages("/account/", &accounts, "")),
        ("account, balances", pages("/account/", &accounts, "?tab=balances")),
        ("account, earlier balances", pages("/account/", &accounts, "?tab=balances&height=1000")),
        ("account, token transfers", pages("/account/", &accounts, "?tab=transfers")),
        ("account, EVM", pages("/account/", &accounts, "?tab=evm")),
        ("account, internal", pages("/account/", &accounts, "?tab=internal")),
        ("account, NFTs", pages("/account/", &accounts, "?tab=nfts")),
        ("account, IBC", pages("/account/", &accounts, "?tab=packets")),
        ("account, bridge", pages("/account/", &accounts, "?tab=bridge")),
        ("tokens", same("/tokens")),
        ("token", pages("/token/", &tokens, "")),
        ("token, holders", pages("/token/", &tokens, "?tab=holders")),
        ("token, earlier holders", pages("/token/", &tokens, "?tab=holders&height=1000")),
        ("collections", same("/collections")),
        ("channels", same("/ibc")),
        ("bridge", same("/bridge")),
        ("search", pages("/search?q=", &tokens, "")),
        ("holders", pages("/holders?denom=", &["GAS".to_owned()], "")),
    ])
}

/// The addresses of tokens that moved.
fn tokens(app: &App<Indexer>) -> Result<Vec<String>> {
    let reply = app.read(&format!("/indexer/ledger/v1/tokens?pagination.limit={DISTINCT}"))?;
    let page: Value = serde_json::from_slice(&reply.body)?;
    let rows = page["tokens"].as_array().context("tokens")?.iter();
    let names: Vec<_> =
        rows.filter_map(|row| row["address"].as_str().filter(|name| !name.is_empty())).collect();
    ensure!(!names.is_empty(), "no token has an address");
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// A member of rows at random offsets of a list.
fn sample(app: &App<Indexer>, list: &str, rows: &str, member: &str) -> Result<Vec<String>> {
    let read = |offset: u64| -> Result<Value> {
        let reply = app.read(&format!("{list}?pagination.limit=1&pagination.offset={offset}"))?;
        Ok(serde_json::from_slice(&reply.body)?)
    };
    let total = read(0)?["pagination"]["total"].as_str().context("a total")?.parse()?;
    let mut pick = Pick::seeded(5);
    let mut keys = Vec::new();
    for _ in 0..DISTINCT {
        let page = read(pick.below(total))?;
        let key = page.pointer(&format!("{rows}/0{member}")).and_then(Value::as_str);
        keys.push(key.with_context(|| format!("{list} has no {member}"))?.to_owned());
    }
    Ok(keys)
}
