//! Paths that no page has: those of other explorers lead to the page of the record, and a browser gets a page for any
//! other one.
//!
//! Wallets open the paths of EIP-3091 (`/tx`, `/address`, `/token`, `/block`); Etherscan, Blockscout, Celatone and Big
//! Dipper add plurals, tabs below a record, and the chain's id as the first segment.

use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use percent_encoding::percent_decode_str;
use web::http_error::HttpError;
use web::reply::Reply;

use crate::explorer::Explorer;
use crate::target;
use crate::view::{Response, reply};
use crate::views::lookup;

/// Segments of a path that are looked at.
const SEGMENTS: usize = 6;

/// The reply to a path that no page and no endpoint has, or to a request that its page cannot read; `None` for the error
/// in JSON.
pub(crate) fn respond(explorer: &Explorer, request: &Parts, error: &HttpError) -> Option<Reply> {
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return None;
    }
    let path = request.uri.path();
    let is_unknown = error.status() == StatusCode::NOT_FOUND;
    if let Some(page) = is_unknown.then(|| page_of(explorer, &request.uri)).flatten() {
        return Some(reply(explorer, path, Ok(Response::Redirect(page))));
    }
    let error = if is_unknown {
        HttpError::not_found(format!("There is no page at {}.", chain::truncated(path, 200)))
    } else {
        error.clone()
    };
    asks_for_html(&request.headers).then(|| reply(explorer, path, Err(error)))
}

/// The page for a path of another explorer. What follows the name of a record is a tab there, and ignored.
fn page_of(explorer: &Explorer, uri: &Uri) -> Option<String> {
    let path = uri.path();
    if !explorer.has_index() {
        return None;
    }
    let segments = path.split('/').filter(|segment| !segment.is_empty()).take(SEGMENTS);
    let segments: Result<Vec<_>, _> =
        segments.map(|segment| percent_decode_str(segment).decode_utf8()).collect();
    let segments = segments.ok()?;
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    let (kind, rest) = match segments.as_slice() {
        [chain] if *chain == explorer.chain_id() => return Some("/".to_owned()),
        [chain, kind, rest @ ..] if *chain == explorer.chain_id() => (kind, rest),
        [kind, rest @ ..] => (kind, rest),
        [] => return None,
    };
    let with_query = |page: String| match uri.query() {
        Some(query) => format!("{page}?{query}"),
        None => page,
    };
    let kind = kind.to_ascii_lowercase();
    let (list, of_record): (_, fn(&Explorer, &str) -> Option<String>) = match kind.as_str() {
        "tx" | "txs" | "transaction" | "transactions" => {
            (Some("/txs"), |_, hash| lookup::is_hash(hash).then(|| target::tx(hash)))
        }
        "evm-tx" | "evm-txs" => {
            (Some("/evm-txs"), |_, hash| lookup::is_hash(hash).then(|| target::evm_tx(hash)))
        }
        "block" | "blocks" => (Some("/blocks"), |_, name| block(name)),
        "account" | "accounts" | "address" | "addresses" | "contract" | "contracts" | "evm-contract"
        | "evm-contracts" => {
            (None, |explorer, name| explorer.names_account(name).then(|| target::account(name)))
        }
        "collection" | "collections" | "nft" | "nfts" | "nft-collection" | "nft-collections" => {
            (Some("/collections"), |explorer, name| {
                explorer.names_account(name).then(|| target::collection(name))
            })
        }
        "token" | "tokens" => {
            (Some("/tokens"), |explorer, name| explorer.names_account(name).then(|| target::any_token(name)))
        }
        "search" | "search-results" => return Some(with_query("/search".to_owned())),
        _ => return None,
    };
    Some(match rest {
        [] => list?.to_owned(),
        // Only tokens of a collection have such names.
        [address, "nft" | "nfts" | "instance" | "instances", id, ..] => {
            target::token(address, id).into_string()
        }
        [address, id] if list == Some("/collections") => target::token(address, id).into_string(),
        [name] if matches!(kind.as_str(), "token" | "tokens") => with_query(of_record(explorer, name)?),
        // The countdown to a block.
        ["countdown", name, ..] | [name, ..] => of_record(explorer, name)?,
    })
}

fn block(name: &str) -> Option<String> {
    let digits = lookup::digits(name);
    let is_height = if digits.len() < name.len() {
        u64::from_str_radix(digits, 16).is_ok()
    } else {
        name.parse::<u64>().is_ok()
    };
    (is_height || lookup::is_hash(name)).then(|| target::block(target::encoded(name)))
}

/// True if a client asks for HTML, as browsers do: `Accept` names it and does not prefer JSON.
fn asks_for_html(headers: &HeaderMap) -> bool {
    let weight = |wanted: &str| {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let weights = values.flat_map(|value| value.split(',')).filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            parts.next().filter(|media| media.eq_ignore_ascii_case(wanted))?;
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            Some(weight.map_or(1.0, |weight| weight.parse::<f32>().unwrap_or(0.0)))
        });
        weights.fold(0.0, f32::max)
    };
    let html = weight("text/html");
    html > 0.0 && html >= weight("application/json")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn html_is_for_clients_that_name_it() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("application/json;q=0.5, Text/HTML", true),
            ("text/html;q=0.5, application/json", false),
            ("text/html; q=0", false),
            ("text/html;q=x", false),
            ("*/*", false),
            ("application/json", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(asks_for_html(&headers), expected, "{accept}");
        }
        assert!(!asks_for_html(&HeaderMap::new()));
    }
}
