//! Work queue: runs checks on all cores.
//!
//! # Invariants
//!
//! The report does not depend on the number of cores: each check has a report of its own, and they are added in the
//! order of the checks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Report;
use crate::Error;

/// A check that adds its findings to a report.
pub(super) type Check<'a> = Box<dyn FnOnce(&mut Report) -> Result<(), Error> + Send + 'a>;

/// Runs `checks`, begun in their order, and adds their reports to `report`.
pub(super) fn run(checks: Vec<Check<'_>>, report: &mut Report) -> Result<(), Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(checks.len());
    let queue = Mutex::new(checks.into_iter().enumerate());
    let reports = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, check)) = next else { return };
            let mut report = Report::default();
            let outcome = check(&mut report).map(|()| report);
            reports.lock().unwrap_or_else(PoisonError::into_inner).insert(number, outcome);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.into_values().try_for_each(|outcome| outcome.map(|one| report.merge(one)))
}
