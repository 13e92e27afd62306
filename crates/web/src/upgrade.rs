//! HTTP protocol upgrade (101): a handler of [`crate::raw`] takes over the socket.
//!
//! # Invariants
//! * An upgraded connection counts towards [`crate::limits::Limits::connections`] until it ends, and closes when the
//!   server stops.
//! * Its only timeout is [`crate::limits::Limits::write_stall`]. Read sizes and timing are up to the handler.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The socket of a client after its last HTTP response.
#[derive(Debug)]
pub struct Socket(TokioIo<Upgraded>);

/// The task that takes over the socket; the connection closes when it ends.
pub struct Upgrade(Box<dyn FnOnce(Socket) -> BoxFuture<'static, ()> + Send>);

impl Upgrade {
    /// Runs `then` with the socket. The future is dropped when the server stops.
    pub fn new<F>(then: impl FnOnce(Socket) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Box::new(|socket| Box::pin(then(socket))))
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

/// An upgrade that waits until the 101 response is sent.
pub(crate) struct PendingUpgrade {
    pub(crate) socket: OnUpgrade,
    pub(crate) upgrade: Upgrade,
}

impl PendingUpgrade {
    /// Runs the upgrade to its end. Call it after hyper has finished with the connection.
    pub(crate) async fn run(self) {
        match self.socket.await {
            Ok(socket) => (self.upgrade.0)(Socket(TokioIo::new(socket))).await,
            Err(error) => tracing::debug!(error = %error, "the connection did not leave HTTP"),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
