//! Flow of a connection over HTTP/2: an incomplete handshake, and response bodies that the client does not read.
//!
//! # Invariants
//! * The permit of a request is held until hyper has the last frame of the response. hyper takes a frame only when the
//!   stream's window has room, so a client that grants none holds its permit, until [`Limits::write_stall`] ends the
//!   connection; one that grants little, until [`Limits::time_to_read`] does.
//! * A stream that has nothing to send is never stalled.
//! * Bodies of other streams, such as those of health checks, give an unread body no more time than their bytes do.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Instant, sleep};

use crate::bodies::{Counted, Held};
use crate::limits::Limits;
use crate::limits::concurrency_limit::RequestPermit;

/// Bytes of the client's preface, which it sends first (RFC 9113 §3.4).
const PREFACE: usize = 24;

/// Maximum size of a data frame that is handed to hyper. At most this and hyper's buffer are unsent without a permit.
const FRAME: usize = 256 << 10;

/// The progress of a connection.
pub(crate) struct Flow {
    limits: Arc<Limits>,
    received: AtomicUsize,
    sending: Mutex<Sending>,
}

struct Sending {
    /// Bodies that are not sent.
    unsent: usize,
    /// When a frame was last sent, or the connection opened.
    moved: Instant,
    /// When all of them must be sent.
    until: Instant,
}

impl Flow {
    /// The connection is open.
    pub(crate) fn new(limits: Arc<Limits>) -> Self {
        let now = Instant::now();
        let sending = Mutex::new(Sending { unsent: 0, moved: now, until: now });
        Self { limits, received: AtomicUsize::new(0), sending }
    }

    /// `len` bytes have arrived.
    pub(crate) fn received(&self, len: usize) {
        // Only the first bytes count, and so the sum cannot overflow.
        if self.received.load(Ordering::Relaxed) < PREFACE {
            self.received.fetch_add(len, Ordering::Relaxed);
        }
    }

    /// Resolves when the handshake took longer than [`Limits::head_read`], or when bodies wait and none has moved for
    /// [`Limits::write_stall`], or all of them take longer than [`Limits::time_to_read`]; up to twice as late.
    pub(crate) async fn stalled(&self) {
        let Limits { head_read, write_stall, .. } = *self.limits;
        loop {
            sleep(head_read.min(write_stall)).await;
            let is_open = self.received.load(Ordering::Relaxed) >= PREFACE;
            let sending = self.sending();
            let still = sending.moved.elapsed();
            let is_late = still >= write_stall || sending.until <= Instant::now();
            if !is_open && still >= head_read || sending.unsent > 0 && is_late {
                return;
            }
        }
    }

    /// `bytes` are ready to be sent, in addition to those of other streams that wait.
    fn begin(&self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut sending = self.sending();
        let now = Instant::now();
        if sending.unsent == 0 {
            sending.until = now + self.limits.write_stall;
        }
        sending.until += Limits::time_at_least_rate(bytes);
        sending.moved = now;
        sending.unsent += 1;
    }

    /// A frame is sent.
    fn moved(&self) {
        self.sending().moved = Instant::now();
    }

    /// All bytes that one [`Self::begin`] announced are sent, or never will be.
    fn end(&self) {
        let mut sending = self.sending();
        sending.moved = Instant::now();
        sending.unsent -= 1;
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response body in frames of bounded size, with the permit of its request.
pub(crate) struct FlowBody<B> {
    inner: B,
    /// The rest of a frame of `inner`.
    rest: Bytes,
    /// True from a frame of `inner` until hyper asks for the one after its last piece.
    is_unsent: bool,
    flow: Arc<Flow>,
    held: Option<Arc<Held>>,
    _permit: Option<RequestPermit>,
}

impl<B> FlowBody<B> {
    /// `held` is kept until the last slice of the body's data is dropped.
    pub(crate) fn new(
        inner: B,
        permit: Option<RequestPermit>,
        held: Option<Arc<Held>>,
        flow: Arc<Flow>,
    ) -> Self {
        Self { inner, rest: Bytes::new(), is_unsent: false, flow, held, _permit: permit }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_unsent) {
            self.flow.end();
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for FlowBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            self.end();
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    self.flow.begin(data.len());
                    self.is_unsent = true;
                    self.rest = match &self.held {
                        Some(held) => Counted { body: data, _held: Arc::clone(held) }.into(),
                        None => data,
                    };
                }
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        } else {
            self.flow.moved();
        }
        let len = self.rest.len().min(FRAME);
        let frame = self.rest.split_to(len);
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }
}

impl<B> Drop for FlowBody<B> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test]
    async fn bodies_that_are_read_prolong_the_time_of_an_unread_one_by_that_of_their_bytes() {
        let flow = Arc::new(Flow::new(Arc::default()));
        let body = |len| FlowBody::new(Full::from(vec![7; len]), None, None, Arc::clone(&flow));
        let until = || flow.sending().until;
        let begun = Instant::now();
        let mut unread = body(1 << 20);
        assert!(unread.frame().await.is_some());
        let first = until();
        assert!(first - begun >= Duration::from_secs(30 + 32), "half a minute, and 32 KiB a second");
        for (len, seconds) in [(0, 0), (7, 0), (32 << 10, 1), (320 << 10, 11)] {
            body(len).collect().await.unwrap();
            assert_eq!((until() - first).as_secs(), seconds, "{len}");
        }
        drop(unread);
        assert!(body(1).frame().await.is_some());
        assert!(until() < first, "all before it are sent");
    }
}
