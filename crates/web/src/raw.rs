//! A server for arbitrary request handlers, with simulated faults: for metrics and for replayed nodes.
//!
//! All limits apply except those per client, because such a server has few clients. The request body is read before the
//! handler runs.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use tokio::net::TcpListener;

use crate::limits::Limits;
use crate::response_body::{ConnState, CutShort, ResponseBody};
use crate::serve::AcceptLoop;
use crate::service::{admit, last, read, within};
use crate::upgrade::{PendingUpgrade, Upgrade};

/// The outcome of a request.
#[derive(Debug)]
pub enum RawReply {
    /// A whole response.
    Whole(Response<Bytes>),
    /// The response announces its whole length, but the connection closes after this many bytes of the body.
    Cut(Response<Bytes>, usize),
    /// The connection closes without a response.
    HangUp,
    /// A 101 response, after which the connection switches to another protocol.
    Upgrade(Response<Bytes>, Upgrade),
}

impl From<Response<Bytes>> for RawReply {
    fn from(response: Response<Bytes>) -> Self {
        Self::Whole(response)
    }
}

/// Answers with `handler` until `shutdown` resolves, and as [`crate::serve::serve`] after it. Bodies of up to
/// [`Limits::body`] bytes are read for every method; what breaks a limit is refused without calling `handler`.
pub async fn serve_raw<H, F>(
    listener: TcpListener,
    limits: Limits,
    handler: H,
    shutdown: impl Future<Output = ()>,
) where
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = RawReply> + Send + 'static,
{
    let (limits, handler) = (Arc::new(limits), Arc::new(handler));
    let accept_loop = AcceptLoop { limits: Arc::clone(&limits), clients: None, extra_header: "" };
    let service =
        move |conn, _| RawService { handler: Arc::clone(&handler), limits: Arc::clone(&limits), conn };
    accept_loop.run(listener, service, shutdown).await;
}

/// The service of one connection.
struct RawService<H> {
    handler: Arc<H>,
    limits: Arc<Limits>,
    conn: Arc<ConnState>,
}

impl<H, F> Service<Request<Incoming>> for RawService<H>
where
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = RawReply> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = CutShort;
    type Future = BoxFuture<'static, Result<Self::Response, CutShort>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.conn.begin();
        let socket = hyper::upgrade::on(&mut request);
        let (handler, limits) = (Arc::clone(&self.handler), Arc::clone(&self.limits));
        let conn = Arc::clone(&self.conn);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let allowed = admit(&conn, None, &limits).and_then(|()| within(&head, &body, &limits));
            let body = match allowed {
                Ok(()) => read(body, &limits).await,
                Err(refusal) => Err(refusal),
            };
            let reply = match body {
                Ok(body) => handler(Request::from_parts(head, body)).await,
                Err(refusal) => RawReply::Whole(last(refusal.response(), &conn)),
            };
            match reply {
                RawReply::Whole(response) => Ok(response.map(|bytes| ResponseBody::whole(bytes, conn))),
                RawReply::Cut(response, sent) if sent >= response.body().len() => {
                    Ok(last(response, &conn).map(|bytes| ResponseBody::whole(bytes, conn)))
                }
                RawReply::Cut(response, sent) => {
                    Ok(response.map(|bytes| ResponseBody::cut(bytes, sent, conn)))
                }
                RawReply::HangUp => Err(CutShort),
                RawReply::Upgrade(response, upgrade) => {
                    conn.set_upgrade(PendingUpgrade { socket, upgrade });
                    Ok(response.map(|bytes| ResponseBody::whole(bytes, conn)))
                }
            }
        })
    }
}
