//! The bytes of the message that arrives at a WebSocket, which has room for them or is closed.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::bodies::Held;
use crate::limits::share::Share;

/// Bytes that are counted at once; a message of fewer is not counted.
const STEP: usize = 64 << 10;

/// A stream whose bytes count for its client until [`Arrival::take`].
pub(crate) struct Arrival<S> {
    stream: S,
    share: Share,
    uncounted: usize,
    held: Vec<Held>,
}

impl<S> Arrival<S> {
    pub(crate) fn new(stream: S, share: Share) -> Self {
        Self { stream, share, uncounted: 0, held: Vec::new() }
    }

    /// What counts the bytes of the message that has arrived.
    pub(crate) fn take(&mut self) -> Vec<Held> {
        self.uncounted = 0;
        std::mem::take(&mut self.held)
    }

    fn count(&mut self, bytes: usize) -> Result<(), Error> {
        self.uncounted += bytes;
        if self.uncounted > STEP {
            let held = self.share.hold(self.uncounted);
            self.held.extend(held.map_err(|error| Error::new(ErrorKind::OutOfMemory, error.to_string()))?);
            self.uncounted = 0;
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Arrival<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let bytes = buf.filled().len() - before;
        Poll::Ready(self.count(bytes))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Arrival<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
