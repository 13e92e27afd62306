//! Retry with exponential backoff: of failed requests, and of unusable replies.
//!
//! # Invariants
//! * A request is repeated without a limit until there is a reply or a permanent failure, which is an error.
//! * A height is logged at most once per [`REMINDER`].

use std::fmt::Display;
use std::time::Duration;

use node::retry::{self, Backoff};
use tokio::time::Instant;

use crate::Error;

/// Minimum time between two log lines about unusable replies for one height.
const REMINDER: Duration = Duration::from_secs(30);

/// Repeats a request for `what` (its name in the log) of `height`, with the default backoff.
pub(crate) async fn retry_until<T, F: Future<Output = Result<T, node::Error>>>(
    height: u64,
    what: &'static str,
    request: impl FnMut() -> F,
) -> Result<T, Error> {
    retry_with(Backoff::default(), height, what, request).await
}

/// Repeats a request for `what` (its name in the log) of `height`.
pub(crate) async fn retry_with<T, F: Future<Output = Result<T, node::Error>>>(
    backoff: Backoff,
    height: u64,
    what: &'static str,
    request: impl FnMut() -> F,
) -> Result<T, Error> {
    retry::until(backoff, what, request).await.map_err(|source| Error::node(height, what, source))
}

/// Backoff between unusable replies about a height.
pub(crate) struct RetryBackoff {
    height: u64,
    backoff: Backoff,
    attempts: u32,
    logged: Option<Instant>,
}

impl RetryBackoff {
    pub(crate) fn new(height: u64) -> Self {
        Self::with(Backoff::default(), height)
    }

    pub(crate) fn with(backoff: Backoff, height: u64) -> Self {
        Self { height, backoff, attempts: 0, logged: None }
    }

    pub(crate) fn height(&self) -> u64 {
        self.height
    }

    /// The number of attempts so far.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Waits before the next attempt, and logs the reason.
    pub(crate) async fn wait(&mut self, reason: &impl Display) {
        if self.logged.is_none_or(|logged| logged.elapsed() >= REMINDER) {
            let attempts = self.attempts + 1;
            tracing::warn!(height = self.height, attempts, %reason, "unusable answer, requesting it again");
            self.logged = Some(Instant::now());
        }
        tokio::time::sleep(self.backoff.delay(self.attempts)).await;
        self.attempts = self.attempts.saturating_add(1);
    }
}
