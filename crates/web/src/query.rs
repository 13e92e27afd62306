//! The query string of a request, split and decoded.
//!
//! Undeclared parameters are ignored. The number of parameters is bounded.

use std::borrow::Cow;

use crate::http_error::HttpError;
use crate::percent::decode_query;

/// Twice the need of the longest sensible request: 64 message types, each a separate parameter.
pub(crate) const MAX_PARAMETERS: usize = 128;

/// The declared parameters in the order of the query string.
#[derive(Debug, Default)]
pub(crate) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// Keeps the parameters whose name `declared` accepts.
    ///
    /// # Errors
    /// 400 if there are over 128 parameters, or if a declared one does not decode.
    pub(crate) fn parse(raw: &'a str, declared: impl Fn(&str) -> bool) -> Result<Self, HttpError> {
        let mut pairs = Vec::new();
        for (n, pair) in raw.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            if n == MAX_PARAMETERS {
                return Err(HttpError::bad_request(format!("over {MAX_PARAMETERS} query parameters")));
            }
            let (raw_name, raw_value) = pair.split_once('=').unwrap_or((pair, ""));
            // A name that does not decode is not declared.
            let Some(name) = decode_query(raw_name) else { continue };
            if !declared(&name) {
                continue;
            }
            let value =
                decode_query(raw_value).ok_or_else(|| HttpError::not_percent_encoded(&name, raw_value))?;
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// The parameters.
    pub(crate) fn into_pairs(self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        self.pairs
    }

    /// The values of a parameter, empty ones included.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(other, _)| other == name).map(|(_, value)| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(raw: &str) -> Vec<String> {
        let query = Query::parse(raw, |name| name == "a.b").unwrap();
        query.all("a.b").map(str::to_owned).collect()
    }

    #[test]
    fn values_keep_their_order_and_names_their_case() {
        assert_eq!(values("a.b=2&A.B=9&a.b=1&c=3&a.b"), ["2", "1", ""]);
        assert_eq!(values("a%2Eb=x%20y+z=&&"), ["x y z="]);
        assert_eq!(values(""), [""; 0]);
    }

    #[test]
    fn an_undeclared_parameter_is_ignored_even_if_malformed() {
        assert_eq!(values("c=%zz&%zz=1&a.b=1"), ["1"]);
    }

    #[test]
    fn a_malformed_declared_parameter_is_reported() {
        let error = Query::parse("a.b=%zz", |_| true).unwrap_err();
        assert_eq!(
            error.message(),
            "[INVALID_VALUE] invalid value for a.b: %zz (must be percent-encoded UTF-8)"
        );
    }

    #[test]
    fn the_number_of_parameters_is_bounded() {
        let of = |n: usize| vec!["c=1"; n].join("&");
        assert!(Query::parse(&of(MAX_PARAMETERS), |_| false).is_ok());
        assert_eq!(Query::parse(&of(MAX_PARAMETERS + 1), |_| false).unwrap_err().status(), 400);
    }
}
