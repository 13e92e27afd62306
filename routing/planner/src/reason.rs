//! Diagnosis of a failed search: repeats it with one limit relaxed at a time.

use chain::U256;
use registry::{AssetRef, BridgeKind, Oft, Origin, Part, Registry};

use crate::amount::{Rejection, power};
use crate::conditions::{Conditions, EdgeState, Relax};
use crate::graph::{Edge, EdgeKind};
use crate::plan::{NoRoute, Request, Step};
use crate::search::{PathEdge, search};

/// Limits in order of precedence, for a request that any one of them blocks: first those that the client can change.
const ONE_BY_ONE: [Relax; 7] = [
    Relax::Rejection(Rejection::Dust),
    Relax::Rejection(Rejection::TooSmall),
    Relax::Rejection(Rejection::TooLarge),
    Relax::Hook,
    Relax::Txs,
    Relax::Rejection(Rejection::Paused),
    Relax::Rejection(Rejection::NoQuote),
];

/// Explains why a request has no plan, after the search that found none.
pub(crate) fn why(conditions: &mut Conditions<'_>, request: &Request) -> NoRoute {
    let met = conditions.limits_met().to_vec();
    if met.is_empty() {
        return no_path(conditions, request);
    }
    let Some(unlimited) = best(conditions, request, Relax::Everything) else {
        return no_path(conditions, request);
    };
    let mut limits = ONE_BY_ONE.iter().filter(|limit| met.contains(limit));
    let path = limits.find_map(|limit| best(conditions, request, *limit)).unwrap_or(unlimited);
    first_rejection(conditions, request, &path)
}

fn best(conditions: &mut Conditions<'_>, request: &Request, relax: Relax) -> Option<Vec<PathEdge>> {
    search(conditions, request, relax).into_iter().next()
}

fn no_path(conditions: &Conditions<'_>, request: &Request) -> NoRoute {
    let of_end = [request.from, request.to].into_iter().find_map(|end| error(conditions, end));
    if let Some(why) = of_end.or_else(|| oft_error(conditions, request)) {
        return NoRoute::Doubt(why);
    }
    let from = name(conditions, request.from);
    let mut to = name(conditions, request.to);
    if request.op_withdraw {
        to.push_str(" by an optimistic bridge's withdrawal");
    }
    if let Some(only) = &request.bridges {
        let names: Vec<_> = only.iter().map(|kind: &BridgeKind| kind.id()).collect();
        to = format!("{to} over the bridges {}", names.join(", "));
    }
    NoRoute::NoPath { from, to }
}

/// Registry error of the nearest asset in the chain of parents.
fn error(conditions: &Conditions<'_>, asset: AssetRef) -> Option<String> {
    let registry = conditions.world.registry;
    let at = |asset: AssetRef| {
        let bridge = match registry[asset].origin {
            Origin::Bridged { bridge, .. } => registry.error(Part::Bridge(bridge)),
            _ => None,
        };
        let what = registry.error(Part::Asset(asset)).or(bridge)?;
        Some(format!("the registry has an error in {}: {what}", name(conditions, asset)))
    };
    ancestors(registry, asset).find_map(at)
}

/// The error of an OFT group that has both assets, or ancestors of them.
fn oft_error(conditions: &Conditions<'_>, request: &Request) -> Option<String> {
    let registry = conditions.world.registry;
    let has =
        |oft: &Oft, end| ancestors(registry, end).any(|asset| oft.legs.iter().any(|leg| leg.asset == asset));
    registry.ofts().filter(|(_, oft)| has(oft, request.from) && has(oft, request.to)).find_map(
        |(oft, group)| {
            let what = registry.error(Part::Oft(oft))?;
            Some(format!("the registry has an error in the oft {}: {what}", group.symbol))
        },
    )
}

/// An asset and its ancestors, nearest first.
fn ancestors(registry: &Registry, asset: AssetRef) -> impl Iterator<Item = AssetRef> {
    std::iter::successors(Some(asset), |asset| registry[*asset].origin.parent())
}

