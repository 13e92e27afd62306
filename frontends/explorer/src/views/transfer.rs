//! Progress of a registered transfer, hop by hop; it is fetched again until its state is final.

#![expect(clippy::struct_field_names, reason = "the names of the API")]

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use http::Method;
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::{clipped, coin, is_web, none, pre, short, text, time};
use crate::layout::Page;
use crate::layout::{facts, section, sentence};
use crate::target::{self, Target};
use crate::view::{Response, RouteForm, WaitingView};

/// Seconds between two requests of the script.
const POLL: &str = "2";

#[derive(Deserialize)]
struct Status {
    state: String,
    transfer_sequence: Vec<BTreeMap<String, Hop>>,
    next_blocking_transfer: Option<Blocking>,
    transfer_asset_release: Option<Release>,
    #[serde(default)]
    swaps: Vec<Swap>,
    error: Option<TransferError>,
}

#[derive(Deserialize)]
struct Swap {
    chain_id: String,
    tx: Option<Tx>,
    /// Number of hops before it.
    transfer_sequence_index: usize,
    denom_in: Option<String>,
    amount_in: String,
    denom_out: Option<String>,
    amount_out: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Blocking {
    transfer_sequence_index: usize,
}

#[derive(Deserialize)]
struct Release {
    chain_id: String,
    denom: String,
    amount: Option<String>,
    released: bool,
}

#[derive(Deserialize)]
struct TransferError {
    message: String,
}

#[derive(Deserialize)]
struct Hop {
    from_chain_id: String,
    to_chain_id: String,
    state: String,
    #[serde(alias = "packet_txs")]
    txs: Txs,
    withdrawal: Option<Withdrawal>,
}

#[derive(Deserialize)]
struct Txs {
    send_tx: Option<Tx>,
    receive_tx: Option<Tx>,
    acknowledge_tx: Option<Tx>,
    timeout_tx: Option<Tx>,
    compose_tx: Option<Tx>,
    error_tx: Option<Tx>,
    error: Option<TransferError>,
}

#[derive(Deserialize)]
struct Tx {
    chain_id: String,
    tx_hash: String,
    /// A page about it; empty if the registry has none.
    #[serde(default)]
    explorer_link: String,
    on_chain_at: Option<String>,
}

#[derive(Deserialize)]
struct Withdrawal {
    phase: String,
    claimable_at: Option<String>,
    output_tx: Option<Tx>,
}

pub(crate) struct TransferPage;

impl WaitingView for TransferPage {
    const PATH: &'static str = "/transfer";
    const SUMMARY: &'static str = "Progress of a registered transfer.";
    const PARAMS: &'static [Param] = &[
        Param::query("chain_id", Type::String, "The chain that it was broadcast on."),
        Param::query("tx_hash", Type::String, "Its hash."),
    ];

    fn respond<'a>(explorer: &'a Explorer, call: &'a Call<'a>) -> BoxFuture<'a, Result<Response, HttpError>> {
        Box::pin(respond(explorer, call))
    }
}

async fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
    let (chain, hash) = (call.first("chain_id"), call.first("tx_hash"));
    let progress = if let (Some(chain), Some(hash)) = (chain, hash) {
        let target = Target::new("/v2/tx/status").with("chain_id", chain).with("tx_hash", hash).into_string();
        let found = match explorer.route::<Status>(Method::GET, &target, b"").await {
            Ok(status) => progress(explorer, &status),
            Err(error) if error.status().is_client_error() => unknown(&error, chain, hash),
            Err(error) => return Err(error),
        };
        html! {
            (found)
            details.request { summary { "The same as JSON" } (pre(&format!("GET {target}"))) }
        }
    } else {
        html! {}
    };
    let body = html! {
        section.card {
            form.filter method="get" action=(TransferPage::PATH) {
                label { "Chain id " input type="text" name="chain_id" required value=[chain.map(clipped)] maxlength="100" spellcheck="false"; }
                label { "Hash " input type="text" name="tx_hash" required value=[hash.map(clipped)] maxlength="100" spellcheck="false"; }
                button type="submit" { "Show" }
            }
        }
        (progress)
    };
    let about = hash.map(short).unwrap_or_default();
    Ok(Page { title: "Transfer".to_owned(), about, body, requests: Vec::new() }.into())
}

