//! Hours and days of the chain, computed once for each last block.

use std::sync::{Arc, Mutex, PoisonError};

use query::Indexer;
use query::activity::{DAY, HOUR, Period};
use web::http_error::HttpError;

const HOURS: u32 = 24;
const DAYS: u32 = 30;

/// What the chain did lately.
#[derive(Debug, Default)]
pub(crate) struct LastPeriods {
    /// The last 24 hours, each from a full hour on (UTC).
    pub(crate) hours: Vec<Period>,
    /// The last 30 days (UTC).
    pub(crate) days: Vec<Period>,
}

/// That of the last block that a page has shown.
#[derive(Default)]
pub(crate) struct LastActivity(Mutex<Option<(u64, Arc<LastPeriods>)>>);

impl LastActivity {
    /// That after the block `height`.
    pub(crate) fn at(&self, height: u64, index: &Indexer) -> Result<Arc<LastPeriods>, HttpError> {
        // The lock is held for an assignment only, which does not panic.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, activity)) = lock().as_ref().filter(|(of, _)| *of == height) {
            return Ok(Arc::clone(activity));
        }
        let (hours, days) = (index.periods(HOUR, HOURS)?, index.periods(DAY, DAYS)?);
        let activity = Arc::new(LastPeriods { hours, days });
        *lock() = Some((height, Arc::clone(&activity)));
        Ok(activity)
    }
}
