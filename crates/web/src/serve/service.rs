//! The hyper service of an [`App`]: enforces the limits, reads the request body and calls the app.
//!
//! Rate and concurrency limits apply first, by the head alone: before routing, and before any byte of the body is read.
//! A cheap request without a body, the common case, is answered without boxing a future. Event streams have limits of
//! their own and hold no permit of a request.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either};
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::Service;
use tokio::time::timeout;

use crate::app::App;
use crate::app::success::{CompressLater, compressed};
use crate::encoding::Choice;
use crate::endpoint::HandlerKind;
use crate::http_error::HttpError;
use crate::limits::Limits;
use crate::limits::lane::Lane;
use crate::limits::share::Share;
use crate::serve::admission::{AppServer, close_unread, too_large, with_close};
use crate::serve::request_timer::RequestTimer;
use crate::serve::response_body::{ResponseBody, streaming, with_permit};
use crate::serve::websocket::{Socket, is_upgrade};

/// The service of one connection.
pub(crate) struct AppService<A: 'static> {
    pub(crate) server: Arc<AppServer<A>>,
    /// The peer address of the connection.
    pub(crate) peer: IpAddr,
    pub(crate) timer: Arc<RequestTimer>,
    /// What the connection becomes after the response to its last request.
    pub(crate) upgraded: Arc<Mutex<Option<Socket<A>>>>,
}

type Outcome = Result<Response<ResponseBody>, Infallible>;

impl<A: Send + Sync + 'static> Service<Request<Incoming>> for AppService<A> {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Either<Ready<Outcome>, BoxFuture<'static, Outcome>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.timer.begin();
        let (mut head, body) = request.into_parts();
        let limits = &self.server.limits;
        let answered =
            |response, permit| Either::Left(ready(Ok(with_permit(response, permit, &self.timer, limits))));
        if let Err(error) = check_host(&head) {
            return answered(close_unread(self.server.apps.reject(&head, &error), &body), None);
        }
        if let Some(response) = self.server.apps.probe(&head) {
            return answered(close_unread(response, &body), None);
        }
        let app = match self.server.apps.select(&mut head) {
            Ok(app) => app,
            Err(response) => {
                let (response, permit) = match self.server.check_client(&head, self.peer) {
                    Ok(permit) => (response, Some(permit)),
                    Err(error) => (self.server.apps.reject(&head, &error), None),
                };
                return answered(close_unread(response, &body), permit);
            }
        };
        if app.has_websocket_at(head.uri.path()) && is_upgrade(&head) {
            let response = match self.server.upgrade(app, &head, &body, self.peer) {
                Ok((response, socket)) => {
                    *self.upgraded.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
                    response
                }
                Err(response) => response,
            };
            return answered(response, None);
        }
        let found = app.find(&head);
        let kind = app.kind_at(found.as_ref(), &head);
        if kind == HandlerKind::Stream {
            let response = match self.server.open(app, &head, &body, self.peer) {
                Ok((response, permit)) => {
                    let mut stopped = self.server.stopped.clone();
                    // Always an error: the sender is dropped.
                    let stopped = Box::pin(async move { drop(stopped.changed().await) });
                    let pools = &self.server.pools;
                    streaming(response, permit, &self.timer, pools, limits.heartbeat, stopped)
                }
                Err(response) => with_permit(response, None, &self.timer, limits),
            };
            return Either::Left(ready(Ok(response)));
        }
        let permit = match self.server.admit(app, &head, &body, self.peer) {
            Ok(permit) => permit,
            Err(response) => return answered(response, None),
        };
        // A permit of this server always has a client.
        let Some(share) = Share::from_permit(&permit, &self.server.pools) else {
            let error = HttpError::internal("a request without a client");
            return answered(app.reject(&head, &error), Some(permit));
        };
        let mut begun = None;
        if kind == HandlerKind::Sync && head.method != Method::POST {
            match share.try_light(|| app.respond_at(found, &head, b"")) {
                Ok(response) if response.extensions().get::<Choice>().is_none() => {
                    return answered(counted(app, &head, &share, response), Some(permit));
                }
                response => begun = Some(response),
            }
        } else {
            head.extensions.insert(CompressLater);
            if head.method == Method::POST || kind == HandlerKind::Async {
                // Only these handlers depend on the client.
                head.extensions.insert(self.server.clients.client_of_request(self.peer, &head.headers));
                head.extensions.insert(share.clone());
            }
        }
        let (app, limits, timer) = (Arc::clone(app), Arc::clone(limits), Arc::clone(&self.timer));
        Either::Right(Box::pin(async move {
            let response = match begun {
                Some(Ok(response)) => response,
                Some(Err(lane)) => later(&app, &head, &share, lane).await,
                None => with_body(&app, &head, body, kind, (&share, &limits)).await,
            };
            let response = compress_later(&app, &head, &share, response).await;
            let response = counted(&app, &head, &share, response);
            Ok(with_permit(response, Some(permit), &timer, &limits))
        }))
    }
}

