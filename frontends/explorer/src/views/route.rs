//! A form for routes between two chains. The destinations are those that the chosen asset can reach, so that the first
//! click shows a route.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use http::Method;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::planned_route::{Ends, plan, refusal};
use super::route_end::{Asset, Chain, NAME, symbol};
use crate::explorer::Explorer;
use crate::format::clipped;
use crate::layout::Page;
use crate::target::Target;
use crate::view::{Response, WaitingView};

/// Options of a list from which on it can be narrowed by what is typed, where scripts run.
const LONG: usize = 12;

/// Assets of a chain that are tried as the default source until one can go somewhere.
const TRIED: usize = 8;

/// The registry's name of the L1, whose chain and token come first in the lists.
const L1: &str = "initia";

#[derive(Deserialize)]
struct Chains {
    chains: Vec<Chain>,
}

#[derive(Default, Deserialize)]
struct OfChain {
    assets: Vec<Asset>,
}

/// Assets by chain.
type ByChain = BTreeMap<String, OfChain>;

#[derive(Deserialize)]
struct Assets {
    chain_to_assets_map: ByChain,
}

#[derive(Deserialize)]
struct Reachable {
    dest_assets: ByChain,
}

pub(crate) struct RoutePage;

impl WaitingView for RoutePage {
    const PATH: &'static str = "/route";
    const SUMMARY: &'static str = "The best route of an asset to another chain.";
    const PARAMS: &'static [Param] = &[
        Param::query("from_chain", Type::String, "Chain that the transfer starts on."),
        Param::query("from", Type::String, "Denom there."),
        Param::query("to_chain", Type::String, "Chain that it ends on."),
        Param::query("to", Type::String, "Denom there."),
        Param::query("amount", Type::String, "In the display unit of the asset."),
    ];

    fn respond<'a>(explorer: &'a Explorer, call: &'a Call<'a>) -> BoxFuture<'a, Result<Response, HttpError>> {
        Box::pin(respond(explorer, call))
    }
}

async fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
    let chains = chains(explorer).await?;
    let id_of_first = || chains.first().map(|chain| chain.chain_id.clone()).unwrap_or_default();
    let from_chain = call.first("from_chain").map_or_else(id_of_first, str::to_owned);
    let wanted_chain = call.first("to_chain");
    let mut assets = assets(explorer, &chains, &from_chain, wanted_chain).await?;
    let froms = assets.remove(&from_chain).unwrap_or_default().assets;
    let (from, mut reachable) = source(explorer, &chains, &from_chain, &froms, call.first("from")).await?;

    // The chosen destination stays in the lists, even if nothing leads there.
    let is_offered = |chain: &&Chain| {
        reachable.contains_key(&chain.chain_id) || wanted_chain == Some(chain.chain_id.as_str())
    };
    let to_chains: Vec<_> = chains.iter().filter(is_offered).collect();
    let other = to_chains.iter().find(|chain| chain.chain_id != from_chain).or(to_chains.first());
    let to_chain = wanted_chain.or(other.map(|chain| chain.chain_id.as_str())).unwrap_or_default();
    let mut tos = reachable.remove(to_chain).unwrap_or_default().assets;
    let here = if to_chain == from_chain {
        &froms[..]
    } else {
        assets.get(to_chain).map_or(&[][..], |of| &of.assets)
    };
    let wanted = call.first("to");
    if let Some(wanted) = wanted.filter(|wanted| tos.iter().all(|asset| asset.denom != *wanted))
        && let Some(asset) = here.iter().find(|asset| asset.denom == wanted)
    {
        tos.insert(0, asset.clone());
    }
    let named = |asset: &&Asset| wanted == Some(asset.denom.as_str());
    // By default the token under the same name, if it arrives under it.
    let same = |asset: &&Asset| from.is_some_and(|from| from.symbol == asset.symbol);
    let to = tos.iter().find(named).or_else(|| tos.iter().find(same)).or(tos.first());

    let amount = call.first("amount");
    let result = match (amount, from, to) {
        (None, ..) => None,
        (Some(_), ..) if !is(from, call.first("from")) => Some(missing(call.first("from"), &from_chain)),
        (Some(_), ..) if !is(to, wanted) => Some(missing(wanted, to_chain)),
        (Some(amount), Some(from), Some(to)) => {
            let ends = Ends { from_chain: &from_chain, from, to_chain, to };
            Some(plan(explorer, &ends, amount, &chains).await?)
        }
        (Some(_), ..) => Some(missing(None, &from_chain)),
    };
    let all: Vec<_> = chains.iter().collect();
    let body = html! {
        section.card {
            form.route method="get" action=(RoutePage::PATH) data-submit {
                fieldset {
                    legend { "From" }
                    (chain_select("from_chain", &all, &from_chain, "from to"))
                    (asset_select("from", &froms, from, Some("to")))
                    label { "Amount " input type="text" name="amount" inputmode="decimal" required value=(clipped(amount.unwrap_or("1"))) maxlength="100"; }
                }
                fieldset {
                    legend { "To" }
                    (chain_select("to_chain", &to_chains, to_chain, "to"))
                    (asset_select("to", &tos, to, None))
                    button type="submit" { "Find the route" }
                }
            }
            p.dim { "The destinations are those that the chosen asset can reach. After another chain or asset is chosen, the lists follow: at once with scripts, with the button without." }
        }
        @if let Some(result) = result { (result) }
    };
    let about = match (from, amount) {
        (Some(from), Some(_)) => format!("of {} to {}", symbol(from), chain::truncated(to_chain, NAME)),
        _ => String::new(),
    };
    Ok(Page { title: "Route".to_owned(), about, body, requests: Vec::new() }.into())
}