fn unknown(error: &HttpError, chain: &str, hash: &str) -> Markup {
    html! {
        section.card {
            p.problem role="alert" { bdi { (clipped(sentence(error.message()))) } }
            p.dim { "A transfer is followed once it is registered, by this button or by " code { "POST /v2/tx/track" } "." }
            form method="post" action=(TransferPage::PATH) {
                input type="hidden" name="chain_id" value=(clipped(chain));
                input type="hidden" name="tx_hash" value=(clipped(hash));
                button type="submit" { "Follow it" }
            }
        }
    }
}

impl RouteForm for TransferPage {
    fn submit<'a>(explorer: &'a Explorer, call: &'a Call<'a>) -> BoxFuture<'a, Result<Response, HttpError>> {
        Box::pin(track(explorer, call))
    }
}

/// Registers the transfer that the form names, and leads to its progress.
async fn track(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
    // Browsers say where a form comes from; those of other sites would act in the name of their visitors.
    if call.header("sec-fetch-site").is_some_and(|site| !["same-origin", "none"].contains(&site)) {
        return Err(HttpError::bad_request(
            "the form was sent from another site: open this page and send it here",
        ));
    }
    let form: Vec<_> = form_urlencoded::parse(call.body()).collect();
    let field = |name: &str| form.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_ref());
    let missing = |name| HttpError::bad_request(format!("the form lacks {name}"));
    let chain = field("chain_id").ok_or_else(|| missing("chain_id"))?;
    let hash = field("tx_hash").ok_or_else(|| missing("tx_hash"))?;
    let body = json!({ "chain_id": chain, "tx_hash": hash }).to_string();
    let _: IgnoredAny =
        explorer.route_for(call.client(), Method::POST, "/v2/tx/track", body.as_bytes()).await?;
    let page = Target::new(TransferPage::PATH).with("chain_id", chain).with("tx_hash", hash);
    Ok(Response::Redirect(page.into_string()))
}

fn progress(explorer: &Explorer, status: &Status) -> Markup {
    let is_final = status.state.starts_with("STATE_COMPLETED") || status.state == "STATE_ABANDONED";
    let waiting = status.next_blocking_transfer.as_ref().map(|of| of.transfer_sequence_index);
    let hops: Vec<_> = status.transfer_sequence.iter().flatten().collect();
    let swaps_before = |place| status.swaps.iter().filter(move |swap| swap.transfer_sequence_index == place);
    html! {
        div #progress data-live data-poll=[(!is_final).then_some(POLL)] aria-live="polite" {
            (section("Progress", &html! {
                (facts(vec![
                    ("State", state(&status.state)),
                    ("Tokens", status.transfer_asset_release.as_ref().map_or_else(none, |at| release(explorer, at))),
                    ("Error", status.error.as_ref().map_or_else(none, |error| text(&error.message))),
                ]))
                ol.hops {
                    @for place in 0..=hops.len() {
                        @for swap in swaps_before(place) { (swapped(explorer, swap)) }
                        @if let Some((kind, hop)) = hops.get(place) {
                            (drawn(explorer, kind, hop, waiting == Some(place)))
                        }
                    }
                }
                @if hops.is_empty() && status.swaps.is_empty() { p.empty { "No hop has been found yet." } }
            }))
        }
    }
}

/// The last words of a state.
fn state(name: &str) -> Markup {
    let words = name.trim_start_matches("STATE_").replace('_', " ").to_lowercase();
    let class = match name {
        "STATE_COMPLETED_SUCCESS" => "badge good",
        "STATE_COMPLETED_ERROR" | "STATE_ABANDONED" => "badge bad",
        _ => "badge",
    };
    html! { span class=(class) { (words) } }
}

