//! Retry with exponential backoff until there is a reply.
//!
//! # Invariants
//!
//! * Pauses grow, are capped and have jitter. A permanent error ends the loop at once.
//! * The log has one line after 30 s without a reply, one every five minutes after that and one on success, however
//!   many attempts there were. Waits for heights that the node lacks have one line together, however many there are.
//!   (`outage` logs an endpoint that does not answer, once for all requests to it.)
//! * Dropping the future loses only the current attempt.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::error::{Error, Kind};

/// Backoff between attempts: `initial`, doubled each time up to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub initial: Duration,
    /// The longest pause.
    pub max: Duration,
    /// Shortens each pause at random, to half of it at most, so that many callers do not retry at the same moment.
    pub jitter: bool,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_millis(50), max: Duration::from_secs(5), jitter: true }
    }
}

impl Backoff {
    /// The pause after `steps` earlier ones.
    pub fn delay(&self, steps: u32) -> Duration {
        let pause = self.initial.saturating_mul(2_u32.saturating_pow(steps)).min(self.max);
        let random = RandomState::new().hash_one(steps).to_le_bytes()[0];
        if self.jitter { pause.saturating_sub(pause / 2 * u32::from(random) / 256) } else { pause }
    }
}

/// Longest pause while waiting for a block: waiting at the tip is not a failure.
const MAX_AT_TIP: Duration = Duration::from_millis(500);

/// A request without a reply is logged after this time.
const LOG_AFTER: Duration = Duration::from_secs(30);

/// Interval between further log lines.
const REMINDER: Duration = Duration::from_mins(5);

/// Retries until there is a reply or a [`Kind::Permanent`] error. `what` describes the request in the log.
pub async fn until<T, F: Future<Output = Result<T, Error>>>(
    backoff: Backoff,
    what: &str,
    mut query: impl FnMut() -> F,
) -> Result<T, Error> {
    let (mut trouble, mut steps, mut last) = (Trouble::since(Instant::now()), 0u32, None);
    loop {
        let error = match query().await {
            Err(error) if error.kind() != Kind::Permanent => error,
            settled => {
                trouble.end(what);
                return settled;
            }
        };
        trouble.report(what, &error);
        // A wait for a block must not lengthen the backoff of a failure, nor vice versa.
        steps = if last == Some(error.kind()) { steps.saturating_add(1) } else { 0 };
        last = Some(error.kind());
        sleep(pause(backoff, steps, &error)).await;
    }
}

fn pause(backoff: Backoff, steps: u32, error: &Error) -> Duration {
    let own = backoff.delay(steps);
    match error.kind() {
        Kind::NotYet => own.min(MAX_AT_TIP),
        Kind::Transient | Kind::Permanent => own.max(error.pause().unwrap_or_default()),
    }
}

/// The waits of all requests that were logged.
static WAITS: Mutex<Waits> = Mutex::new(Waits(BTreeMap::new()));

/// Log throttle of waits, by what is waited for: many heights are waited for at once.
struct Waits(BTreeMap<String, Instant>);

impl Waits {
    fn is_due(&mut self, what: &str, now: Instant) -> bool {
        self.0.retain(|_, logged| now.saturating_duration_since(*logged) < REMINDER);
        let is_due = !self.0.contains_key(what);
        if is_due {
            self.0.insert(what.to_owned(), now);
        }
        is_due
    }
}

/// Log throttle of one request.
#[derive(Debug)]
struct Trouble {
    /// First attempt.
    began: Instant,
    logged: Option<Instant>,
}

impl Trouble {
    fn since(began: Instant) -> Self {
        Self { began, logged: None }
    }

    /// The duration so far, if a log line is due now.
    fn due(&mut self, now: Instant) -> Option<Duration> {
        let lasted = now - self.began;
        let due = match self.logged {
            Some(logged) => now - logged >= REMINDER,
            None => lasted >= LOG_AFTER,
        };
        due.then(|| {
            self.logged = Some(now);
            lasted
        })
    }

