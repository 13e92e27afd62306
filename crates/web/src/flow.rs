//! Flow of a connection over HTTP/2: an incomplete handshake, and response bodies that the client does not read.
//!
//! # Invariants
//! * The permit of a request is held until hyper has the last frame of the response. hyper takes a frame only when the
//!   stream's window has room, so a client that grants none holds its permit, until [`Limits::write_stall`] ends the
//!   connection.
//! * A stream that has nothing to send is never stalled.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Instant, sleep};

use crate::bodies::{Counted, Held};
use crate::concurrency_limit::RequestPermit;
use crate::limits::Limits;

/// Bytes of the client's preface, which it sends first (RFC 9113 §3.4).
const PREFACE: usize = 24;

/// Maximum size of a data frame that is handed to hyper. At most this and hyper's buffer are unsent without a permit.
const FRAME: usize = 256 << 10;

/// The progress of a connection.
pub(crate) struct Flow {
    received: AtomicUsize,
    /// Bodies whose last frame is not sent.
    unsent: AtomicUsize,
    /// When a frame was last sent, or the connection opened.
    moved: Mutex<Instant>,
}

impl Flow {
    /// The connection is open.
    pub(crate) fn new() -> Self {
        let (received, unsent) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { received, unsent, moved: Mutex::new(Instant::now()) }
    }

    /// `len` bytes have arrived.
    pub(crate) fn received(&self, len: usize) {
        // Only the first bytes count, and so the sum cannot overflow.
        if self.received.load(Ordering::Relaxed) < PREFACE {
            self.received.fetch_add(len, Ordering::Relaxed);
        }
    }

    /// Resolves when the handshake took longer than [`Limits::head_read`], or when responses wait and none has moved
    /// for [`Limits::write_stall`]; up to twice as late.
    pub(crate) async fn stalled(&self, limits: &Limits) {
        loop {
            sleep(limits.head_read.min(limits.write_stall)).await;
            let still = self.moved.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
            let is_open = self.received.load(Ordering::Relaxed) >= PREFACE;
            let is_waiting = self.unsent.load(Ordering::Relaxed) > 0;
            if !is_open && still >= limits.head_read || is_waiting && still >= limits.write_stall {
                return;
            }
        }
    }

    fn set_moved(&self) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// A response body in frames of bounded size, with the permit of its request.
pub(crate) struct FlowBody<B> {
    inner: B,
    /// The rest of a frame of `inner`.
    rest: Bytes,
    /// True from a frame until hyper asks for the next one.
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

    fn set_sent(&mut self) {
        if std::mem::take(&mut self.is_unsent) {
            self.flow.set_moved();
            self.flow.unsent.fetch_sub(1, Ordering::Relaxed);
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
        self.set_sent();
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    self.rest = match &self.held {
                        Some(held) => Counted { body: data, _held: Arc::clone(held) }.into(),
                        None => data,
                    };
                }
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let len = self.rest.len().min(FRAME);
        let frame = self.rest.split_to(len);
        self.is_unsent = true;
        self.flow.set_moved();
        self.flow.unsent.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }
}

impl<B> Drop for FlowBody<B> {
    fn drop(&mut self) {
        self.set_sent();
    }
}
