//! Requests with asynchronous handlers.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::request::Parts;
use http::{Method, Response};
use tracing::Instrument as _;

use super::App;
use super::request::{STATUS_CODE, call, internal_request, no_endpoint, panicked, span_of};
use crate::call::Call;
use crate::endpoint::Handler;
use crate::http_error::HttpError;
use crate::reply::Reply;
use crate::router::Route;

impl<A: Sync> App<A> {
    /// As [`App::read`], for any method and also for asynchronous handlers, without their time limit. `client` is the one
    /// that the request serves, if known.
    ///
    /// # Errors
    /// Those of the handler; 404 if no endpoint has the method and path.
    pub async fn read_later(
        &self,
        method: Method,
        target: &str,
        body: &[u8],
        client: Option<IpAddr>,
    ) -> Result<Reply, HttpError> {
        let request = internal_request(method, target)?;
        let found = self.router.find(request.uri.path()).ok_or_else(|| no_endpoint(target))?;
        let route = found.route(&request.method).ok_or_else(|| no_endpoint(target))?;
        let call = Call { client, ..call(route, &found, &request, body)? };
        self.run_later(route, &call).await
    }

    async fn run_later(&self, route: &Route<A>, call: &Call<'_>) -> Result<Reply, HttpError> {
        match route.endpoint.handler {
            Handler::Sync(_) | Handler::Stream(_) => self.run(route, call),
            Handler::Async(handler) => AssertUnwindSafe(handler(&self.state, call))
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Err(panicked())),
        }
    }

    /// Answers any request, also those with an asynchronous handler.
    pub async fn respond_later(&self, request: &Parts, body: &[u8]) -> Response<Bytes> {
        if let Some(fallback) = self.fallback_of(request) {
            return fallback.respond_later(request, body).await;
        }
        let begun = Instant::now();
        let Ok((route, found)) = self.target(self.find(request), request) else {
            return self.respond(request, body);
        };
        let span = span_of(route, request);
        let outcome = match call(route, &found, request, body) {
            Ok(call) => self.run_later(route, &call).instrument(span.clone()).await,
            Err(error) => Err(error),
        };
        let response = self.finish(route, request, outcome, begun);
        span.record(STATUS_CODE, response.status().as_u16());
        response
    }
}
