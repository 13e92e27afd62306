//! Paths and query strings, percent-encoded.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A segment of a path, or a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A target in the making: a path, then parameters.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    text: String,
    has_query: bool,
}

impl Target {
    /// `path` has its segments encoded.
    pub(crate) fn new(path: impl Into<String>) -> Self {
        Self { text: path.into(), has_query: false }
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let mark = if self.has_query { '&' } else { '?' };
        self.has_query = true;
        // Writing to a string does not fail.
        let _ = write!(self.text, "{mark}{name}={}", encoded(value.as_ref()));
        self
    }

    /// Adds a parameter if there is a value.
    pub(crate) fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

/// The page of a block.
pub(crate) fn block(height: impl std::fmt::Display) -> String {
    format!("/block/{height}")
}

/// The page of a Cosmos transaction.
pub(crate) fn tx(hash: &str) -> String {
    format!("/tx/{}", encoded(hash))
}

/// The page of an EVM transaction.
pub(crate) fn evm_tx(hash: &str) -> String {
    format!("/evm-tx/{}", encoded(hash))
}

/// The page of an account.
pub(crate) fn account(address: &str) -> String {
    format!("/account/{}", encoded(address))
}

/// The page of a contract's code and functions.
pub(crate) fn contract(address: &str) -> String {
    format!("/contract/{}", encoded(address))
}

/// The page of a collection.
pub(crate) fn collection(address: &str) -> String {
    format!("/collection/{}", encoded(address))
}

/// The page of a token. The id is a parameter, because it may be empty.
pub(crate) fn token(collection: &str, id: &str) -> Target {
    Target::new(format!("/token/{}", encoded(collection))).with("id", id)
}

/// The request for tokens, oldest first, whose symbol or denom begins so.
pub(crate) fn tokens(search: Option<&str>) -> Target {
    let list = Target::new("/indexer/ledger/v1/tokens").with("pagination.reverse", "false");
    list.with_some("search", search)
}

/// The page of any token but an NFT: by its denom, or the address of its contract.
pub(crate) fn any_token(address: &str) -> String {
    format!("/token/{}", encoded(address))
}

/// The page of the holders of a denom.
pub(crate) fn holders(denom: &str) -> String {
    Target::new("/holders").with("denom", denom).into_string()
}

/// The search for a text.
pub(crate) fn search(text: &str) -> String {
    Target::new("/search").with("q", text).into_string()
}
