//! Event streams: opening the stream of an endpoint, and the head of its response.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

use super::App;
use super::request::{call, internal_request, no_endpoint, panicked};
use crate::call::Call;
use crate::endpoint::Handler;
use crate::event::{EVENT_STREAM, EventStream};
use crate::http_error::HttpError;
use crate::router::Route;

/// nginx and others buffer a response unless it has this header with the value `no`.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

impl<A> App<A> {
    /// Opens the stream of `GET target` in this process, for another interface over the same endpoints: no meter, limit
    /// or heartbeat. `target` is a path with an optional query. Its polls may block on the disk.
    ///
    /// # Errors
    /// Those of the handler; 404 if no endpoint has the path, and 500 if it is not a stream.
    pub fn open(&self, target: &str) -> Result<EventStream, HttpError> {
        let request = internal_request(Method::GET, target)?;
        let found = self.router.find(request.uri.path()).ok_or_else(|| no_endpoint(target))?;
        let route = found.route(&request.method).ok_or_else(|| no_endpoint(target))?;
        self.events(route, &call(route, &found, &request, b"")?)
    }

    /// Opens the stream of a request.
    ///
    /// # Errors
    /// The response, if there is no stream.
    #[expect(clippy::result_large_err, reason = "the caller returns the response")]
    pub(crate) fn stream(&self, request: &Parts) -> Result<Response<EventStream>, Response<Bytes>> {
        let begun = Instant::now();
        let (route, found) = self.target(self.find(request), request)?;
        let events = call(route, &found, request, b"")
            .and_then(|call| self.events(route, &call))
            .map_err(|error| self.finish(route, request, Err(error), begun))?;
        route.meter.count(StatusCode::OK);
        let mut response = Response::new(events);
        let headers = response.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        self.cors.allow(&request.headers, headers);
        Ok(response)
    }

    fn events(&self, route: &Route<A>, call: &Call<'_>) -> Result<EventStream, HttpError> {
        let Handler::Stream(handler) = route.endpoint.handler else {
            return Err(HttpError::internal("an endpoint that is not a stream was opened as one"));
        };
        catch_unwind(AssertUnwindSafe(|| handler(&self.state, call))).unwrap_or_else(|_| Err(panicked()))
    }
}
