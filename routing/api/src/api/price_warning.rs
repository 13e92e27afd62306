//! Warning about a route that loses much of the value.

use chain::U256;
use planner::{Plan, Request, usd};
use schemars::JsonSchema;
use serde::Serialize;
use web::http_error::HttpError;

use crate::errors;
use crate::service::World;

/// Share of the value in that must arrive without a warning, in percent.
const LEAST_PERCENT: u64 = 90;
/// Cents below which rounding makes the comparison meaningless.
const LEAST_CENTS: u64 = 100;

/// A warning that clients show before the user signs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "fungible.PriceWarning")]
pub(super) struct PriceWarning {
    /// Always `BAD_PRICE_WARNING`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// For the user.
    message: String,
}

/// Refuses a plan that loses much of the value, if the client does not accept that (`allow_unsafe`).
pub(super) fn check(
    world: &World,
    request: &Request,
    plan: &Plan,
    allow_unsafe: Option<bool>,
) -> Result<(), HttpError> {
    if allow_unsafe != Some(false) {
        return Ok(());
    }
    let value = |asset, amount| usd::of(&world.registry, &world.facts, asset, amount);
    let (Some(value_in), Some(value_out)) =
        (value(request.from, plan.amount_in()), value(request.to, plan.amount_out()))
    else {
        return Ok(());
    };
    if PriceWarning::of((&value_in, &value_out)).is_none() {
        return Ok(());
    }
    Err(errors::unsafe_price(&value_in, &value_out))
}

impl PriceWarning {
    /// The warning for values in and out in US dollars with two places; `None` if enough arrives.
    pub(super) fn of((value_in, value_out): (&str, &str)) -> Option<Self> {
        let cents = |value: &str| U256::from_str_radix(&value.replace('.', ""), 10).ok();
        let (cents_in, cents_out) = (cents(value_in)?, cents(value_out)?);
        let least = cents_in.checked_mul(U256::from(LEAST_PERCENT))?.div_ceil(U256::from(100));
        if cents_in < U256::from(LEAST_CENTS) || cents_out >= least {
            return None;
        }
        let lost = (cents_in - cents_out).checked_mul(U256::from(100))? / cents_in;
        let message = format!("{lost} % of the value is lost: ${value_in} are sent, ${value_out} arrive.");
        Some(Self { kind: "BAD_PRICE_WARNING", message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_loss_of_more_than_a_tenth_is_worth_a_warning() {
        for (value_in, value_out, lost) in [
            ("100.00", "100.00", None),
            ("100.00", "90.00", None),
            ("100.00", "89.99", Some("10 % of the value is lost: $100.00 are sent, $89.99 arrive.")),
            ("100.00", "0.00", Some("100 % of the value is lost: $100.00 are sent, $0.00 arrive.")),
            ("100.00", "250.00", None),
            ("0.99", "0.00", None),
        ] {
            let warning = PriceWarning::of((value_in, value_out)).map(|warning| warning.message);
            assert_eq!(warning.as_deref(), lost, "{value_in} {value_out}");
        }
    }
}
