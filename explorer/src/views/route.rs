//! A form for routes between two chains, and the best route with its hops, fees and duration.

#![expect(clippy::struct_field_names, reason = "the names of the API")]

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use http::Method;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::{base_units, clipped, coin, duration};
use crate::layout::Page;
use crate::layout::{facts, section};
use crate::routing::Unit;
use crate::target::Target;
use crate::view::{Answer, RouteView};

/// Characters of a name in a list of options.
const NAME: usize = 60;

/// A chain that routes can begin or end on.
#[derive(Deserialize)]
struct Chain {
    chain_id: String,
    pretty_name: String,
    #[serde(default)]
    hidden: bool,
}

#[derive(Deserialize)]
struct Chains {
    chains: Vec<Chain>,
}

/// An asset on a chain.
#[derive(Deserialize)]
struct Asset {
    denom: String,
    symbol: Option<String>,
    name: Option<String>,
    decimals: Option<u8>,
    #[serde(default)]
    hidden: bool,
}

#[derive(Deserialize)]
struct Assets {
    chain_to_assets_map: BTreeMap<String, OfChain>,
}

#[derive(Default, Deserialize)]
struct OfChain {
    assets: Vec<Asset>,
}

#[derive(Deserialize)]
struct Route {
    amount_out: String,
    operations: Vec<Operation>,
    txs_required: u64,
    estimated_route_duration_seconds: u64,
    estimated_fees: Vec<Fee>,
    required_op_hook: bool,
    warning: Option<Value>,
    usd_amount_in: Option<String>,
    usd_amount_out: Option<String>,
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
}

#[derive(Deserialize)]
struct Fee {
    amount: String,
    chain_id: String,
    denom: String,
    fee_behavior: String,
}

pub(crate) struct RoutePage;

impl RouteView for RoutePage {
    const PATH: &'static str = "/route";
    const SUMMARY: &'static str = "The best route of an asset to another chain.";
    const PARAMS: &'static [Param] = &[
        Param::query("from_chain", Type::String, "Chain that the transfer starts on."),
        Param::query("from", Type::String, "Denom there."),
        Param::query("to_chain", Type::String, "Chain that it ends on."),
        Param::query("to", Type::String, "Denom there."),
        Param::query("amount", Type::String, "In the display unit of the asset."),
    ];

    fn answer<'a>(explorer: &'a Explorer, call: &'a Call<'a>) -> BoxFuture<'a, Result<Answer, HttpError>> {
        Box::pin(answer(explorer, call))
    }
}

async fn answer(explorer: &Explorer, call: &Call<'_>) -> Result<Answer, HttpError> {
    let Chains { mut chains } = explorer.route(Method::GET, "/v2/info/chains", b"").await?;
    chains.retain(|chain| !chain.hidden);
    let chosen = |name, otherwise: Option<&Chain>| {
        let chain = call.first(name).map(str::to_owned);
        chain.or_else(|| otherwise.map(|chain| chain.chain_id.clone())).unwrap_or_default()
    };
    let from_chain = chosen("from_chain", chains.first());
    let to_chain = chosen("to_chain", chains.get(1).or(chains.first()));
    let target =
        Target::new("/v2/fungible/assets").with("chain_ids", &from_chain).with("chain_ids", &to_chain);
    let Assets { chain_to_assets_map: mut assets } =
        explorer.route(Method::GET, &target.into_string(), b"").await?;
    for of in assets.values_mut() {
        of.assets.retain(|asset| !asset.hidden);
    }
    let of = |chain: &str| assets.get(chain).map_or(&[] as &[Asset], |of| &of.assets);
    let (froms, tos) = (of(&from_chain), of(&to_chain));
    let from = froms.iter().find(|asset| Some(asset.denom.as_str()) == call.first("from"));
    let to = tos.iter().find(|asset| Some(asset.denom.as_str()) == call.first("to"));
    let amount = call.first("amount");
    let result = match (from, to, amount) {
        (Some(from), Some(to), Some(amount)) => {
            let ends = Ends { from_chain: &from_chain, from, to_chain: &to_chain, to };
            Some(plan(explorer, &ends, amount, &chains).await?)
        }
        _ => None,
    };
    let body = html! {
        section.card {
            form.route method="get" action=(RoutePage::PATH) data-submit {
                fieldset {
                    legend { "From" }
                    (chain_select("from_chain", "Chain", &chains, &from_chain))
                    (asset_select("from", "Asset", froms, call.first("from")))
                    label { "Amount " input type="text" name="amount" inputmode="decimal" required value=(clipped(amount.unwrap_or("1"))) maxlength="100"; }
                }
                fieldset {
                    legend { "To" }
                    (chain_select("to_chain", "Chain", &chains, &to_chain))
                    (asset_select("to", "Asset", tos, call.first("to")))
                    button type="submit" { "Find the route" }
                }
            }
            p.dim { "After another chain is chosen, the button loads its assets." }
        }
        @if let Some(result) = result { (result) }
    };
    Ok(Page { title: "Route".to_owned(), body, requests: Vec::new() }.into())
}

