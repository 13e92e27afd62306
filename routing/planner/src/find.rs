//! Entry point of the planner: a request to plans, or to the reason why none exists.

use chain::U256;

use crate::conditions::{Conditions, Relax};
use crate::graph::Graph;
use crate::plan::{Hop, NoRoute, Plan, Request, Step, World};
use crate::reason;
use crate::search::{PathEdge, search};

/// Plans of a transfer: the best one, then up to two alternatives with other steps.
///
/// `graph` is that of `world.registry`. Plans are compared by these criteria in order: fewer withdrawals with days of
/// waiting, fewer trusted steps (deposit, withdrawal, LayerZero), no op hook, fewer transactions, larger amount out,
/// less time, fewer hops, names. A withdrawal that was not requested is planned only if there is no other route. A plan
/// visits no asset twice and has at most [`crate::MAX_HOPS`] hops; amounts are exact.
///
/// A plan is no alternative if a better plan visits only a subset of its assets. The effort to find alternatives is
/// bounded, so in very dense registries some may be missing; the best plan is always found.
///
/// The error names the limit that blocks the transfer. If removing any one of several is enough, it is the first of:
/// dust, amount, op hook, number of transactions, pause, quote.
pub fn plan(graph: &Graph, world: World<'_>, request: &Request) -> Result<Vec<Plan>, NoRoute> {
    if request.from == request.to && !request.op_withdraw {
        return send(request).map(|plan| vec![plan]);
    }
    let mut conditions = Conditions::new(graph, world, request);
    let plans = found(&mut conditions, request);
    if plans.is_empty() { Err(reason::why(&mut conditions, request)) } else { Ok(plans) }
}

/// As [`plan`] between two assets, but without a reason if there are none.
pub(crate) fn plans(graph: &Graph, world: World<'_>, request: &Request) -> Vec<Plan> {
    found(&mut Conditions::new(graph, world, request), request)
}

fn found(conditions: &mut Conditions<'_>, request: &Request) -> Vec<Plan> {
    let paths = search(conditions, request, Relax::Nothing);
    paths.iter().filter_map(|path| to_plan(conditions, path, request.amount_in)).collect()
}

/// A send to another account of the same chain.
fn send(request: &Request) -> Result<Plan, NoRoute> {
    let amount = request.amount_in;
    if amount.is_zero() {
        return Err(NoRoute::TooSmall { amount, minimum: U256::ONE, hop: "a send".to_owned() });
    }
    let (from, to) = (request.from, request.to);
    let hop = Hop { step: Step::Send, from, to, amount_in: amount, amount_out: amount, tx: 0, seconds: 0 };
    Ok(Plan { hops: vec![hop], swap: None })
}

/// Converts a path of the search to a plan; `None` if an edge is unusable, which the search excludes.
fn to_plan(conditions: &mut Conditions<'_>, path: &[PathEdge], amount_in: U256) -> Option<Plan> {
    let (mut amount, mut hops) = (amount_in, Vec::with_capacity(path.len()));
    for hop in path {
        let edge = conditions.graph.edge(hop.edge);
        let state = conditions.state(hop.edge)?;
        let (step, amount_out) = conditions.traverse(&state, amount, Relax::Nothing).ok()?;
        hops.push(Hop {
            step,
            from: edge.from,
            to: edge.to,
            amount_in: amount,
            amount_out,
            tx: usize::from(hop.tx),
            seconds: state.seconds,
        });
        amount = amount_out;
    }
    (!hops.is_empty()).then_some(Plan { hops, swap: None })
}