fn release(explorer: &Explorer, at: &Release) -> Markup {
    let unit = explorer.unit_on(&at.chain_id, &at.denom);
    html! {
        @if let Some(amount) = &at.amount { (coin(amount, &at.denom, unit.as_ref())) } @else { bdi { (clipped(&at.denom)) } }
        " on " bdi { (at.chain_id) }
        @if !at.released { span.dim { " (not released yet)" } }
    }
}

fn drawn(explorer: &Explorer, kind: &str, hop: &Hop, is_waiting: bool) -> Markup {
    let kind = match kind {
        "ibc_transfer" => "IBC",
        "op_init_transfer" => "Optimistic bridge",
        "layer_zero_transfer" => "LayerZero",
        other => other,
    };
    let output = hop.withdrawal.as_ref().and_then(|of| of.output_tx.as_ref());
    let txs = [
        ("sent", hop.txs.send_tx.as_ref()),
        ("proposed", output),
        ("received", hop.txs.receive_tx.as_ref()),
        ("acknowledged", hop.txs.acknowledge_tx.as_ref()),
        ("timed out", hop.txs.timeout_tx.as_ref()),
        ("composed", hop.txs.compose_tx.as_ref()),
        ("failed", hop.txs.error_tx.as_ref()),
    ];
    let words = hop.state.rsplit("TRANSFER_").next().unwrap_or_default().replace('_', " ").to_lowercase();
    html! {
        li.waiting[is_waiting] {
            div.end { strong { bdi { (hop.from_chain_id) } } }
            div.via {
                span.tag { (kind) }
                span { (words) @if is_waiting { " – waiting" } }
                @for (name, tx) in txs { @if let Some(tx) = tx { (step(explorer, name, tx)) } }
                @if let Some(of) = &hop.withdrawal {
                    span.dim { "withdrawal " (of.phase.to_lowercase()) @if let Some(at) = &of.claimable_at { ", claimable " (time(at)) } }
                }
                @if let Some(error) = &hop.txs.error { span.problem { bdi { (clipped(&error.message)) } } }
            }
            div.end { strong { bdi { @if hop.to_chain_id.is_empty() { "?" } @else { (hop.to_chain_id) } } } }
        }
    }
}

/// A swap, with what was paid and what came of it.
fn swapped(explorer: &Explorer, swap: &Swap) -> Markup {
    let tokens = |amount: Option<&String>, denom: Option<&String>| match (amount, denom) {
        (Some(amount), Some(denom)) => coin(amount, denom, explorer.unit_on(&swap.chain_id, denom).as_ref()),
        (Some(amount), None) => html! { (amount) " of an unnamed token" },
        (None, _) => none(),
    };
    html! {
        li {
            div.end { strong { bdi { (swap.chain_id) } } (tokens(Some(&swap.amount_in), swap.denom_in.as_ref())) }
            div.via {
                span.tag { "Swap" }
                span { @if swap.error.is_some() { "failed" } @else { "done" } }
                @if let Some(tx) = &swap.tx { (step(explorer, "swapped", tx)) }
                @if let Some(error) = &swap.error { span.problem { bdi { (clipped(error)) } } }
            }
            div.end { strong { bdi { (swap.chain_id) } } (tokens(swap.amount_out.as_ref(), swap.denom_out.as_ref())) }
        }
    }
}

/// A transaction of a hop: a link to its page here, or else to the one that the registry has for its chain.
fn step(explorer: &Explorer, name: &str, tx: &Tx) -> Markup {
    let shown = short(&tx.tx_hash);
    html! {
        span.step {
            (name) " "
            @if explorer.has_index() && tx.chain_id == explorer.chain_id() {
                a.mono href=(target::search(&tx.tx_hash)) title=(tx.tx_hash) { (shown) }
            } @else if is_web(&tx.explorer_link) {
                a.mono href=(tx.explorer_link) title=(tx.tx_hash) rel="noopener noreferrer nofollow" { (shown) }
            } @else {
                span.mono title=(tx.tx_hash) { (shown) }
            }
            @if let Some(at) = &tx.on_chain_at { " " span.dim { (time(at)) } }
        }
    }
}
