//! Targets of the JSON API: a path and a query string, percent-encoded.

use std::fmt::Display;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tonic::Status;

use crate::v1::{PageRequest, TokenOrder};

/// The target of a `GET` request.
pub(crate) struct Target {
    path: String,
    query: String,
}

impl Target {
    /// A path without parameters.
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), query: String::new() }
    }

    /// Appends a segment with the value of the path parameter `name`.
    ///
    /// # Errors
    /// An empty value: without its segment, the path would be that of another endpoint.
    pub(crate) fn segment(mut self, name: &str, value: impl Display) -> Result<Self, Status> {
        let value = value.to_string();
        if value.is_empty() {
            return Err(Status::invalid_argument(format!(
                "[INVALID_VALUE] {name} is empty, it must have a value"
            )));
        }
        self.path.push('/');
        self.path.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
        Ok(self)
    }

    /// Appends a segment of the path that is the same for all values of its parameters.
    pub(crate) fn literal(mut self, segment: &str) -> Self {
        self.path.push('/');
        self.path.push_str(segment);
        self
    }

    /// Appends `name=value` to the query string.
    pub(crate) fn query(mut self, name: &str, value: impl Display) -> Self {
        self.query.push(if self.query.is_empty() { '?' } else { '&' });
        self.query.push_str(name);
        self.query.push('=');
        self.query.extend(utf8_percent_encode(&value.to_string(), NON_ALPHANUMERIC));
        self
    }

    /// Appends `name=value` for each of the values. Every endpoint takes an empty value for an absent one.
    pub(crate) fn queries(self, name: &str, values: &[String]) -> Self {
        values.iter().fold(self, |target, value| target.query(name, value))
    }

    /// Appends the order of a list of tokens.
    ///
    /// # Errors
    /// An unknown number.
    pub(crate) fn order(self, order: i32) -> Result<Self, Status> {
        match TokenOrder::try_from(order) {
            Ok(TokenOrder::Unspecified) => Ok(self),
            Ok(TokenOrder::Id) => Ok(self.query("order_by", "token_id")),
            Ok(TokenOrder::Height) => Ok(self.query("order_by", "height")),
            Err(_) => Err(Status::invalid_argument(format!(
                "invalid order_by value {order}, must be one of: 0 and 1 (by id), 2 (by height)"
            ))),
        }
    }

    /// Appends the parameters of a page.
    pub(crate) fn page(mut self, page: Option<PageRequest>) -> Self {
        let Some(PageRequest { key, offset, limit, count_total, reverse }) = page else { return self };
        self = self.query("pagination.key", key).query("pagination.offset", offset);
        if limit > 0 {
            self = self.query("pagination.limit", limit);
        }
        for (name, value) in [("pagination.count_total", count_total), ("pagination.reverse", reverse)] {
            if let Some(value) = value {
                self = self.query(name, value);
            }
        }
        self
    }

    /// Path and query string.
    pub(crate) fn into_text(self) -> String {
        self.path + &self.query
    }
}
