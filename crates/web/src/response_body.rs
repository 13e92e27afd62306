//! The response body, and the request state of a connection that the body updates.
//!
//! [`crate::timeout_stream`] must distinguish bytes of a response from an error response that hyper generated itself.
//! [`ConnState`], shared by the service, the body and the stream of one connection, records which of the two is
//! written.

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

/// No request is in progress.
const IDLE: u8 = 0;
/// A request has arrived; its body or its response is not complete.
const ANSWERING: u8 = 1;
/// hyper has all of the response; some of it may not be flushed yet.
const DRAINING: u8 = 2;

/// The state of one connection. Used by one task only, so relaxed memory order suffices.
pub(crate) struct ConnState {
    phase: AtomicU8,
    permit: RequestPermit,
    linger: AtomicBool,
    flushed: AtomicBool,
    waiting: AtomicWaker,
    taken: AtomicBool,
    upgrade: Mutex<Option<PendingUpgrade>>,
}

impl ConnState {
    pub(crate) fn new(permit: RequestPermit) -> Self {
        Self {
            phase: AtomicU8::new(IDLE),
            permit,
            linger: AtomicBool::default(),
            flushed: AtomicBool::default(),
            waiting: AtomicWaker::default(),
            taken: AtomicBool::default(),
            upgrade: Mutex::default(),
        }
    }

    /// Acquires a request permit for `client`, held until the response is flushed.
    pub(crate) fn acquire_permit(&self, client: Option<Client>) -> Result<(), Full> {
        self.permit.take(client)
    }

    /// Whether no request is in progress on a connection that has not been upgraded.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == IDLE && !self.taken.load(Ordering::Relaxed)
    }

    /// Registers an upgrade: the response in progress is the last HTTP response.
    pub(crate) fn set_upgrade(&self, upgrade: PendingUpgrade) {
        self.taken.store(true, Ordering::Relaxed);
        *self.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
    }

    /// Takes the registered upgrade. Releases the request permit, because hyper may finish before its last flush.
    pub(crate) fn take_upgrade(&self) -> Option<PendingUpgrade> {
        let upgrade = self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.permit.release();
        Some(upgrade)
    }

    /// The service has received a request.
    pub(crate) fn begin(&self) {
        self.phase.store(ANSWERING, Ordering::Relaxed);
    }

    /// Requests a lingering close, because the client may still be sending; see [`crate::timeout_stream`].
    pub(crate) fn linger(&self) {
        self.linger.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lingers(&self) -> bool {
        self.linger.load(Ordering::Relaxed)
    }

    /// Everything hyper had is flushed. Returns whether that was the end of a response.
    pub(crate) fn flush(&self) -> bool {
        self.flushed.store(true, Ordering::Relaxed);
        self.waiting.wake();
        let ended = self.phase.load(Ordering::Relaxed) == DRAINING;
        if ended {
            self.phase.store(IDLE, Ordering::Relaxed);
            self.permit.release();
        }
        ended
    }

    fn end(&self) {
        self.phase.store(DRAINING, Ordering::Relaxed);
    }
}

/// A body that is sent whole, or cut on purpose to simulate a fault.
pub(crate) struct ResponseBody {
    bytes: Bytes,
    len: u64,
    cut: Cut,
    conn: Arc<ConnState>,
}

#[derive(PartialEq)]
enum Cut {
    Never,
    /// After hyper has all `bytes`.
    Pending,
    /// After they are flushed.
    Flushing,
}

/// A simulated fault: the connection closes before or in the middle of a response.
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

    /// Fails after all earlier bytes are flushed, so that the client receives them.
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
