//! The best route between two assets, with its hops, fees and duration, or why there is none.

#![expect(clippy::struct_field_names, reason = "the names of the API")]

use std::collections::BTreeMap;

use chain::U256;
use http::Method;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use web::http_error::HttpError;

use super::route_end::{Asset, Chain, symbol};
use super::transfer::TransferPage;
use crate::explorer::Explorer;
use crate::format::{base_units, clipped, coin, count, duration, none, pre, short, whole_time};
use crate::layout::{facts, section, sentence};
use crate::routing::Unit;
use crate::view::WaitingView as _;

/// The venue of a conversion by the ERC20Wrapper.
const WRAPPER: &str = "erc20-wrapper";
/// The kind of a hop over the optimistic bridge, which takes days on the way to the L1 and costs nothing.
const BRIDGE: &str = "op_init_transfer";
/// Characters of a name.
const NAME: usize = 60;

#[derive(Deserialize)]
struct Route {
    amount_out: String,
    operations: Vec<Operation>,
    txs_required: u64,
    estimated_route_duration_seconds: u64,
    estimated_fees: Vec<Fee>,
    required_op_hook: bool,
    #[serde(default)]
    does_swap: bool,
    swap_price_impact_percent: Option<String>,
    quoted_at: Option<QuotedAt>,
    warning: Option<Value>,
    usd_amount_in: Option<String>,
    usd_amount_out: Option<String>,
    #[serde(default)]
    alternatives: Vec<Alternative>,
}

#[derive(Deserialize)]
struct QuotedAt {
    height: u64,
    time: String,
}

#[derive(Deserialize)]
struct Alternative {
    amount_out: String,
    operations: Vec<Operation>,
    txs_required: u64,
    estimated_route_duration_seconds: u64,
}

#[derive(Deserialize)]
struct Operation {
    tx_index: u64,
    amount_in: String,
    amount_out: String,
    /// The hop, under the name of its kind.
    #[serde(flatten)]
    kind: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Hop {
    from_chain_id: String,
    to_chain_id: String,
    chain_id: String,
    denom_in: String,
    denom_out: String,
    bridge_id: String,
    swap_venues: Vec<Venue>,
    swap_in: Swap,
}

/// The pools of a swap.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Swap {
    swap_operations: Vec<SwapStep>,
}

#[derive(Deserialize)]
struct SwapStep {
    pool: String,
}

#[derive(Deserialize)]
struct Venue {
    name: String,
}

#[derive(Deserialize)]
struct Fee {
    amount: String,
    chain_id: String,
    denom: String,
    fee_behavior: String,
}

/// The two ends of a route.
pub(super) struct Ends<'a> {
    pub(super) from_chain: &'a str,
    pub(super) from: &'a Asset,
    pub(super) to_chain: &'a str,
    pub(super) to: &'a Asset,
}

/// The best route, or why there is none.
pub(super) async fn plan(
    explorer: &Explorer,
    ends: &Ends<'_>,
    amount: &str,
    chains: &[Chain],
) -> Result<Markup, HttpError> {
    let decimals = ends.from.decimals.unwrap_or(0);
    let Some(amount_in) = base_units(amount, decimals) else {
        return Ok(refusal(&format!(
            "the amount is `{}`, but must be a decimal number with at most {decimals} decimal places",
            chain::truncated(amount, NAME)
        )));
    };
    let body = json!({
        "amount_in": amount_in,
        "source_asset_chain_id": ends.from_chain, "source_asset_denom": ends.from.denom,
        "dest_asset_chain_id": ends.to_chain, "dest_asset_denom": ends.to.denom,
        "allow_multi_tx": true,
    })
    .to_string();
    let route: Result<Route, _> = explorer.route(Method::POST, "/v2/fungible/route", body.as_bytes()).await;
    let found = match route {
        Ok(route) => {
            html! { (drawn(explorer, ends, &amount_in, &route, chains)) (tracking(ends.from_chain)) }
        }
        Err(error) if error.status().is_client_error() => refusal(error.message()),
        Err(error) => return Err(error),
    };
    Ok(html! {
        (found)
        details.request { summary { "The same as JSON" } (pre(&format!("POST /v2/fungible/route\n{body}"))) }
    })
}

