//! The endpoints, one file a group.

mod amounts;
pub(crate) mod assets;
pub(crate) mod balances;
pub(crate) mod chains;
pub(crate) mod explore;
mod fees;
pub(crate) mod health;
pub(crate) mod msgs;
mod msgs_response;
pub(crate) mod nft;
pub(crate) mod op_hook;
mod pair;
pub(crate) mod portfolio;
mod price_warning;
mod reach;
pub(crate) mod registry;
pub(crate) mod route;
pub(crate) mod submit;
mod swap_limits;
mod swap_options;
pub(crate) mod tx;
mod wire;

use serde::Serialize;
use web::call::Call;
use web::endpoint::{MaxAge, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;

use crate::errors;

/// The catalogue changes when an operator changes it.
const CATALOGUE: MaxAge = MaxAge(10);

/// Filter by chain ids: repeated, or separated by commas, or both.
const CHAIN_IDS: Param = Param::query(
    "chain_ids",
    Type::Texts,
    "Only these chains, repeated or separated by commas; all if none is named.",
);

/// The same in the spelling of clients before `@skip-go/client` 1.0.
const OLD_CHAIN_IDS: Param =
    Param::old_name("chain_ids[]", Type::Texts, "The same as chain_ids, as older clients spell it.");

/// Only test networks.
const ONLY_TESTNETS: Param =
    Param::query_or("only_testnets", Type::Flag, "false", "Only chains whose tokens are worth nothing.");

/// An answer as JSON.
fn json(answer: &impl Serialize) -> Result<Reply, HttpError> {
    serde_json::to_vec(answer).map(Reply::json).map_err(errors::internal)
}

/// Chains that a call selects.
struct Selection<'c> {
    ids: Vec<&'c str>,
    only_testnets: bool,
}

impl<'c> Selection<'c> {
    fn of(call: &'c Call<'_>) -> Result<Self, HttpError> {
        let named = call.all("chain_ids").chain(call.all("chain_ids[]"));
        let ids = named.flat_map(|ids| ids.split(',')).filter(|id| !id.is_empty()).collect();
        Ok(Self { ids, only_testnets: flag(call, "only_testnets", false)? })
    }

    fn has(&self, chain: &::registry::Chain) -> bool {
        (self.ids.is_empty() || self.ids.contains(&chain.id.as_str()))
            && (chain.testnet || !self.only_testnets)
    }
}

/// Parses `true` or `false` in the query; `default` if the parameter is absent.
fn flag(call: &Call<'_>, name: &str, default: bool) -> Result<bool, HttpError> {
    match call.first(name) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(errors::invalid(name, &format!("`{other}` must be true or false"))),
    }
}

/// A chain by the key of a map in a request. Skip's client rewrites keys: each upper-case letter becomes `_` and its
/// lower-case form.
fn chain_by_key(registry: &::registry::Registry, key: &str) -> Option<::registry::ChainRef> {
    let rewritten = |id: &str| {
        let letters = id.chars().flat_map(|letter| {
            let mark = letter.is_ascii_uppercase().then_some('_');
            mark.into_iter().chain([letter.to_ascii_lowercase()])
        });
        letters.eq(key.chars())
    };
    let by_rewriting =
        || registry.chains().find(|(_, chain)| rewritten(&chain.id)).map(|(reference, _)| reference);
    registry.chain(key).or_else(by_rewriting)
}

/// Base units as whole units with exactly `decimals` fraction digits.
fn pointed(amount: &str, decimals: u8) -> String {
    let places = usize::from(decimals);
    if places == 0 {
        return amount.to_owned();
    }
    let padded = format!("{amount:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_exactly_their_decimals() {
        for (amount, decimals, expected) in [
            ("25000000", 6, "25.000000"),
            ("1", 6, "0.000001"),
            ("0", 2, "0.00"),
            ("7", 0, "7"),
            ("123", 3, "0.123"),
        ] {
            assert_eq!(pointed(amount, decimals), expected);
        }
    }
}
