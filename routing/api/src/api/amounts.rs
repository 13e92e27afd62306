//! Plans for a requested amount, in or out, and the amount that the chosen route takes.
//!
//! An amount in with a remainder that a wrapper would refuse is rounded down, because a wallet offers its whole balance.
//! An amount out is turned into the least amount in by planning, counting back along the hops, and planning again.

use chain::U256;
use planner::swap::{SwapAmount, SwapRules, plan_swaps};
use planner::{NoRoute, Plan, Request, least_amount_in, same_value};
use registry::{AssetRef, Registry};
use web::http_error::HttpError;

use crate::body::Amount;
use crate::errors;
use crate::meter;
use crate::pools;
use crate::quotes::QuoteSet;
use crate::service::{Service, World};

/// Plans of one request that are tried for its amount: each wrapper and each other best path takes one.
const MAX_ROUNDS: usize = 8;

/// The amount of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestedAmount {
    /// Base units of the source asset.
    In(U256),
    /// Base units of the destination asset that must arrive at least.
    Out(U256),
}

impl RequestedAmount {
    /// # Errors
    /// If not exactly one is given.
    pub(super) fn of(amount_in: Option<Amount>, amount_out: Option<Amount>) -> Result<Self, HttpError> {
        match (amount_in, amount_out) {
            (Some(amount), None) => Ok(Self::In(amount.0)),
            (None, Some(amount)) => Ok(Self::Out(amount.0)),
            (None, None) => Err(errors::missing("amount_in")),
            (Some(_), Some(_)) => {
                Err(errors::invalid("amount_out", "a request has it or amount_in, not both"))
            }
        }
    }
}

/// Plans, best first and at least one, with the quotes that they use.
pub(super) struct Planned<'a> {
    pub(super) plans: Vec<Plan>,
    pub(super) quotes: QuoteSet<'a>,
    /// For the user: differences between the requested amount and that of the plans.
    pub(super) infos: Vec<String>,
}

/// Plans for a request with another amount than its own.
pub(super) async fn plans<'a>(
    service: &Service,
    world: &'a World,
    request: &Request,
    rules: Option<&SwapRules>,
    amount: RequestedAmount,
) -> Result<Planned<'a>, HttpError> {
    let outcome = match amount {
        RequestedAmount::In(amount) => for_amount_in(service, world, (request, rules), amount).await,
        RequestedAmount::Out(amount) => {
            let plain = for_amount_out(service, world, request, amount).await;
            with_swaps(service, world, (request, rules), SwapAmount::Out(amount), plain).await
        }
    };
    outcome.map_err(|reason| errors::no_route(&reason))
}

async fn for_amount_in<'a>(
    service: &Service,
    world: &'a World,
    (request, rules): (&Request, Option<&SwapRules>),
    amount: U256,
) -> Result<Planned<'a>, NoRoute> {
    let (mut planned, rounded) = without_dust(service, world, (request, rules), amount).await?;
    if rounded < amount {
        let rest = text(&world.registry, request.from, amount - rounded);
        let sent = text(&world.registry, request.from, rounded);
        planned.infos.push(format!(
            "{sent} are sent and {rest} stay in the account: the route takes no smaller units."
        ));
    }
    Ok(planned)
}

/// Plans for the largest amount up to `amount` that no wrapper on the way refuses for its remainder, and that amount.
async fn without_dust<'a>(
    service: &Service,
    world: &'a World,
    (request, rules): (&Request, Option<&SwapRules>),
    amount: U256,
) -> Result<(Planned<'a>, U256), NoRoute> {
    let mut request = Request { amount_in: amount, ..request.clone() };
    let mut rounds = 1;
    loop {
        match search(service, world, &request, rules).await {
            Err(NoRoute::Dust { usable: Some(usable), .. }) if rounds < MAX_ROUNDS => {
                request.amount_in = usable;
            }
            outcome => return outcome.map(|planned| (planned, request.amount_in)),
        }
        rounds += 1;
    }
}

async fn for_amount_out<'a>(
    service: &Service,
    world: &'a World,
    request: &Request,
    wanted: U256,
) -> Result<Planned<'a>, NoRoute> {
    let registry = &*world.registry;
    let mut amount = same_value(registry, request.from, request.to, wanted);
    let (mut best, mut refusal): (Option<Planned<'_>>, Option<NoRoute>) = (None, None);
    for _ in 0..MAX_ROUNDS {
        let (planned, sent) = match without_dust(service, world, (request, None), amount).await {
            Ok(found) => found,
            // Fees leave nothing of this amount.
            Err(NoRoute::TooSmall { minimum, .. }) if minimum > amount && minimum < U256::MAX => {
                amount = minimum;
                continue;
            }
            Err(NoRoute::Dust { multiple, .. }) if multiple > amount => {
                amount = multiple;
                continue;
            }
            Err(reason) => {
                refusal = Some(reason);
                break;
            }
        };
        let out = planned.plans[0].amount_out();
        let view = planner::World { registry, facts: &world.facts, quotes: &planned.quotes };
        let least = least_amount_in(&world.graph, view, request, &planned.plans[0], wanted);
        let next = if out >= wanted {
            if best.as_ref().is_none_or(|best| sent < best.plans[0].amount_in()) {
                best = Some(planned);
            }
            least.filter(|least| *least < sent)
        } else {
            // A contract deducts a fee, which is nearly always a share of the amount, or the path has another one.
            let scaled = sent.checked_mul(wanted).map(|product| product.div_ceil(out.max(U256::ONE)));
            least.zip(scaled).map(|(least, scaled)| least.max(scaled)).filter(|next| *next > sent)
        };
        match next.filter(|next| best.as_ref().is_none_or(|best| *next < best.plans[0].amount_in())) {
            Some(next) => amount = next,
            None => break,
        }
    }
    let Some(mut planned) = best else {
        return Err(refusal.unwrap_or_else(|| NoRoute::NoQuote("the way back from amount_out".to_owned())));
    };
    let out = planned.plans[0].amount_out();
    if out > wanted {
        let more = text(registry, request.to, out - wanted);
        planned.infos.push(format!("{more} more than requested arrive: the route takes no smaller units."));
    }
    Ok(planned)
}

