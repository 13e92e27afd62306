//! Work queue: runs jobs on all cores.
//!
//! # Invariants
//!
//! The results do not depend on the number of cores: they are in the order of the jobs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::Error;

/// A job that returns a result or fails.
pub(crate) type Job<'a, T> = Box<dyn FnOnce() -> Result<T, Error> + Send + 'a>;

/// Runs `jobs`, begun in their order, and returns their results; the first error of a job if one fails.
pub(crate) fn run<T: Send>(jobs: Vec<Job<'_, T>>) -> Result<Vec<T>, Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let results = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, job)) = next else { return };
            let result = job();
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(number, result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}
