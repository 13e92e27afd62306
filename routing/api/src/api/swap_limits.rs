//! Limits of the messages of a swap: its slippage, and the amounts that the user saw.

use chain::U256;
use messages::slippage::Slippage;
use planner::swap::Exact;
use planner::{Plan, Step};
use web::http_error::HttpError;

use crate::body::{Decimal, Expected};
use crate::errors;

/// Skip's default of the slippage, in percent.
pub(super) const SLIPPAGE_PERCENT: &str = "1";

/// Slippage in percent over which a client must allow an unsafe swap.
const MAX_PERCENT: u64 = 10;

/// Refuses a slippage that makes a swap fail always or protects from nothing.
pub(super) fn check(
    plan: &Plan,
    slippage: Option<&Decimal>,
    allow_unsafe: Option<bool>,
) -> Result<(), HttpError> {
    let Some(Decimal(percent)) = slippage.filter(|_| plan.swap.is_some()) else { return Ok(()) };
    let kept = U256::from(10u64.pow(18));
    let left = parse(percent)?.least(kept);
    if left == kept || left.is_zero() {
        let why = format!("{percent} must be more than 0 and less than 100 for a swap");
        return Err(errors::invalid("slippage_tolerance_percent", &why));
    }
    if left < kept / U256::from(100) * U256::from(100 - MAX_PERCENT) && allow_unsafe != Some(true) {
        let why = format!("{percent} is more than {MAX_PERCENT}; allow_unsafe permits it");
        return Err(errors::invalid("slippage_tolerance_percent", &why));
    }
    Ok(())
}

/// Refuses a swap for an amount out that now takes more than the user saw, by more than the slippage.
pub(super) fn check_amount_in(plan: &Plan, seen: U256, slippage: Option<&Decimal>) -> Result<(), HttpError> {
    if plan.swap.as_ref().is_none_or(|swap| swap.exact == Exact::In) {
        return Ok(());
    }
    let slippage = parse(slippage.map_or(SLIPPAGE_PERCENT, |percent| &percent.0))?;
    if slippage.least(plan.amount_in()) <= seen {
        return Ok(());
    }
    let why = format!("it is {seen}, and the route now takes {}; ask for the route again", plan.amount_in());
    Err(errors::invalid("amount_in", &why))
}

/// Makes the minimum that of the amount out that the user saw, if the pools give less by now, within the slippage. Hops
/// after the swap must carry the amount as it is.
pub(super) fn keep_expected(plan: &mut Plan, expected: [Option<Expected>; 2]) {
    let seen = expected.into_iter().flatten().find_map(|expected| expected.0);
    let Some(seen) = seen.filter(|seen| *seen > plan.amount_out()) else { return };
    let Some(at) = plan.hops.iter().position(|hop| hop.step == Step::Swap) else { return };
    let carried = plan.hops[at + 1..].iter().all(|hop| hop.amount_in == hop.amount_out);
    let Some(swap) = plan.swap.as_mut().filter(|swap| carried && swap.exact == Exact::In) else { return };
    let missing = u64::try_from(seen - plan.hops[at].amount_out);
    let last = swap.parts.last_mut().and_then(|part| part.legs.last_mut());
    if let (Ok(missing), Some(leg)) = (missing, last) {
        leg.amount_out = leg.amount_out.saturating_add(missing);
        plan.hops[at].amount_out = seen;
        for hop in &mut plan.hops[at + 1..] {
            (hop.amount_in, hop.amount_out) = (seen, seen);
        }
    }
}

fn parse(percent: &str) -> Result<Slippage, HttpError> {
    Slippage::parse(percent).map_err(|error| HttpError::bad_request(error.to_string()))
}
