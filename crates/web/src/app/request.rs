//! The request as its handler and its span see it, and the errors without a handler.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::ALLOW;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tracing::field::Empty;
use tracing::{Span, trace_span};

use crate::call::Call;
use crate::http_error::HttpError;
use crate::limits::rate_limit::Client;
use crate::limits::share::Share;
use crate::percent::decode_segment;
use crate::pushes::Pushes;
use crate::query::Query;
use crate::router::{Found, Route};

/// The field of a request's span that is known at its end.
pub(super) const STATUS_CODE: &str = "http.response.status_code";

/// The span of a request, with the names of OpenTelemetry's conventions.
pub(super) fn span_of<A>(route: &Route<A>, request: &Parts) -> Span {
    trace_span!(
        target: "otlp",
        "request",
        otel.kind = "server",
        http.route = route.endpoint.path,
        http.request.method = request.method.as_str(),
        http.response.status_code = Empty,
    )
}

/// The decoded request for its handler.
pub(super) fn call<'a, A>(
    route: &'a Route<A>,
    found: &Found<'_, 'a, A>,
    request: &'a Parts,
    body: &'a [u8],
) -> Result<Call<'a>, HttpError> {
    let declared = |name: &str| route.endpoint.queries().any(|param| param.name == name);
    let raw_query = request.uri.query().unwrap_or_default();
    let query = Query::parse(raw_query, declared)?;
    let headers = &request.headers;
    let client = request.extensions.get::<Client>().map(|client| IpAddr::from(*client));
    let (share, pushes) = (request.extensions.get::<Share>(), request.extensions.get::<Pushes>());
    let mut call = Call {
        names: &route.names,
        values: Default::default(),
        raw_values: found.values,
        query,
        raw_query,
        headers,
        body,
        client,
        share,
        pushes,
    };
    for ((value, raw), name) in call.values.iter_mut().zip(found.values).zip(&route.names) {
        *value = decode_segment(raw).ok_or_else(|| HttpError::not_percent_encoded(name, raw))?;
    }
    Ok(call)
}

/// The head of a request that does not come from a socket.
pub(super) fn internal_request(method: Method, target: &str) -> Result<Parts, HttpError> {
    let request = Request::builder().method(method).uri(target).body(());
    request
        .map(|request| request.into_parts().0)
        .map_err(|_| HttpError::bad_request("the request target is not a path"))
}

pub(super) fn no_endpoint(target: &str) -> HttpError {
    HttpError::not_found(format!("no endpoint answers {target}"))
}

pub(super) fn panicked() -> HttpError {
    HttpError::internal("the handler panicked")
}

pub(super) fn method_not_allowed() -> HttpError {
    HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
}

/// `response`, to a request with another method than those of `allow`.
pub(super) fn with_allow(mut response: Response<Bytes>, allow: &'static str) -> Response<Bytes> {
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}
