//! Lower bound of a response over hyper: the same number of bytes, without a router, limits, caching headers or
//! storage.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Name of the threads of a server with several.
pub const THREADS: &str = "bare";

/// Maximum length of a body.
const LONGEST: usize = 8 << 20;

/// A server that answers `GET /{n}` with `n` bytes, at most 8 MiB, and anything else with a 404.
pub struct Bare {
    address: SocketAddr,
    /// Stops the server when dropped.
    _runtime: Runtime,
}

impl Bare {
    /// Starts a server on a free port of the loopback address, with `workers` threads, all named [`THREADS`].
    pub fn start(workers: usize) -> Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(workers).thread_name(THREADS).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        runtime.spawn(accept(listener, Bytes::from(vec![b'x'; LONGEST])));
        Ok(Self { address, _runtime: runtime })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves until the listener fails.
async fn accept(listener: TcpListener, body: Bytes) {
    while let Ok((stream, _)) = listener.accept().await {
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = answer(&request, &body);
                async { Ok::<_, Infallible>(response) }
            });
            stream.set_nodelay(true)?;
            // The client disconnects when it is done.
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?;
            anyhow::Ok(())
        });
    }
}

fn answer(request: &Request<Incoming>, body: &Bytes) -> Response<Full<Bytes>> {
    let length = request.uri().path()[1..].parse::<usize>().ok().filter(|length| *length <= body.len());
    let mut response = Response::new(Full::new(body.slice(..length.unwrap_or(0))));
    if length.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
