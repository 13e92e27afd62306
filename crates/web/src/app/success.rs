//! The response to a success: entity tag, caching headers, compression.

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, IF_NONE_MATCH, LINK, LOCATION, VARY,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use crate::compress::compress;
use crate::encoding::{Coding, choose};
use crate::etag;
use crate::limits::lane;
use crate::reply::Reply;

/// Minimum size for compression: below it, a compressed body saves no packet.
const MIN_COMPRESSED: usize = 1024;

/// Maximum size of a body that is compressed on the thread of its connection: less than a millisecond.
const MAX_INLINE: usize = 64 << 10;

/// The policy of an HTML page, unless [`App::with_headers`] has another one: scripts, styles and requests of this
/// server only, nothing inline, no frames.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// The response to a success: entity tag, `Cache-Control`, 304, compression. `cache` is the `Cache-Control` of a 200.
pub(super) fn success(cache: &HeaderValue, request: &Parts, reply: Reply) -> Response<Bytes> {
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
        headers.insert(CACHE_CONTROL, cache.clone());
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
    if let Some(link) = reply.link.and_then(|link| HeaderValue::try_from(link).ok()) {
        headers.insert(LINK, link);
    }
    if let Some((name, value)) = reply.header
        && let Ok(value) = HeaderValue::try_from(value)
    {
        headers.insert(HeaderName::from_static(name), value);
    }
    let choice = choose(request.headers.get_all(ACCEPT_ENCODING));
    *response.body_mut() = reply.body;
    let len = response.body().len();
    if choice.coding == Coding::Identity || len < MIN_COMPRESSED && !choice.identity_excluded {
        return response;
    }
    if let Some(known) = &reply.encoded {
        if let Some((packed, name)) = known.body(choice.coding).zip(content_encoding(choice.coding)) {
            response.headers_mut().insert(CONTENT_ENCODING, name);
            *response.body_mut() = packed;
        }
        return response;
    }
    if len > MAX_INLINE && (lane::is_light() || request.extensions.get::<CompressLater>().is_some()) {
        response.extensions_mut().insert(choice);
        return response;
    }
    compressed(response, choice.coding)
}

/// Marks a request outside of the lanes: as in the light lane, the body of its response is not compressed if that takes
/// long; the response has a [`crate::encoding::Choice`] as extension, for [`compressed`].
#[derive(Clone, Copy)]
pub(crate) struct CompressLater;

/// The response with its body compressed, if that saves bytes.
pub(crate) fn compressed(mut response: Response<Bytes>, coding: Coding) -> Response<Bytes> {
    if let Some((packed, name)) = compress(coding, response.body()).zip(content_encoding(coding)) {
        response.headers_mut().insert(CONTENT_ENCODING, name);
        *response.body_mut() = packed.into();
    }
    response
}

fn content_encoding(coding: Coding) -> Option<HeaderValue> {
    match coding {
        Coding::Identity => None,
        Coding::Gzip => Some(HeaderValue::from_static("gzip")),
        Coding::Zstd => Some(HeaderValue::from_static("zstd")),
    }
}
