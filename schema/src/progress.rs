//! Progress log lines of operations that may take minutes.

use std::time::{Duration, Instant};

/// Interval of the log lines; a shorter operation logs nothing.
const EVERY: Duration = Duration::from_secs(3);

/// A logger that writes at most one line per interval.
pub(crate) struct Progress {
    message: &'static str,
    total: u64,
    logged: Instant,
}

impl Progress {
    /// A logger for an operation that ends at `total`.
    pub(crate) fn new(message: &'static str, total: u64) -> Self {
        Self { message, total, logged: Instant::now() }
    }

    /// Reports that `done` of the total is reached.
    pub(crate) fn at(&mut self, done: u64) {
        if self.logged.elapsed() >= EVERY {
            self.logged = Instant::now();
            tracing::info!(done, total = self.total, "{}", self.message);
        }
    }
}
