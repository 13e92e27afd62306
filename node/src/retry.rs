//! Asking until there is an answer.
//!
//! Holds: pauses grow, are capped and differ between callers; a fixed no ends the asking at once; the log
//! gets one line when a question begins to fail, one every 30 s while it does and one when it is answered,
//! whatever the number of attempts. Dropping the future at any point loses nothing but the attempt.

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

/// A block that is not there yet is asked for at least this often: a wait at the tip is no failure.
const AT_THE_TIP: Duration = Duration::from_millis(500);

/// How often a standing failure is logged.
const REMINDER: Duration = Duration::from_secs(30);

/// Asks until there is an answer or a [`Kind::Permanent`] no. `what` names the question in the log.
pub async fn until<T, F, Fut>(backoff: Backoff, what: &str, ask: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    repeat(|kind| kind != Kind::Permanent, backoff, what, ask).await
}

/// Asks until there is an answer, a [`Kind::NotYet`] or a [`Kind::Permanent`] no: sits out failures only.
/// For following the tip, where "not yet" is news.
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
    let (mut trouble, mut steps, mut last) = (Trouble::default(), 0u32, None);
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

/// What the log has been told about one question.
#[derive(Debug, Default)]
struct Trouble {
    began: Option<Instant>,
    logged: Option<Instant>,
}

impl Trouble {
    /// How long it has lasted, if a line is due now. A failure is told at once, a wait only when it is long.
    fn due(&mut self, kind: Kind, now: Instant) -> Option<Duration> {
        let began = *self.began.get_or_insert(now);
        let due = match self.logged {
            Some(logged) => now - logged >= REMINDER,
            None => kind == Kind::Transient || now - began >= REMINDER,
        };
        due.then(|| {
            self.logged = Some(now);
            now - began
        })
    }

    fn report(&mut self, what: &str, error: &Error) {
        let Some(lasted) = self.due(error.kind(), Instant::now()) else { return };
        let seconds = lasted.as_secs();
        if error.kind() == Kind::NotYet {
            info!("{what}: waiting for {seconds} s: {error}");
        } else {
            warn!("{what}: failing for {seconds} s, asking again until it works: {error}");
        }
    }

    fn end(&self, what: &str) {
        if let (Some(began), Some(_)) = (self.began, self.logged) {
            info!("{what}: settled after {} s", began.elapsed().as_secs());
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
        assert_eq!(pause(FAST, 0, &Error::Resting { at: at(), left }), left);
        assert_eq!(pause(Backoff { jitter_percent: 0, ..Backoff::default() }, 20, &not_yet()), AT_THE_TIP);
    }

    #[test]
    fn the_log_hears_of_a_failure_at_once_and_then_every_thirty_seconds() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let mut told = Vec::new();
        for second in 0..100 {
            told.extend(trouble.due(Kind::Transient, start + Duration::from_secs(second)));
        }
        assert_eq!(told, [0, 30, 60, 90].map(Duration::from_secs));
    }

    #[test]
    fn the_log_hears_of_a_wait_only_when_it_is_long() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(trouble.due(Kind::NotYet, at(0)), None);
        assert_eq!(trouble.due(Kind::NotYet, at(29)), None);
        assert_eq!(trouble.due(Kind::NotYet, at(30)), Some(Duration::from_secs(30)));
    }
}
