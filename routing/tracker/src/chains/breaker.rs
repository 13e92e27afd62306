//! Circuit breaker: after several consecutive failures, a chain gets no request for a while, then a single probe. Pure.
//!
//! # Invariants
//!
//! * While the circuit is open, at most one request is in flight.
//! * One reply closes the circuit.
//! * A request that never reports back delays the next one by at most [`LEASE`]; a clock that is set back, by at most
//!   [`LAST_PAUSE`].

use std::time::Duration;

/// Consecutive failures that open the circuit.
const THRESHOLD: u32 = 5;
/// First pause; every failed probe doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause, and so the maximum delay before a recovered chain gets its next request.
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// Maximum duration of a probe: a few endpoints of a chain, each with the timeout of a query.
const LEASE: Duration = Duration::from_secs(30);

/// Whether requests may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// As many as the limits allow.
    Closed,
    /// One, to probe whether the chain answers again.
    HalfOpen,
    /// None before this time, in nanoseconds since 1970.
    Open(i64),
}

/// The circuit to one chain.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Consecutive failures.
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    until: i64,
    pause: Duration,
    probing: bool,
}

impl Breaker {
    pub(crate) fn state(&self, now: i64) -> State {
        match &self.open {
            None => State::Closed,
            Some(open) if open.is_over(now) => State::HalfOpen,
            Some(open) => State::Open(open.until),
        }
    }

    /// Whether a request may be sent now. If the circuit is half-open, that request is the probe.
    pub(crate) fn admit(&mut self, now: i64) -> bool {
        let Some(open) = &mut self.open else { return true };
        if !open.is_over(now) {
            return false;
        }
        (open.probing, open.until) = (true, later(now, LEASE));
        true
    }

    /// Records a reply. Returns whether it closed the circuit.
    pub(crate) fn succeeded(&mut self) -> bool {
        self.failures = 0;
        self.open.take().is_some()
    }

    /// Records a failure. Returns whether it opened the circuit.
    pub(crate) fn failed(&mut self, now: i64) -> bool {
        if let Some(open) = &mut self.open {
            // Results of requests sent before the circuit opened are ignored.
            if std::mem::take(&mut open.probing) {
                open.pause = (2 * open.pause).min(LAST_PAUSE);
                open.until = later(now, open.pause);
            }
            return false;
        }
        self.failures += 1;
        let is_opened = self.failures >= THRESHOLD;
        if is_opened {
            let until = later(now, FIRST_PAUSE);
            self.open = Some(Open { until, pause: FIRST_PAUSE, probing: false });
        }
        is_opened
    }
}

impl Open {
    /// A later time can only come from a clock that has been set back since.
    fn is_over(&self, now: i64) -> bool {
        self.until <= now || self.until > later(now, LAST_PAUSE.max(LEASE))
    }
}

fn later(now: i64, wait: Duration) -> i64 {
    now.saturating_add(i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        let opened: Vec<_> = (0..THRESHOLD).map(|_| breaker.admit(0) && breaker.failed(0)).collect();
        assert_eq!(opened, [false, false, false, false, true]);
        breaker
    }

    #[test]
    fn consecutive_failures_open_it_and_an_answer_resets_their_count() {
        let mut breaker = Breaker::default();
        for _ in 0..3 * THRESHOLD {
            assert!(!breaker.failed(0) && !breaker.failed(0));
            assert!(!breaker.succeeded(), "it was closed");
        }
        assert_eq!(opened().state(0), State::Open(SECOND));
    }

    #[test]
    fn after_the_pause_one_probe_is_sent_and_its_answer_closes_it() {
        let mut breaker = opened();
        assert!(!breaker.admit(SECOND - 1));
        assert_eq!(breaker.state(SECOND), State::HalfOpen);
        assert!(breaker.admit(SECOND));
        assert!(!breaker.admit(SECOND), "one is on its way");
        assert!(breaker.succeeded());
        assert_eq!(breaker.state(SECOND), State::Closed);
    }

    #[test]
    fn pauses_grow_with_failed_probes_up_to_a_bound_and_late_failures_do_not_count() {
        let mut breaker = opened();
        let (mut now, mut pauses) = (SECOND, Vec::new());
        for _ in 0..7 {
            assert!(breaker.admit(now));
            breaker.failed(now);
            breaker.failed(now + 40 * SECOND);
            let State::Open(until) = breaker.state(now) else { panic!("it is open") };
            pauses.push((until - now) / SECOND);
            now = until;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_keep_it_open() {
        let mut breaker = opened();
        let back = -3_600 * SECOND;
        assert_eq!(breaker.state(back), State::HalfOpen);
        assert!(breaker.admit(back));
        assert_eq!(breaker.state(back), State::Open(back + 30 * SECOND));
    }

    #[test]
    fn a_probe_that_never_reports_back_is_followed_by_another() {
        let mut breaker = opened();
        assert!(breaker.admit(SECOND));
        assert!(!breaker.admit(30 * SECOND));
        assert!(breaker.admit(31 * SECOND));
    }
}
