//! The body of an answer, and what it tells the connection about itself.
//!
//! The connection has to know whose bytes it writes: an answer's, or a refusal that hyper made by itself and that
//! [`crate::timeout_stream`] replaces. [`ConnState`] is that knowledge, shared by the service, the body and the connection
//! of one client.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::body::{Body, Frame, SizeHint};

use crate::concurrency_limit::{Full, RequestPermit};
use crate::rate_limit::Client;
use crate::upgrade::PendingUpgrade;

/// Between two answers.
const IDLE: u8 = 0;
/// A request has come in; its body or its answer is not complete.
const ANSWERING: u8 = 1;
/// All of the answer was handed over; some of it may not have left yet.
const DRAINING: u8 = 2;

/// Where a connection stands. Used by one task only, so the order of the memory operations does not matter.
pub(crate) struct ConnState {
    phase: AtomicU8,
    slot: RequestPermit,
    linger: AtomicBool,
    flushed: AtomicBool,
    waiting: AtomicWaker,
    taken: AtomicBool,
    upgrade: Mutex<Option<PendingUpgrade>>,
}

impl ConnState {
    pub(crate) fn new(slot: RequestPermit) -> Self {
        Self {
            phase: AtomicU8::new(IDLE),
            slot,
            linger: AtomicBool::default(),
            flushed: AtomicBool::default(),
            waiting: AtomicWaker::default(),
            taken: AtomicBool::default(),
            upgrade: Mutex::default(),
        }
    }

    /// Takes a slot of the server for the request of `client` that has come in, until its answer has left.
    pub(crate) fn acquire_permit(&self, client: Option<Client>) -> Result<(), Full> {
        self.slot.take(client)
    }

    /// Whether no request is being answered, on a connection that still is one of HTTP.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == IDLE && !self.taken.load(Ordering::Relaxed)
    }

    /// The answer on its way is the last one of HTTP.
    pub(crate) fn set_upgrade(&self, upgrade: PendingUpgrade) {
        self.taken.store(true, Ordering::Relaxed);
        *self.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
    }

    /// What the connection goes on with after HTTP, once. hyper may be done with it before its last flush, so the slot
    /// is given back here.
    pub(crate) fn take_upgrade(&self) -> Option<PendingUpgrade> {
        let upgrade = self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.slot.release();
        Some(upgrade)
    }

    /// A request was handed to the service.
    pub(crate) fn begin(&self) {
        self.phase.store(ANSWERING, Ordering::Relaxed);
    }

    /// The client may still be sending when the connection closes; see [`crate::timeout_stream`].
    pub(crate) fn linger(&self) {
        self.linger.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lingers(&self) -> bool {
        self.linger.load(Ordering::Relaxed)
    }

    /// All that was handed over has left. Whether that was the end of an answer.
    pub(crate) fn flush(&self) -> bool {
        self.flushed.store(true, Ordering::Relaxed);
        self.waiting.wake();
        let ended = self.phase.load(Ordering::Relaxed) == DRAINING;
        if ended {
            self.phase.store(IDLE, Ordering::Relaxed);
            self.slot.release();
        }
        ended
    }

    fn end(&self) {
        self.phase.store(DRAINING, Ordering::Relaxed);
    }
}

/// A body that is sent whole, or on purpose not.
pub(crate) struct ResponseBody {
    bytes: Bytes,
    len: u64,
    cut: Cut,
    conn: Arc<ConnState>,
}

#[derive(PartialEq)]
enum Cut {
    Never,
    /// Once `bytes` are handed over.
    Pending,
    /// Once they have left.
    Flushing,
}

/// What ends a connection in the middle of an answer, or before it: a fault that is played.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut on purpose")]
pub(crate) struct CutShort;

impl ResponseBody {
    pub(crate) fn whole(bytes: Bytes, conn: Arc<ConnState>) -> Self {
        Self { len: len(&bytes), bytes, cut: Cut::Never, conn }
    }

    /// Announces all of `bytes`, sends the first `sent`, and closes the connection.
    pub(crate) fn cut(mut bytes: Bytes, sent: usize, conn: Arc<ConnState>) -> Self {
        let len = len(&bytes);
        bytes.truncate(sent);
        Self { bytes, len, cut: Cut::Pending, conn }
    }

    /// Fails once everything handed over before has left, so that the client sees all of it.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<CutShort> {
        if self.cut == Cut::Pending {
            self.cut = Cut::Flushing;
            self.conn.flushed.store(false, Ordering::Relaxed);
        }
        self.conn.waiting.register(cx.waker());
        if self.conn.flushed.load(Ordering::Relaxed) { Poll::Ready(CutShort) } else { Poll::Pending }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        if !self.bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.bytes)))));
        }
        if self.cut == Cut::Never {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Err(ready!(self.poll_cut(cx)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty() && self.cut == Cut::Never
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len)
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.conn.end();
    }
}

fn len(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
