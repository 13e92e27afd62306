//! The hyper service of an [`App`]: enforces the limits, reads the request body and calls the app.
//!
//! Rate and concurrency limits apply first, by the head alone: before routing, and before any byte of the body is read.
//! A request without a body, the common case, is answered without boxing a future.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::Service;
use tokio::time::timeout;

use crate::app::App;
use crate::concurrency_limit::Full;
use crate::limits::Limits;
use crate::rate_limit::{Client, Clients};
use crate::refusal::Refusal;
use crate::response_body::{ConnState, CutShort, ResponseBody};
use crate::timeout_stream::{headers_too_large, target_too_long};

/// The service of one connection.
pub(crate) struct AppService<A: 'static> {
    pub(crate) app: Arc<App<A>>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) clients: Arc<Clients>,
    /// The peer address of the connection.
    pub(crate) peer: IpAddr,
    pub(crate) conn: Arc<ConnState>,
}

impl<A: Send + Sync + 'static> Service<Request<Incoming>> for AppService<A> {
    type Response = Response<ResponseBody>;
    type Error = CutShort;
    type Future =
        Either<Ready<Result<Self::Response, CutShort>>, BoxFuture<'static, Result<Self::Response, CutShort>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.conn.begin();
        let (mut head, body) = request.into_parts();
        let conn = Arc::clone(&self.conn);
        let whole = |response: Response<Bytes>| response.map(|bytes| ResponseBody::whole(bytes, conn));
        if let Some(response) = self.early_response(&head, &body) {
            return Either::Left(ready(Ok(whole(response))));
        }
        if head.method == Method::POST {
            // Only handlers of `POST` depend on the client.
            head.extensions.insert(self.clients.client_of_request(self.peer, &head.headers));
        }
        let waits = self.app.waits(&head);
        if !waits && (head.method != Method::POST || body.is_end_stream()) {
            if !body.is_end_stream() {
                self.conn.linger();
            }
            return Either::Left(ready(Ok(whole(self.app.respond(&head, b"")))));
        }
        let (app, limits, conn) = (Arc::clone(&self.app), Arc::clone(&self.limits), Arc::clone(&self.conn));
        Either::Right(Box::pin(async move {
            let body = if head.method == Method::POST { read(body, &limits).await } else { Ok(Bytes::new()) };
            let response = match body {
                Ok(body) if waits => match timeout(limits.answer, app.respond_later(&head, &body)).await {
                    Ok(response) => response,
                    Err(_) => app.refuse(&head, &Refusal::unavailable(too_late(&limits))),
                },
                Ok(body) => app.respond(&head, &body),
                Err(refusal) => last(app.refuse(&head, &refusal), &conn),
            };
            Ok(response.map(|bytes| ResponseBody::whole(bytes, conn)))
        }))
    }
}

impl<A> AppService<A> {
    /// The response to a health probe or to a request that exceeds a limit.
    fn early_response(&self, head: &Parts, body: &Incoming) -> Option<Response<Bytes>> {
        let response = if let Some(response) = self.app.probe(head) {
            response
        } else if let Err(refusal) = self.admit(head) {
            self.app.refuse(head, &refusal)
        } else {
            let refusal = within(head, body, &self.limits).err()?;
            return Some(last(self.app.refuse(head, &refusal), &self.conn));
        };
        // Without a body the connection stays open: a reconnect costs more.
        Some(if body.is_end_stream() { response } else { last(response, &self.conn) })
    }

    /// # Errors
    /// 429 or 503.
    fn admit(&self, head: &Parts) -> Result<(), Refusal> {
        let client = self.clients.client_of_request(self.peer, &head.headers);
        // A web page cannot read the response to a preflight, so preflights are not rate-limited.
        if head.method != Method::OPTIONS {
            self.clients.admit(client, head.uri.path())?;
        }
        admit(&self.conn, Some(client), &self.limits)
    }
}

/// # Errors
/// 503 at the request limit of the server, 429 at that of `client`.
pub(crate) fn admit(conn: &ConnState, client: Option<Client>, limits: &Limits) -> Result<(), Refusal> {
    conn.acquire_permit(client).map_err(|full| match full {
        Full::Server => Refusal::unavailable(format!(
            "{} requests are being answered, which is all at once; try again",
            limits.requests
        )),
        Full::Client => Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!(
                "{} requests from your address are being answered, or their answers wait to be read, which is all of one \
                 address at once; try again",
                limits.requests_per_client
            ),
        ),
    })
}

/// Marks a response as the last of its connection.
pub(crate) fn last(mut response: Response<Bytes>, conn: &ConnState) -> Response<Bytes> {
    conn.linger();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// # Errors
/// 414, 431, or 413 by the announced length of the body.
pub(crate) fn within(head: &Parts, body: &Incoming, limits: &Limits) -> Result<(), Refusal> {
    if head.uri.path_and_query().is_some_and(|target| target.as_str().len() > limits.target) {
        return Err(Refusal::new(StatusCode::URI_TOO_LONG, target_too_long(limits)));
    }
    // `name: value` and the end of the line.
    let headers: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers > limits.headers {
        return Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, headers_too_large(limits)));
    }
    if usize::try_from(body.size_hint().lower()).map_or(true, |len| len > limits.body) {
        return Err(too_large(limits));
    }
    Ok(())
}

/// # Errors
/// 413 beyond the size limit, 408 after the timeout, 400 if the client disconnects.
pub(crate) async fn read(body: Incoming, limits: &Limits) -> Result<Bytes, Refusal> {
    match timeout(limits.body_read, Limited::new(body, limits.body).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limits)),
        Ok(Err(error)) => Err(Refusal::bad_request(format!("the request body broke off: {error}"))),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request body took too long")),
    }
}

fn too_late(limits: &Limits) -> String {
    format!("the nodes that were asked for this took over {:?}; try again", limits.answer)
}

fn too_large(limits: &Limits) -> Refusal {
    Refusal::new(limits.oversize, format!("the request body is over {} bytes", limits.body))
}
