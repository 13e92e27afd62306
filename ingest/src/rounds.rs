//! Rounds of requests about what no block says: pauses between them, longer ones after failures, and log lines while those last.

use std::time::Duration;

use node::retry::Backoff;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::causes;
use crate::optional::Fetched;

/// Pauses after failures, unless those between rounds are longer.
const PAUSES: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter: true };

/// Time without a reply before a log line about it, and between two of these.
const REMINDER: Duration = Duration::from_mins(1);

/// Why a round failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Node(#[from] node::Error),
    #[error(transparent)]
    Schema(#[from] schema::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A reply cannot be used, for this reason.
    #[error("{0}")]
    Reply(String),
}

/// The rounds of one subject.
pub(crate) struct Rounds {
    subject: &'static str,
    /// Pause between rounds.
    poll: Duration,
    /// Rounds in turn that have failed.
    failures: u32,
    /// Since when they fail, or the last reminder.
    failing: Option<Instant>,
}

impl Rounds {
    pub(crate) fn new(subject: &'static str, poll: Duration) -> Self {
        Self { subject, poll, failures: 0, failing: None }
    }

    /// Waits after a round. Its failure is passed to `remind` if the log has had no line about this subject for some time.
    pub(crate) async fn pause(&mut self, outcome: Result<(), Failure>, remind: impl FnOnce(&str)) {
        let Err(error) = outcome else {
            (self.failures, self.failing) = (0, None);
            return tokio::time::sleep(self.poll).await;
        };
        let error = causes(&error);
        tracing::debug!(subject = self.subject, error, "no reply, asking again");
        let since = self.failing.get_or_insert_with(Instant::now);
        if since.elapsed() >= REMINDER {
            *since = Instant::now();
            remind(&error);
        }
        self.failures += 1;
        tokio::time::sleep(self.poll.max(PAUSES.delay(self.failures))).await;
    }
}

/// Sends replies to the writer of the block lane. If the lane has ended, this waits for ever.
pub(crate) async fn send(found: &mpsc::Sender<Fetched>, replies: Fetched) {
    if found.send(replies).await.is_err() {
        std::future::pending::<()>().await;
    }
}
