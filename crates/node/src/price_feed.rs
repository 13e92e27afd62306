//! Client of a price feed: `/simple/price` of CoinGecko's API, version 3, or of a server with the same interface.
//!
//! # Invariants
//!
//! * A price is the decimal number that the feed sent, without rounding.
//! * A name that the feed does not know, or a price that is not a number above zero, is absent.

use std::collections::HashMap;
use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::pool::endpoint::{Endpoint, Request};
use crate::setup_error::SetupError;
use crate::url::Url;

/// Digits of a price before and after the point, at most.
const MAX_DIGITS: usize = 30;

/// Queries one price feed.
pub struct PriceFeed {
    pool: Pool,
}

/// The member of one token.
#[derive(Deserialize)]
struct Price<'a> {
    #[serde(borrow)]
    usd: Option<&'a RawValue>,
}

impl PriceFeed {
    /// A client of the feed at a base address, such as `https://api.coingecko.com/api/v3`.
    pub fn new(url: Url, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("prices", vec![url], limits)? })
    }

    /// Prices in US dollars of one whole token, as decimal numbers without exponent, by CoinGecko's name of the token.
    pub async fn usd(&self, names: &[&str]) -> Result<HashMap<String, String>, Error> {
        let escaped: Vec<_> =
            names.iter().map(|name| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()).collect();
        let path = format!("/simple/price?vs_currencies=usd&precision=full&ids={}", escaped.join(","));
        let request = Request::get("simple/price", path);
        self.pool.query(&request, async |endpoint: Arc<Endpoint>| prices_of(&endpoint, &request).await).await
    }
}

async fn prices_of(endpoint: &Endpoint, request: &Request) -> Result<HashMap<String, String>, Error> {
    let response = endpoint.send(request).await?;
    if !response.status().is_success() {
        return Err(endpoint.unreadable(request, &response, "not an answer of a price feed"));
    }
    let body = endpoint.json(request, response)?;
    let prices = endpoint.parse::<HashMap<String, Price<'_>>>(request, &body)?;
    Ok(prices.into_iter().filter_map(|(name, price)| Some((name, decimal(price.usd?.get())?))).collect())
}

/// A JSON number above zero, without exponent.
fn decimal(number: &str) -> Option<String> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty()
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
        || digits.bytes().all(|byte| byte == b'0')
    {
        return None;
    }
    let limit = i32::try_from(MAX_DIGITS).ok()?;
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    if !(-limit..=limit).contains(&point) || digits.len() > 2 * MAX_DIGITS {
        return None;
    }
    let (whole, fraction) = match usize::try_from(point) {
        Ok(point) if point >= digits.len() => (format!("{digits:0<point$}"), String::new()),
        Ok(point) => (digits[..point].to_owned(), digits[point..].to_owned()),
        Err(_) => {
            let zeros = usize::try_from(point.unsigned_abs()).ok()?;
            (String::new(), format!("{}{digits}", "0".repeat(zeros)))
        }
    };
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.get(..fraction.len().min(MAX_DIGITS))?.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lose_their_exponent_and_nothing_else() {
        for (number, plain) in [
            ("1", Some("1")),
            ("0.15", Some("0.15")),
            ("3141.592653589793", Some("3141.592653589793")),
            ("1.2e-7", Some("0.00000012")),
            ("1.25E3", Some("1250")),
            ("12e0", Some("12")),
            ("0012.50", Some("12.5")),
            ("0", None),
            ("0.0", None),
            ("-1", None),
            ("null", None),
            ("\"1\"", None),
            ("1e999999999999", None),
            ("1e-200", None),
        ] {
            assert_eq!(decimal(number).as_deref(), plain, "{number}");
        }
    }
}
