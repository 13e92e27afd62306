//! The error of a request that no endpoint answers.

use std::cmp::Reverse;

use crate::error::{Error, Kind, RequestContext};

/// The error of a service without addresses, which no constructor allows.
pub(crate) fn no_address(at: RequestContext) -> Error {
    Error::InvalidRequest { at, reason: "no address".to_owned() }
}

/// The failure with more information about when a reply can come.
pub(crate) fn better(best: Option<Error>, new: Error) -> Error {
    // The retry waits as long as the returned error requires, so the shorter pause wins.
    let rank = |error: &Error| match error.kind() {
        Kind::NotYet => (2, error.tip(), Reverse(None)),
        Kind::Transient => (1, None, Reverse(error.pause())),
        Kind::Permanent => (0, None, Reverse(None)),
    };
    match best {
        Some(best) if rank(&best) >= rank(&new) => best,
        _ => new,
    }
}