/// The first rejection on a path that is otherwise usable.
fn first_rejection(conditions: &mut Conditions<'_>, request: &Request, path: &[PathEdge]) -> NoRoute {
    let hops: Vec<(Edge, EdgeState<'_>)> = path
        .iter()
        .filter_map(|hop| Some((conditions.graph.edge(hop.edge), conditions.state(hop.edge)?)))
        .collect();
    let mut amount = request.amount_in;
    for (position, (edge, hop)) in hops.iter().enumerate() {
        match conditions.traverse(hop, amount, Relax::default()) {
            Ok((_, out)) => amount = out,
            Err(rejection) => {
                return stopped(conditions, request, &hops, (position, amount), rejection, edge);
            }
        }
    }
    let txs = path.last().map_or(0, |hop| usize::from(hop.tx) + 1);
    let needs_hook = path.windows(2).zip(hops.windows(2)).any(|(path, hops)| {
        let deposit = matches!(hops[0].1.step, Step::Deposit { .. });
        deposit && hops[1].1.step == Step::Wrap && path[0].tx == path[1].tx
    });
    if needs_hook && !request.op_hook { NoRoute::NeedsHook } else { NoRoute::SeveralTxs { txs } }
}

fn stopped(
    conditions: &Conditions<'_>,
    request: &Request,
    hops: &[(Edge, EdgeState<'_>)],
    (position, arriving): (usize, U256),
    rejection: Rejection,
    edge: &Edge,
) -> NoRoute {
    let (before, state) = (&hops[..position], &hops[position].1);
    let (amount, hop) = (request.amount_in, describe(conditions, edge, state.step));
    match rejection {
        Rejection::Paused => match (&state.fees.terms.paused, conditions.doubt(*edge)) {
            (None, Some(why)) => NoRoute::Doubt(format!("{hop} is not safe: {why}")),
            (of_terms, _) => {
                let why = of_terms.as_deref().or_else(|| conditions.pause(state.step));
                NoRoute::Paused(format!("{hop} is paused: {}", why.unwrap_or("no reason given")))
            }
        },
        Rejection::TooSmall => {
            let whole = least(hops, U256::ONE);
            let minimum = whole.filter(|minimum| *minimum > amount).or_else(|| {
                let this = state.fees.least(U256::ONE, U256::ZERO)?;
                least(before, this)
            });
            NoRoute::TooSmall { amount, minimum: minimum.unwrap_or(U256::MAX), hop }
        }
        Rejection::Dust => {
            let zeros = state.fees.scale.zeros_before(0);
            // With a fee, no multiple guarantees an exact result.
            let free = before.iter().all(|(_, state)| state.fees.is_free()) && state.fees.is_free();
            let zeros = before
                .iter()
                .rev()
                .filter(|_| free)
                .fold(zeros, |zeros, (_, state)| state.fees.scale.zeros_before(zeros));
            let usable = state.fees.without_dust(arriving).and_then(|here| least(before, here));
            NoRoute::Dust { multiple: power(zeros), usable: usable.filter(|usable| *usable < amount) }
        }
        Rejection::TooLarge => NoRoute::TooLarge { amount, hop },
        Rejection::NoQuote => NoRoute::NoQuote(hop),
    }
}

/// The least amount that gives `wanted` after some hops.
fn least(hops: &[(Edge, EdgeState<'_>)], wanted: U256) -> Option<U256> {
    hops.iter().rev().try_fold(wanted, |wanted, (_, state)| state.fees.least(wanted, U256::ZERO))
}

fn describe(conditions: &Conditions<'_>, edge: &Edge, step: Step) -> String {
    let registry = conditions.world.registry;
    let (from, to) = (&registry[registry[edge.from].chain].id, &registry[registry[edge.to].chain].id);
    let denom = &registry[edge.from].denom;
    match (step, edge.kind) {
        (Step::Wrap, _) => format!("wrapping {denom} on {from}"),
        (Step::Unwrap, _) => format!("unwrapping {denom} on {from}"),
        (Step::Deposit { bridge }, _) => {
            format!("the deposit of {denom} from {from} to {to} by bridge {}", registry[bridge].id)
        }
        (Step::Withdraw { bridge }, _) => {
            format!("the withdrawal of {denom} from {from} to {to} by bridge {}", registry[bridge].id)
        }
        (_, EdgeKind::LayerZero { oft, from: leg, .. }) => {
            let contract = &registry[oft].legs[leg as usize].contract;
            format!("LayerZero's contract {contract} of {denom} on {from}, towards {to},")
        }
        _ => {
            let end = step.channel().and_then(|channel| registry[channel].on(registry[edge.from].chain));
            let name = end.map_or(String::new(), |end| format!(" by {}/{}", end.port, end.channel));
            format!("the IBC transfer of {denom} from {from} to {to}{name}")
        }
    }
}

fn name(conditions: &Conditions<'_>, asset: AssetRef) -> String {
    let asset = &conditions.world.registry[asset];
    format!("{} on {}", asset.denom, conditions.world.registry[asset.chain].id)
}