fn chain_select(name: &str, label: &str, chains: &[Chain], chosen: &str) -> Markup {
    html! {
        label { (label) " "
            select name=(name) data-submits {
                @for chain in chains {
                    option value=(chain.chain_id) selected[chain.chain_id == chosen] {
                        (chain::truncated(display(chain), NAME)) " (" (chain.chain_id) ")"
                    }
                }
            }
        }
    }
}

fn asset_select(name: &str, label: &str, assets: &[Asset], chosen: Option<&str>) -> Markup {
    html! {
        label { (label) " "
            select name=(name) {
                @for asset in assets {
                    option value=(asset.denom) selected[chosen == Some(asset.denom.as_str())] {
                        (chain::truncated(asset.symbol.as_deref().unwrap_or(&asset.denom), NAME))
                        @if let Some(name) = asset.name.as_deref() { " – " (chain::truncated(name, NAME)) }
                        " (" (chain::truncated(&asset.denom, 16)) ")"
                    }
                }
            }
        }
    }
}

fn display(chain: &Chain) -> &str {
    if chain.pretty_name.is_empty() { &chain.chain_id } else { &chain.pretty_name }
}

/// The two ends of a route.
struct Ends<'a> {
    from_chain: &'a str,
    from: &'a Asset,
    to_chain: &'a str,
    to: &'a Asset,
}

/// The best route, or why there is none.
async fn plan(
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
        Ok(route) => html! { (drawn(explorer, ends, &amount_in, &route, chains)) },
        Err(error) if error.status().is_client_error() => refusal(error.message()),
        Err(error) => return Err(error),
    };
    Ok(html! {
        (found)
        details.request { summary { "The same as JSON" } pre { "POST /v2/fungible/route\n" (body) } }
    })
}

fn refusal(why: &str) -> Markup {
    html! { section.card { h2 { "No route" } p.problem role="alert" { bdi { (clipped(why)) } } } }
}

fn drawn(explorer: &Explorer, ends: &Ends<'_>, amount_in: &str, route: &Route, chains: &[Chain]) -> Markup {
    let unit = |asset: &Asset| {
        let symbol = asset.symbol.clone().unwrap_or_else(|| chain::truncated(&asset.denom, 20));
        asset.decimals.map(|decimals| Unit { symbol, decimals })
    };
    let usd = |amount: Option<&str>| amount.map(|amount| format!(" (${amount})")).unwrap_or_default();
    let body = html! {
        (facts(vec![
            ("You send", html! { (coin(amount_in, &ends.from.denom, unit(ends.from).as_ref())) (usd(route.usd_amount_in.as_deref())) }),
            ("You receive", html! { strong { (coin(&route.amount_out, &ends.to.denom, unit(ends.to).as_ref())) } (usd(route.usd_amount_out.as_deref())) }),
            ("Duration", html! { "about " (duration(route.estimated_route_duration_seconds)) }),
            ("Transactions to sign", html! { (route.txs_required) @if route.required_op_hook { ", with a signed hook" } }),
            ("Fees of bridges", fees(explorer, &route.estimated_fees)),
        ]))
        @if let Some(warning) = route.warning.as_ref().and_then(|warning| warning["message"].as_str()) {
            p.problem role="alert" { (clipped(warning)) }
        }
        ol.hops {
            @for operation in &route.operations { (hop(explorer, operation, chains)) }
        }
    };
    section("Best route", &body)
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
        chain.map_or_else(|| id.to_owned(), |chain| chain::truncated(display(chain), NAME))
    };
    let from = if hop.from_chain_id.is_empty() { &hop.chain_id } else { &hop.from_chain_id };
    let to = if hop.to_chain_id.is_empty() { from } else { &hop.to_chain_id };
    html! {
        li {
            div.end { strong { (name(from)) } (coin(&operation.amount_in, &hop.denom_in, explorer.unit_on(from, &hop.denom_in).as_ref())) }
            div.via {
                span.tag { (label(kind, &hop.bridge_id)) }
                span.dim { "transaction " (operation.tx_index + 1) }
            }
            div.end { strong { (name(to)) } (coin(&operation.amount_out, &hop.denom_out, explorer.unit_on(to, &hop.denom_out).as_ref())) }
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
