//! The response to a success: entity tag, caching headers, compression.

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, LOCATION, VARY,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use crate::compress::compress;
use crate::encoding::{Coding, choose};
use crate::etag;
use crate::reply::Reply;
use crate::router::Route;

/// Minimum size for compression: below it, a compressed body saves no packet.
const MIN_COMPRESSED: usize = 1024;

/// The policy of an HTML page, unless [`App::with_headers`] has another one: scripts, styles and requests of this
/// server
/// only, nothing inline, no frames.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// The response to a success: entity tag, `Cache-Control`, 304, compression.
pub(super) fn success<A>(route: &Route<A>, request: &Parts, reply: Reply) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    // The maximum of a response, so that the map is allocated once.
    headers.reserve(8);
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if reply.status == StatusCode::OK && request.method != Method::POST {
        let tag = reply.encoded.as_ref().map_or_else(|| etag::tag(&reply.body), |known| known.tag.clone());
        let is_current = etag::matches(request.headers.get_all(IF_NONE_MATCH), &tag);
        headers.insert(ETAG, tag);
        headers.insert(CACHE_CONTROL, route.cache_control.clone());
        if is_current {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
    } else {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    if reply.content_type.starts_with("text/html") {
        headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    }
    // A location is percent-encoded, so it is a header value.
    if let Some(location) = reply.location.and_then(|location| HeaderValue::try_from(location).ok()) {
        headers.insert(LOCATION, location);
    }
    let choice = choose(request.headers.get_all(ACCEPT_ENCODING));
    let worth_it = reply.body.len() >= MIN_COMPRESSED || choice.identity_excluded;
    let pack = || match &reply.encoded {
        Some(known) => known.body(choice.coding),
        None => compress(choice.coding, &reply.body).map(Bytes::from),
    };
    let packed = worth_it.then(pack).flatten();
    if let Some(name) = packed.as_ref().and_then(|_| content_encoding(choice.coding)) {
        headers.insert(CONTENT_ENCODING, name);
    }
    *response.body_mut() = packed.unwrap_or(reply.body);
    response
}

fn content_encoding(coding: Coding) -> Option<HeaderValue> {
    match coding {
        Coding::Identity => None,
        Coding::Gzip => Some(HeaderValue::from_static("gzip")),
        Coding::Zstd => Some(HeaderValue::from_static("zstd")),
    }
}