/// A form that registers the transaction of a transfer on this route, and shows its progress.
fn tracking(chain: &str) -> Markup {
    section(
        "Follow a transfer",
        &html! {
            form.filter method="post" action=(TransferPage::PATH) {
                input type="hidden" name="chain_id" value=(chain);
                label { "Hash of the first transaction, once it is broadcast on " (chain::truncated(chain, NAME))
                    input type="text" name="tx_hash" required maxlength="100" spellcheck="false" autocomplete="off";
                }
                button type="submit" { "Track" }
            }
        },
    )
}

/// Why there is no route.
pub(super) fn refusal(why: &str) -> Markup {
    html! { section.card { h2 { "No route" } p.problem role="alert" { bdi { (clipped(sentence(why))) } } } }
}

fn drawn(explorer: &Explorer, ends: &Ends<'_>, amount_in: &str, route: &Route, chains: &[Chain]) -> Markup {
    let unit = |asset: &Asset| asset.decimals.map(|decimals| Unit { symbol: symbol(asset), decimals });
    let usd = |amount: Option<&str>| amount.map(|amount| format!(" (${amount})")).unwrap_or_default();
    let body = html! {
        (facts(vec![
            ("You send", html! { (coin(amount_in, &ends.from.denom, unit(ends.from).as_ref())) (usd(route.usd_amount_in.as_deref())) }),
            ("You receive", html! { strong { (coin(&route.amount_out, &ends.to.denom, unit(ends.to).as_ref())) } (usd(route.usd_amount_out.as_deref())) }),
            ("Duration", html! { "about " (duration(route.estimated_route_duration_seconds)) }),
            ("Transactions to sign", html! { (route.txs_required) @if route.required_op_hook { ", with a signed hook" } }),
            ("Fees of bridges", fees(explorer, &route.estimated_fees)),
        ]))
        @if route.does_swap {
            (facts(vec![
                ("Received at least", html! { (coin(&least(&route.amount_out), &ends.to.denom, unit(ends.to).as_ref())) " with a tolerance of " (TOLERANCE) " %" }),
                ("Price impact", route.swap_price_impact_percent.as_ref().map_or_else(none, |percent| html! { bdi { (clipped(percent)) } " %" })),
                ("Quoted", route.quoted_at.as_ref().map_or_else(none, |at| html! { "at block " (count(at.height)) ", " (whole_time(&at.time)) })),
            ]))
        }
        @if let Some(warning) = route.warning.as_ref().and_then(|warning| warning["message"].as_str()) {
            p.problem role="alert" { (clipped(warning)) }
        }
        (hops(explorer, &route.operations, chains))
    };
    let is_slower = |other: &&Alternative| {
        other.estimated_route_duration_seconds > route.estimated_route_duration_seconds
            && other.operations.first().is_some_and(|operation| operation.kind.contains_key(BRIDGE))
    };
    let lossless = route.alternatives.iter().filter(|_| route.does_swap).find(is_slower);
    let Some(lossless) = lossless else { return section("Best route", &body) };
    let other = html! {
        (facts(vec![
            ("You receive", html! { strong { (coin(&lossless.amount_out, &ends.to.denom, unit(ends.to).as_ref())) } }),
            ("Duration", html! { "about " (duration(lossless.estimated_route_duration_seconds)) }),
            ("Transactions to sign", html! { (lossless.txs_required) }),
        ]))
        (hops(explorer, &lossless.operations, chains))
    };
    html! { (section("Best route: fast", &body)) (section("Lossless", &other)) }
}

fn hops(explorer: &Explorer, operations: &[Operation], chains: &[Chain]) -> Markup {
    html! { ol.hops { @for operation in operations { (hop(explorer, operation, chains)) } } }
}

/// Usual tolerance of a swap, in percent.
const TOLERANCE: &str = "0.5";

