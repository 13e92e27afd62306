//! How far work has come that may take minutes.

use std::time::{Duration, Instant};

/// Short work logs nothing.
const EVERY: Duration = Duration::from_secs(3);

/// Logs a line every few seconds.
pub(crate) struct Progress {
    message: &'static str,
    total: u64,
    logged: Instant,
}

impl Progress {
    /// For work that is done when `total` is reached.
    pub(crate) fn new(message: &'static str, total: u64) -> Self {
        Self { message, total, logged: Instant::now() }
    }

    /// Work has come to `done`.
    pub(crate) fn at(&mut self, done: u64) {
        if self.logged.elapsed() >= EVERY {
            self.logged = Instant::now();
            tracing::info!(done, total = self.total, "{}", self.message);
        }
    }
}
