//! Entry point of the planner: a request to plans, or to the reason why none exists.

use chain::U256;

use crate::conditions::{Conditions, Relax};
use crate::graph::Graph;
use crate::plan::{Hop, NoRoute, Plan, Request, Step, World};
use crate::reason;
use crate::search::{PathEdge, search};

/// Ways to make a transfer: the best first, then up to two alternatives that take other steps.
///
/// `graph` is that of `world.registry`. Of two paths, that is better which has fewer withdrawals with days of waiting,
/// then fewer trusted steps (deposit, withdrawal, LayerZero), needs no op hook, has fewer transactions, brings more,
/// takes less time, has fewer hops; then names decide. Withdrawals that were not asked for are given only if there is
/// nothing else. A plan has no asset twice and at most [`crate::MAX_HOPS`] hops; amounts are exact.
///
/// An alternative is no detour: no better plan meets only assets of it. Alternatives are looked for with a bounded
/// effort, so very dense registries may have more than are found; the best one is the best.
///
/// An error names what stands in the path: if several things do, the first of those each of which would be enough to
/// remove, in this order: dust, the amount, the hook, the number of transactions, a pause, a quote.
pub fn plan(graph: &Graph, world: World<'_>, request: &Request) -> Result<Vec<Plan>, NoRoute> {
    let mut conditions = Conditions::new(graph, world, request.bridges.as_deref());
    if request.from == request.to && !request.op_withdraw {
        return send(request).map(|plan| vec![plan]);
    }
    let ways = search(&mut conditions, request, Relax::default());
    let plans: Vec<_> =
        ways.iter().filter_map(|way| follow(&mut conditions, way, request.amount_in)).collect();
    if plans.is_empty() { Err(reason::why(&mut conditions, request)) } else { Ok(plans) }
}

/// To another account.
fn send(request: &Request) -> Result<Plan, NoRoute> {
    let amount = request.amount_in;
    if amount.is_zero() {
        return Err(NoRoute::TooSmall { amount, minimum: U256::ONE, hop: "a send".to_owned() });
    }
    let (from, to) = (request.from, request.to);
    let hop = Hop { step: Step::Send, from, to, amount_in: amount, amount_out: amount, tx: 0, seconds: 0 };
    Ok(Plan { hops: vec![hop] })
}

/// Converts a path of the search to a plan; `None` if an edge is unusable, which the search excludes.
fn follow(conditions: &mut Conditions<'_>, way: &[PathEdge], amount_in: U256) -> Option<Plan> {
    let (mut amount, mut hops) = (amount_in, Vec::with_capacity(way.len()));
    for taken in way {
        let edge = *conditions.graph.edge(taken.edge);
        let way = conditions.way(taken.edge)?;
        let (step, amount_out) = conditions.take(&way, amount, Relax::default()).ok()?;
        hops.push(Hop {
            step,
            from: edge.from,
            to: edge.to,
            amount_in: amount,
            amount_out,
            tx: usize::from(taken.tx),
            seconds: way.seconds,
        });
        amount = amount_out;
    }
    (!hops.is_empty()).then_some(Plan { hops })
}
