//! Retry with exponential backoff until there is an answer.
//!
//! # Invariants
//!
//! * Pauses grow, are capped and have jitter. A permanent error ends the loop at once.
//! * The log has one line after 30 s without an answer, one every five minutes after that and one on success, however
//!   many attempts there were. (`outage` logs an endpoint that does not answer, once for all requests to it.)
//! * Dropping the future loses only the current attempt.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::error::{Error, Kind};

/// How pauses between attempts grow: `initial`, doubled each time up to `max`, each shortened or lengthened
/// by up to `jitter_percent` at random, so that many callers do not come back in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub initial: Duration,
    /// No pause is longer, but for the jitter.
    pub max: Duration,
    /// From 0 to 100.
    pub jitter_percent: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_millis(50), max: Duration::from_secs(5), jitter_percent: 20 }
    }
}

impl Backoff {
    /// The pause after `steps` earlier ones.
    pub fn delay(&self, steps: u32) -> Duration {
        let factor = 1u32.checked_shl(steps).unwrap_or(u32::MAX);
        self.jittered(self.initial.saturating_mul(factor).min(self.max))
    }

    fn jittered(&self, pause: Duration) -> Duration {
        let jitter = self.jitter_percent.min(100);
        // Every `RandomState` has keys of its own: randomness enough for spreading callers.
        let random = RandomState::new().hash_one(()) % u64::from(2 * jitter + 1);
        let percent = 100 - jitter + u32::try_from(random).unwrap_or(jitter);
        pause.saturating_mul(percent) / 100
    }
}

/// Longest pause while waiting for a block: waiting at the tip is no failure.
const AT_THE_TIP: Duration = Duration::from_millis(500);

/// A request without an answer for this long is logged.
const LONG: Duration = Duration::from_secs(30);

/// How often it is logged again.
const REMINDER: Duration = Duration::from_mins(5);

/// Retries until there is an answer or a [`Kind::Permanent`] error. `what` names the request in the log.
pub async fn until<T, F, Fut>(backoff: Backoff, what: &str, ask: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    repeat(|kind| kind != Kind::Permanent, backoff, what, ask).await
}

/// Retries transient failures until there is an answer, a [`Kind::NotYet`] or a [`Kind::Permanent`] error, for
/// callers that follow the tip and handle "not yet" themselves.
pub async fn past_failures<T, F, Fut>(backoff: Backoff, what: &str, ask: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    repeat(|kind| kind == Kind::Transient, backoff, what, ask).await
}

async fn repeat<T, F, Fut>(
    again: fn(Kind) -> bool,
    backoff: Backoff,
    what: &str,
    mut ask: F,
) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    let (mut trouble, mut steps, mut last) = (Trouble::since(Instant::now()), 0u32, None);
    loop {
        let error = match ask().await {
            Err(error) if again(error.kind()) => error,
            settled => {
                trouble.end(what);
                return settled;
            }
        };
        trouble.report(what, &error);
        // Waiting for a block is no reason to be slow about a failure, nor the other way round.
        steps = if last == Some(error.kind()) { steps.saturating_add(1) } else { 0 };
        last = Some(error.kind());
        sleep(pause(backoff, steps, &error)).await;
    }
}

fn pause(backoff: Backoff, steps: u32, error: &Error) -> Duration {
    let own = backoff.delay(steps);
    match error.kind() {
        Kind::NotYet => own.min(AT_THE_TIP),
        Kind::Transient | Kind::Permanent => own.max(error.pause().unwrap_or_default()),
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

    /// How long it has lasted, if a line is due now.
    fn due(&mut self, now: Instant) -> Option<Duration> {
        let lasted = now - self.began;
        let due = match self.logged {
            Some(logged) => now - logged >= REMINDER,
            None => lasted >= LONG,
        };
        due.then(|| {
            self.logged = Some(now);
            lasted
        })
    }

    fn report(&mut self, what: &str, error: &Error) {
        let Some(lasted) = self.due(Instant::now()) else { return };
        let seconds = lasted.as_secs();
        if error.kind() == Kind::NotYet {
            info!(request = what, waiting_s = seconds, %error, "waiting for the node");
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
    use crate::error::Site;

    const FAST: Backoff =
        Backoff { initial: Duration::from_micros(1), max: Duration::from_micros(4), jitter_percent: 0 };

    fn at() -> Site {
        Site { service: "comet", host: "n".into(), call: "block".into(), height: Some(7) }
    }

    fn failure() -> Error {
        Error::TimedOut { at: at(), after: Duration::from_secs(1) }
    }

    fn not_yet() -> Error {
        Error::NotYet { at: at(), tip: Some(6), said: String::new() }
    }

    #[tokio::test]
    async fn failures_and_waits_are_sat_out_until_there_is_an_answer() {
        let asked = Cell::new(0);
        let ask = || async {
            asked.set(asked.get() + 1);
            [Err(failure()), Err(not_yet()), Err(failure()), Ok("block")][asked.get() - 1].clone()
        };
        assert_eq!(until(FAST, "block 7", ask).await, Ok("block"));
        assert_eq!(asked.get(), 4);
    }

    #[tokio::test]
    async fn a_fixed_no_ends_the_asking() {
        let no = || Error::ResultsDiscarded { at: at() };
        assert_eq!(until(FAST, "block 7", || async { Err::<(), _>(no()) }).await, Err(no()));
    }

    #[tokio::test]
    async fn following_the_tip_sits_out_failures_and_reports_a_wait() {
        let asked = Cell::new(0);
        let ask = || async {
            asked.set(asked.get() + 1);
            Err::<(), _>(if asked.get() < 3 { failure() } else { not_yet() })
        };
        assert_eq!(past_failures(FAST, "block 7", ask).await, Err(not_yet()));
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn pauses_double_up_to_the_cap_with_jitter_around_them() {
        let exact = Backoff { jitter_percent: 0, ..Backoff::default() };
        let pauses = [0, 1, 2, 6, 7, 31, 32, u32::MAX].map(|steps| exact.delay(steps).as_millis());
        assert_eq!(pauses, [50, 100, 200, 3_200, 5_000, 5_000, 5_000, 5_000]);
        let drawn: Vec<Duration> = (0..200).map(|_| Backoff::default().delay(10)).collect();
        assert!(drawn.iter().all(|p| (4_000..=6_000).contains(&p.as_millis())), "{drawn:?}");
        assert!(drawn.iter().any(|p| *p != drawn[0]));
    }

    #[test]
    fn an_ordered_pause_is_waited_out_and_a_wait_at_the_tip_is_short() {
        let left = Duration::from_secs(9);
        assert_eq!(pause(FAST, 0, &Error::RateLimited { at: at(), left }), left);
        assert_eq!(pause(Backoff { jitter_percent: 0, ..Backoff::default() }, 20, &not_yet()), AT_THE_TIP);
    }

    #[test]
    fn a_question_without_an_answer_is_logged_after_thirty_seconds_and_then_every_five_minutes() {
        let start = Instant::now();
        let mut trouble = Trouble::since(start);
        let mut logged = Vec::new();
        for second in 0..1_000 {
            logged.extend(trouble.due(start + Duration::from_secs(second)));
        }
        assert_eq!(logged, [30, 330, 630, 930].map(Duration::from_secs));
    }

    #[test]
    fn the_time_in_the_log_begins_with_the_question_and_not_with_its_first_failure() {
        let start = Instant::now();
        let mut trouble = Trouble::since(start);
        let timed_out = start + Duration::from_secs(31);
        assert_eq!(trouble.due(timed_out), Some(Duration::from_secs(31)));
    }
}
