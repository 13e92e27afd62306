//! Request timeouts of a connection: a request head that takes too long, and an idle connection.
//!
//! hyper's own head timeout also runs between two requests, so it cannot be shorter than the idle timeout.
//!
//! # Invariants
//! * No timeout runs while a request is answered; the body of a response has a time that grows with its bytes.
//! * The timer of a connection wakes a few times a minute, not once per request: the deadline is read when it wakes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, sleep_until};

use crate::limits::Limits;

/// The deadline of a connection for its next request.
pub(crate) struct RequestTimer(Mutex<Phase>);

#[derive(Clone, Copy)]
enum Phase {
    /// The connection waits for the rest of a head, or for its first one.
    Head(Instant),
    /// The connection is idle between two requests.
    Idle(Instant),
    /// A request is being answered.
    Answering,
    /// A body is being sent, until this time at most.
    Sending(Instant),
}

impl RequestTimer {
    /// The connection is open.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Phase::Head(Instant::now())))
    }

    /// Bytes have arrived.
    pub(crate) fn received(&self) {
        let mut phase = self.phase();
        if let Phase::Idle(_) = *phase {
            *phase = Phase::Head(Instant::now());
        }
    }

    /// The head of a request is complete.
    pub(crate) fn begin(&self) {
        *self.phase() = Phase::Answering;
    }

    /// A body of `bytes` is ready.
    pub(crate) fn send(&self, bytes: usize, limits: &Limits) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        *self.phase() = Phase::Sending(Instant::now() + limits.time_to_read(bytes));
    }

    /// hyper has all of a response.
    pub(crate) fn end(&self) {
        *self.phase() = Phase::Idle(Instant::now());
    }

    /// Resolves when a timeout is over.
    pub(crate) async fn expired(&self, limits: &Limits) {
        loop {
            let now = Instant::now();
            let deadline = match *self.phase() {
                Phase::Head(since) => Some(since + limits.head_read),
                Phase::Idle(since) => Some(since + limits.keep_alive),
                Phase::Answering => None,
                Phase::Sending(until) => Some(until),
            };
            if deadline.is_some_and(|deadline| deadline <= now) {
                return;
            }
            // An earlier deadline may begin before this one is over.
            let next = now + limits.head_read.min(limits.keep_alive);
            sleep_until(deadline.map_or(next, |deadline| deadline.min(next))).await;
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_hours(1);

    /// The time until `timer` expires, with the timeouts of a head and of an idle connection.
    fn expires_after(timer: &RequestTimer, head_read: Duration, keep_alive: Duration) -> Option<Duration> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limits = Limits { head_read, keep_alive, ..Limits::default() };
        let start = Instant::now();
        let wait = async { tokio::time::timeout(10 * SHORT, timer.expired(&limits)).await.ok() };
        runtime.block_on(wait).map(|()| start.elapsed())
    }

    #[test]
    fn a_head_and_an_idle_connection_have_their_own_timeouts_and_an_answer_none() {
        let timer = RequestTimer::new();
        assert!(expires_after(&timer, SHORT, LONG).is_some());
        assert_eq!(expires_after(&timer, LONG, SHORT), None);
        timer.begin();
        timer.received();
        assert_eq!(expires_after(&timer, SHORT, SHORT), None, "a request body has another timeout");
        let limits = Limits { write_stall: SHORT, ..Limits::default() };
        timer.send(1 << 20, &limits);
        assert_eq!(
            expires_after(&timer, SHORT, SHORT),
            None,
            "a client may take half a minute for a megabyte"
        );
        timer.send(1, &limits);
        assert!(expires_after(&timer, LONG, SHORT).is_some());
        timer.end();
        assert_eq!(expires_after(&timer, SHORT, LONG), None);
        assert!(expires_after(&timer, LONG, SHORT).is_some());
        timer.received();
        assert!(expires_after(&timer, SHORT, LONG).is_some());
    }

    #[test]
    fn bytes_after_the_first_do_not_extend_the_timeout_of_a_head() {
        let timer = RequestTimer::new();
        std::thread::sleep(SHORT);
        timer.received();
        assert!(expires_after(&timer, SHORT, LONG).is_some_and(|after| after < SHORT));
    }
}