/// An amount less the usual tolerance, rounded down.
fn least(amount: &str) -> String {
    let kept = U256::from_str_radix(amount, 10).ok().and_then(|amount| amount.checked_mul(U256::from(995)));
    kept.map(|kept| (kept / U256::from(1_000)).to_string()).unwrap_or_default()
}

/// How much of the one asset there is for one unit of the other, in base units.
fn rate(operation: &Operation, unit: &Unit) -> Option<String> {
    let number = |text: &str| U256::from_str_radix(text, 10).ok();
    let one = U256::from(10).checked_pow(U256::from(unit.decimals))?;
    let rate = number(&operation.amount_out)?.checked_mul(one)?.checked_div(number(&operation.amount_in)?)?;
    Some(rate.to_string())
}

fn fees(explorer: &Explorer, fees: &[Fee]) -> Markup {
    html! {
        @for (place, fee) in fees.iter().enumerate() {
            @if place > 0 { ", " }
            (coin(&fee.amount, &fee.denom, explorer.unit_on(&fee.chain_id, &fee.denom).as_ref()))
            @if fee.fee_behavior == "FEE_BEHAVIOR_DEDUCTED" { " (deducted)" } @else { " (in addition)" }
        }
        @if fees.is_empty() { "none" }
    }
}

fn hop(explorer: &Explorer, operation: &Operation, chains: &[Chain]) -> Markup {
    let Some((kind, hop)) = operation.kind.iter().find(|(_, value)| value.is_object()) else {
        return html! {};
    };
    // The members differ by kind; absent ones stay empty.
    let hop: Hop = serde_json::from_value(hop.clone()).unwrap_or_default();
    let name = |id: &str| {
        let chain = chains.iter().find(|chain| chain.chain_id == id);
        chain.map_or_else(|| id.to_owned(), |chain| chain::truncated(chain.display(), NAME))
    };
    let from = if hop.from_chain_id.is_empty() { &hop.chain_id } else { &hop.from_chain_id };
    let to = if hop.to_chain_id.is_empty() { from } else { &hop.to_chain_id };
    let (unit_in, unit_out) = (explorer.unit_on(from, &hop.denom_in), explorer.unit_on(to, &hop.denom_out));
    let is_swap = kind == "swap" && hop.swap_venues.iter().any(|venue| venue.name != WRAPPER);
    let rate = unit_in.as_ref().filter(|_| is_swap).and_then(|unit| Some((unit, rate(operation, unit)?)));
    let venues: Vec<_> = hop.swap_venues.iter().map(|venue| chain::truncated(&venue.name, NAME)).collect();
    html! {
        li {
            div.end { strong { (name(from)) } (coin(&operation.amount_in, &hop.denom_in, unit_in.as_ref())) }
            div.via {
                span.tag { @if is_swap { "Swap" } @else { (label(kind, &hop.bridge_id)) } }
                @if is_swap { span.dim { "at " bdi { (venues.join(", ")) } } }
                @if is_swap {
                    @for step in &hop.swap_in.swap_operations {
                        span.dim title=(chain::truncated(&step.pool, 300)) { "pool " bdi { (short(&step.pool)) } }
                    }
                }
                @if let Some((unit, rate)) = rate {
                    span.dim { "1 " bdi { (unit.symbol) } " = " (coin(&rate, &hop.denom_out, unit_out.as_ref())) }
                }
                span.dim { "transaction " (operation.tx_index + 1) }
            }
            div.end { strong { (name(to)) } (coin(&operation.amount_out, &hop.denom_out, unit_out.as_ref())) }
        }
    }
}

fn label(kind: &str, bridge: &str) -> String {
    match (kind, bridge) {
        (_, "OPINIT") => "Optimistic bridge".to_owned(),
        (_, "LAYER_ZERO") => "LayerZero".to_owned(),
        ("swap", _) => "Wrap".to_owned(),
        (_, "") => kind.replace('_', " "),
        (_, bridge) => bridge.to_owned(),
    }
}
