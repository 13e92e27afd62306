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
    /// `BAD_PRICE_WARNING` or `LOW_INFO_WARNING`.
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
    let (value_in, value_out) = (value(request.from, plan.amount_in()), value(request.to, plan.amount_out()));
    match PriceWarning::of(plan, value_in.as_deref(), value_out.as_deref()) {
        None => Ok(()),
        Some(PriceWarning { kind: BAD_PRICE, .. }) if value_in.is_some() && value_out.is_some() => {
            Err(errors::unsafe_price(&value_in.unwrap_or_default(), &value_out.unwrap_or_default()))
        }
        Some(warning) => Err(errors::unsafe_swap(warning.kind, &warning.message)),
    }
}

const BAD_PRICE: &str = "BAD_PRICE_WARNING";
const LOW_INFO: &str = "LOW_INFO_WARNING";

impl PriceWarning {
    /// The warning for a plan and its values in and out in US dollars with two places; `None` if enough arrives.
    pub(super) fn of(plan: &Plan, value_in: Option<&str>, value_out: Option<&str>) -> Option<Self> {
        match (value_in, value_out, &plan.swap) {
            (Some(value_in), Some(value_out), _) => Self::of_values(value_in, value_out),
            (_, _, None) => None,
            (_, _, Some(swap)) => Some(Self::of_swap(swap.price_impact_percent.as_deref())),
        }
    }

    /// The warning for a swap of a token without a price: pools alone say what it gives.
    fn of_swap(price_impact_percent: Option<&str>) -> Self {
        let percent = |text: &str| text.split('.').next().and_then(|whole| whole.parse::<u64>().ok());
        match price_impact_percent {
            Some(impact) if percent(impact).is_none_or(|percent| percent >= 100 - LEAST_PERCENT) => {
                let message = format!("The amount moves the pools' price by {impact} %.");
                Self { kind: BAD_PRICE, message }
            }
            _ => {
                let message = "There is no market price to compare this swap with.".to_owned();
                Self { kind: LOW_INFO, message }
            }
        }
    }

    fn of_values(value_in: &str, value_out: &str) -> Option<Self> {
        let cents = |value: &str| U256::from_str_radix(&value.replace('.', ""), 10).ok();
        let (cents_in, cents_out) = (cents(value_in)?, cents(value_out)?);
        let least = cents_in.checked_mul(U256::from(LEAST_PERCENT))?.div_ceil(U256::from(100));
        if cents_in < U256::from(LEAST_CENTS) || cents_out >= least {
            return None;
        }
        let lost = (cents_in - cents_out).checked_mul(U256::from(100))? / cents_in;
        let message = format!("{lost} % of the value is lost: ${value_in} are sent, ${value_out} arrive.");
        Some(Self { kind: BAD_PRICE, message })
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
            let warning = PriceWarning::of_values(value_in, value_out).map(|warning| warning.message);
            assert_eq!(warning.as_deref(), lost, "{value_in} {value_out}");
        }
    }
}
