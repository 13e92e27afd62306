//! The least amount in for a requested amount out, along the hops of a plan.

use chain::U256;
use registry::{AssetRef, Registry};

use crate::conditions::Conditions;
use crate::graph::Graph;
use crate::plan::{Hop, Plan, Request, Step, World};

/// The least amount in with which the hops of `plan` give at least `wanted`; `None` if there is none. A fee that a
/// LayerZero contract deducts is not included. `plan` must be one of `graph`, `world` and
/// `request`.
pub fn least_amount_in(
    graph: &Graph,
    world: World<'_>,
    request: &Request,
    plan: &Plan,
    wanted: U256,
) -> Option<U256> {
    let mut conditions = Conditions::new(graph, world, request);
    plan.hops.iter().rev().try_fold(wanted, |wanted, hop| match hop.step {
        Step::Send => Some(wanted),
        _ => least(&mut conditions, hop, wanted),
    })
}

fn least(conditions: &mut Conditions<'_>, hop: &Hop, wanted: U256) -> Option<U256> {
    let edges = conditions.graph.leaving(hop.from);
    let edges: Vec<u32> = edges.filter(|(_, about)| about.to == hop.to).map(|(edge, _)| edge).collect();
    let state = edges
        .into_iter()
        .filter_map(|edge| conditions.state(edge))
        .find(|state| is_same_step(state.step, hop.step))?;
    state.fees.least(wanted, U256::ZERO)
}

/// Compares steps without LayerZero's fee, which depends on the amount.
fn is_same_step(a: Step, b: Step) -> bool {
    match (a, b) {
        (
            Step::LayerZero { oft: a, from, to, .. },
            Step::LayerZero { oft: b, from: from_b, to: to_b, .. },
        ) => (a, from, to) == (b, from_b, to_b),
        _ => a == b,
    }
}

/// The number of base units of `from` with the same number of whole tokens as `amount` of `to`, at least one.
pub fn same_value(registry: &Registry, from: AssetRef, to: AssetRef, amount: U256) -> U256 {
    let (from, to) = (registry[from].decimals, registry[to].decimals);
    let power = |exponent: u8| U256::from(10).saturating_pow(U256::from(exponent));
    let same =
        if from >= to { amount.saturating_mul(power(from - to)) } else { amount.div_ceil(power(to - from)) };
    same.max(U256::ONE)
}