    fn report(&mut self, what: &str, error: &Error) {
        let now = Instant::now();
        let Some(lasted) = self.due(now) else { return };
        let seconds = lasted.as_secs();
        if error.kind() == Kind::NotYet {
            if WAITS.lock().unwrap_or_else(PoisonError::into_inner).is_due(what, now) {
                warn!(request = what, waiting_s = seconds, %error, "waiting for a height that the node lacks");
            } else {
                self.logged = None;
            }
        } else {
            warn!(request = what, failing_s = seconds, %error, "a request fails and is retried");
        }
    }

    fn end(&self, what: &str) {
        if self.logged.is_some() {
            info!(request = what, after_s = self.began.elapsed().as_secs(), "the request was answered");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::RequestContext;

    const FAST: Backoff =
        Backoff { initial: Duration::from_micros(1), max: Duration::from_micros(4), jitter: false };

    fn at() -> RequestContext {
        RequestContext { service: "comet", host: "n".into(), method: "block".into(), height: Some(7) }
    }

    fn failure() -> Error {
        Error::TimedOut { at: at(), after: Duration::from_secs(1) }
    }

    fn not_yet() -> Error {
        Error::NotYet { at: at(), tip: Some(6), message: String::new() }
    }

    #[tokio::test]
    async fn failures_and_waits_are_retried_until_there_is_an_answer() {
        let requested = Cell::new(0);
        let query = || async {
            requested.set(requested.get() + 1);
            [Err(failure()), Err(not_yet()), Err(failure()), Ok("block")][requested.get() - 1].clone()
        };
        assert_eq!(until(FAST, "block 7", query).await, Ok("block"));
        assert_eq!(requested.get(), 4);
    }

    #[tokio::test]
    async fn a_permanent_error_ends_the_retries() {
        let no = || Error::ResultsDiscarded { at: at() };
        assert_eq!(until(FAST, "block 7", || async { Err::<(), _>(no()) }).await, Err(no()));
    }

    #[test]
    fn pauses_double_up_to_the_cap_with_jitter_around_them() {
        let exact = Backoff { jitter: false, ..Backoff::default() };
        let pauses = [0, 1, 2, 6, 7, 31, 32, u32::MAX].map(|steps| exact.delay(steps).as_millis());
        assert_eq!(pauses, [50, 100, 200, 3_200, 5_000, 5_000, 5_000, 5_000]);
        let drawn: Vec<Duration> = (0..200).map(|_| Backoff::default().delay(10)).collect();
        assert!(drawn.iter().all(|p| (2_500..=5_000).contains(&p.as_millis())), "{drawn:?}");
        assert!(drawn.iter().any(|p| *p != drawn[0]));
    }

    #[test]
    fn an_ordered_pause_is_waited_out_and_a_wait_at_the_tip_is_short() {
        let left = Duration::from_secs(9);
        assert_eq!(pause(FAST, 0, &Error::RateLimited { at: at(), left }), left);
        assert_eq!(pause(Backoff { jitter: false, ..Backoff::default() }, 20, &not_yet()), MAX_AT_TIP);
    }

    #[test]
    fn a_request_without_an_answer_is_logged_after_thirty_seconds_and_then_every_five_minutes() {
        let start = Instant::now();
        let mut trouble = Trouble::since(start);
        let mut logged = Vec::new();
        for second in 0..1_000 {
            logged.extend(trouble.due(start + Duration::from_secs(second)));
        }
        assert_eq!(logged, [30, 330, 630, 930].map(Duration::from_secs));
    }

    #[test]
    fn waits_for_many_heights_are_logged_once_in_five_minutes() {
        let (mut waits, start) = (Waits(BTreeMap::new()), Instant::now());
        let mut is_due = |what, second| waits.is_due(what, start + Duration::from_secs(second));
        assert!(is_due("receipts", 0) && !is_due("receipts", 1) && is_due("block", 2));
        assert!(!is_due("receipts", 299) && is_due("receipts", 300) && !is_due("receipts", 301));
    }

    #[test]
    fn the_time_in_the_log_begins_with_the_request_and_not_with_its_first_failure() {
        let start = Instant::now();
        let mut trouble = Trouble::since(start);
        let timed_out = start + Duration::from_secs(31);
        assert_eq!(trouble.due(timed_out), Some(Duration::from_secs(31)));
    }
}