/// Bytes of bodies that a client has room for, at least, when an expensive request of it begins.
const MIN_ROOM: usize = 512 << 10;

/// The response of a synchronous handler that did not run on the thread of its connection.
async fn later<A: Send + Sync + 'static>(
    app: &Arc<App<A>>,
    head: &Parts,
    share: &Share,
    lane: Lane,
) -> Response<Bytes> {
    // The bytes of the largest pages are counted when they are there; a client that has no room for any gets no turn.
    if lane != Lane::Light
        && let Err(error) = share.hold(MIN_ROOM)
    {
        return app.reject(head, &error);
    }
    let (this, of) = (Arc::clone(app), head.clone());
    let response = share.run_in(lane, move || this.respond(&of, b"")).await;
    response.unwrap_or_else(|error| app.reject(head, &error))
}

/// The response to a request with a body, or of an asynchronous handler.
async fn with_body<A: Send + Sync + 'static>(
    app: &App<A>,
    head: &Parts,
    body: Incoming,
    kind: HandlerKind,
    (share, limits): (&Share, &Limits),
) -> Response<Bytes> {
    // A body counts from its head on, so that those that arrive slowly are counted too.
    let most = body.size_hint().upper().and_then(|len| usize::try_from(len).ok()).unwrap_or(limits.body);
    let _held = match share.hold(most.min(limits.body)) {
        Ok(held) => held,
        Err(error) => {
            let message =
                format!("the request body may have {most} bytes, and there is no room for it now; try again");
            return with_close(app.reject(head, &HttpError::new(error.status(), message)));
        }
    };
    let body = if head.method == Method::POST { read(body, limits).await } else { Ok(Bytes::new()) };
    match body {
        Ok(body) if kind == HandlerKind::Async => {
            match timeout(limits.answer, app.respond_later(head, &body)).await {
                Ok(response) => response,
                Err(_) => app.reject(head, &HttpError::unavailable(too_late(limits))),
            }
        }
        Ok(body) => app.respond(head, &body),
        Err(error) => with_close(app.reject(head, &error)),
    }
}

/// Compresses a body whose compression was put off: without a place for it soon, the body is sent as it is.
async fn compress_later<A>(
    app: &App<A>,
    head: &Parts,
    share: &Share,
    mut response: Response<Bytes>,
) -> Response<Bytes> {
    let Some(choice) = response.extensions_mut().remove::<Choice>() else { return response };
    let _held = match share.hold(response.body().len()) {
        Ok(held) => held,
        Err(error) => return app.reject(head, &error),
    };
    let plain = response.clone();
    match share.compress(move || compressed(response, choice.coding)).await {
        Some(response) => response,
        None if choice.identity_excluded => {
            app.reject(head, &HttpError::unavailable("too many responses are being compressed; try again"))
        }
        None => plain,
    }
}

/// The response with its bytes counted until they are sent, or an error if there is no room for them.
fn counted<A>(app: &App<A>, head: &Parts, share: &Share, response: Response<Bytes>) -> Response<Bytes> {
    let (parts, body) = response.into_parts();
    if head.method == Method::HEAD {
        return Response::from_parts(parts, body);
    }
    match share.count(body) {
        Ok(body) => Response::from_parts(parts, body),
        Err(error) => app.reject(head, &error),
    }
}

/// # Errors
/// 400 if a request of HTTP/1.1 has no host, several, or a malformed one (RFC 9112 §3.2). An empty one is that of a
/// target without a host.
fn check_host(head: &Parts) -> Result<(), HttpError> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.count());
    match host {
        None if head.version < Version::HTTP_11 => Ok(()),
        Some(host) if more == 0 => {
            let bytes = host.as_bytes();
            if bytes.is_empty() || Authority::try_from(bytes).is_ok() && !bytes.contains(&b'@') {
                return Ok(());
            }
            Err(HttpError::bad_request(
                "the Host header is not a host name or address, with or without a port",
            ))
        }
        _ => {
            let count = usize::from(host.is_some()) + more;
            Err(HttpError::bad_request(format!("the request has {count} Host headers, it must have one")))
        }
    }
}

/// # Errors
/// 413 beyond the size limit, 408 after the timeout, 400 if the client disconnects.
pub(crate) async fn read(body: Incoming, limits: &Limits) -> Result<Bytes, HttpError> {
    match timeout(limits.body_read, Limited::new(body, limits.body).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limits)),
        Ok(Err(error)) => Err(HttpError::bad_request(format!("the request body broke off: {error}"))),
        Err(_) => Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, "the request body took too long")),
    }
}

fn too_late(limits: &Limits) -> String {
    format!("the nodes that were asked for this took over {:?}; try again", limits.answer)
}