/// True if `asset` is the one that the request names, if it names one.
fn is(asset: Option<&Asset>, denom: Option<&str>) -> bool {
    denom.is_none_or(|denom| asset.is_some_and(|asset| asset.denom == denom))
}

/// The chain has no asset of this denom, or without one, none with a route.
fn missing(denom: Option<&str>, chain: &str) -> Markup {
    let chain = chain::truncated(chain, NAME);
    refusal(&match denom {
        Some(denom) => {
            format!("`{}` is not an asset of {chain}: choose one of the list", chain::truncated(denom, NAME))
        }
        None => format!("no route begins on {chain}: choose another chain"),
    })
}

/// The chains: the L1, then the others by name.
async fn chains(explorer: &Explorer) -> Result<Vec<Chain>, HttpError> {
    let Chains { mut chains } = explorer.route(Method::GET, "/v2/info/chains", b"").await?;
    chains.retain(|chain| !chain.hidden);
    chains.sort_by_cached_key(|chain| (chain.chain_name != L1, chain.display().to_lowercase()));
    Ok(chains)
}

/// All assets of two chains, in the order of the lists.
async fn assets(
    explorer: &Explorer,
    chains: &[Chain],
    from: &str,
    to: Option<&str>,
) -> Result<ByChain, HttpError> {
    let target = Target::new("/v2/fungible/assets").with("chain_ids", from).with_some("chain_ids", to);
    let Assets { chain_to_assets_map } = explorer.route(Method::GET, &target.into_string(), b"").await?;
    Ok(sorted(chain_to_assets_map, chains))
}

/// The source: the asset that the request names, else the first one that can go somewhere. With it what it can reach.
async fn source<'a>(
    explorer: &Explorer,
    chains: &[Chain],
    chain: &str,
    assets: &'a [Asset],
    wanted: Option<&str>,
) -> Result<(Option<&'a Asset>, ByChain), HttpError> {
    let wanted = wanted.filter(|denom| assets.iter().any(|asset| asset.denom == *denom));
    let candidates = assets.iter().filter(|asset| wanted.is_none_or(|denom| asset.denom == denom));
    for asset in candidates.take(TRIED) {
        let body = json!({
            "source_asset_chain_id": chain, "source_asset_denom": asset.denom, "allow_multi_tx": true,
        });
        let Reachable { mut dest_assets } = explorer
            .route(Method::POST, "/v2/fungible/assets_from_source", body.to_string().as_bytes())
            .await?;
        if let Some(here) = dest_assets.get_mut(chain) {
            here.assets.retain(|other| other.denom != asset.denom);
        }
        let reachable = sorted(dest_assets, chains);
        if !reachable.is_empty() || wanted.is_some() {
            return Ok((Some(asset), reachable));
        }
    }
    Ok((None, ByChain::new()))
}

/// Without hidden assets; on each chain the L1's token first, then by symbol.
fn sorted(mut assets: ByChain, chains: &[Chain]) -> ByChain {
    let l1 = chains.iter().find(|chain| chain.chain_name == L1);
    let is_l1s = |asset: &Asset| {
        l1.is_some_and(|l1| {
            asset.origin_chain_id == l1.chain_id
                && l1.fee_assets.iter().any(|fee| fee.denom == asset.origin_denom)
        })
    };
    for of in assets.values_mut() {
        of.assets.retain(|asset| !asset.hidden);
        of.assets
            .sort_by_cached_key(|asset| (!is_l1s(asset), symbol(asset).to_lowercase(), asset.denom.clone()));
    }
    assets.retain(|_, of| !of.assets.is_empty());
    assets
}

/// `stale` are the fields that another choice makes meaningless: the script leaves them out and submits the form.
fn chain_select(name: &str, chains: &[&Chain], chosen: &str, stale: &str) -> Markup {
    html! {
        (narrowing(name, "Search chains", chains.len()))
        label { "Chain "
            select name=(name) data-submits=(stale) {
                @for chain in chains {
                    option value=(chain.chain_id) selected[chain.chain_id == chosen] {
                        (chain::truncated(chain.display(), NAME)) " (" (chain.chain_id) ")"
                    }
                }
            }
        }
    }
}

/// A field that narrows the list with this name, if it is long; the script shows it.
fn narrowing(name: &str, label: &str, options: usize) -> Markup {
    html! {
        @if options > LONG {
            label hidden { (label) " " input type="text" data-narrows=(name) spellcheck="false" autocomplete="off"; }
        }
    }
}

/// See [`chain_select`].
fn asset_select(name: &str, assets: &[Asset], chosen: Option<&Asset>, stale: Option<&str>) -> Markup {
    let is_chosen = |asset: &Asset| chosen.is_some_and(|chosen| chosen.denom == asset.denom);
    html! {
        (narrowing(name, "Search assets", assets.len()))
        label { "Asset "
            select name=(name) data-submits=[stale] {
                @for asset in assets {
                    option value=(asset.denom) selected[is_chosen(asset)] {
                        (symbol(asset))
                        @if let Some(name) = asset.name.as_deref() { " – " (chain::truncated(name, NAME)) }
                        " (" (chain::truncated(&asset.denom, 16)) ")"
                    }
                }
            }
        }
    }
}