/// Plans for a request as it is.
pub(super) async fn search<'a>(
    service: &Service,
    world: &'a World,
    request: &Request,
    rules: Option<&SwapRules>,
) -> Result<Planned<'a>, NoRoute> {
    let plain = quoted(service, world, |view| planner::plan(&world.graph, view, request)).await;
    let outcome =
        with_swaps(service, world, (request, rules), SwapAmount::In(request.amount_in), plain).await;
    meter::count(&outcome);
    outcome
}

/// Plans with a swap where the best of them is better than those without one, and these. The error is that of the pools
/// where they have one.
async fn with_swaps<'a>(
    service: &Service,
    world: &'a World,
    (request, rules): (&Request, Option<&SwapRules>),
    amount: SwapAmount,
    plain: Result<Planned<'a>, NoRoute>,
) -> Result<Planned<'a>, NoRoute> {
    let Some(rules) = rules.filter(|_| !request.op_withdraw && request.from != request.to) else {
        return plain;
    };
    let registry = &*world.registry;
    // Otherwise the response has that of the plans without a swap.
    let explains = match &plain {
        Ok(_) => rules.pools.is_some(),
        Err(NoRoute::Dust { .. } | NoRoute::TooSmall { .. }) => false,
        Err(_) => true,
    };
    let (mut best, mut refusal): (Option<Planned<'a>>, Option<NoRoute>) = (None, None);
    for known in world.markets.values() {
        let swaps = |view: planner::World<'_>| {
            plan_swaps(&world.graph, view, &known.market, request, rules, amount, explains)
        };
        match quoted(service, world, swaps).await {
            Ok(planned) => {
                if let Some(why) = known.stale() {
                    refusal = Some(NoRoute::NoPoolState(why));
                    continue;
                }
                let is_better =
                    |best: &Planned<'_>| amount.prefers(registry, &planned.plans[0], &best.plans[0]);
                if best.as_ref().is_none_or(is_better) {
                    best = Some(planned);
                }
            }
            Err(why) => refusal = Some(why),
        }
    }
    let unread = pools::chains(registry).find(|(chain, about)| {
        let ends = [request.from, request.to].map(|asset| registry[asset].chain);
        ends.contains(chain) && !world.markets.contains_key(&about.id)
    });
    if let (None, Some((_, chain)), Err(NoRoute::NoPath { .. })) = (&refusal, unread, &plain) {
        refusal = Some(NoRoute::NoPoolState(format!("the pools of {} were not read yet", chain.id)));
    }
    match (best, plain) {
        // Pools are named where a client has chosen a route with them.
        (Some(mut best), Ok(plain))
            if rules.pools.is_some() || amount.prefers(registry, &best.plans[0], &plain.plans[0]) =>
        {
            best.plans.extend(plain.plans);
            Ok(best)
        }
        (Some(best), Err(_)) => Ok(best),
        (None, Ok(plain)) => match refusal {
            Some(why @ (NoRoute::Swap { .. } | NoRoute::NoPoolState(_))) if rules.pools.is_some() => Err(why),
            _ => Ok(plain),
        },
        (_, Ok(plain)) => Ok(plain),
        (None, Err(why @ (NoRoute::Dust { .. } | NoRoute::TooSmall { .. }))) => Err(why),
        (None, Err(why)) => match refusal {
            Some(swap @ (NoRoute::Swap { .. } | NoRoute::NoPoolState(_) | NoRoute::Dust { .. })) => Err(swap),
            Some(swap) if matches!(why, NoRoute::NoPath { .. }) => Err(swap),
            _ => Err(why),
        },
    }
}

/// What `plan` finds once all quotes that it needs are known.
async fn quoted<'a>(
    service: &Service,
    world: &'a World,
    plan: impl Fn(planner::World<'_>) -> Result<Vec<Plan>, NoRoute>,
) -> Result<Planned<'a>, NoRoute> {
    let registry = &*world.registry;
    let mut quotes = QuoteSet::empty(registry);
    // Answers change the amounts that later hops are quoted for, so each round settles at least one hop.
    for _ in 0..=planner::MAX_HOPS {
        let view = planner::World { registry, facts: &world.facts, quotes: &quotes };
        let outcome = plan(view);
        if !quotes.complete(&service.quoter, service.clients()).await {
            return outcome.map(|plans| Planned { plans, quotes, infos: Vec::new() });
        }
    }
    Err(NoRoute::NoQuote("LayerZero".to_owned()))
}

/// An amount in whole tokens with its symbol: `0.5 INIT`.
fn text(registry: &Registry, asset: AssetRef, amount: U256) -> String {
    let asset = &registry[asset];
    let whole = super::pointed(&amount.to_string(), asset.decimals);
    let whole = if whole.contains('.') { whole.trim_end_matches('0').trim_end_matches('.') } else { &whole };
    format!("{whole} {}", asset.symbol)
}
