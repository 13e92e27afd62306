//! Double buffering of consistent views of a database that another process writes.
//!
//! No snapshot waits for a catch-up: new snapshots use the current view, while the standby, which no snapshot uses, catches
//! up and then becomes the current one. If snapshots hold the standby for too long, a third view is opened, and never more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a catch-up waits for the snapshots of the next view. Most requests take less, and another view costs as much
/// memory as the owner of the database has for writes.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Poll interval for whether snapshots still hold a view.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The views of one database.
pub struct DoubleBuffer<V> {
    /// The view of new snapshots, with the number of exchanges.
    current: Mutex<(Arc<V>, u64)>,
    /// Locked during a catch-up, so catch-ups are serial.
    standby: Mutex<Standby<V>>,
}

/// The views that are not used by new snapshots.
pub struct Standby<V> {
    /// The previous current view: the next one to catch up. `None` at first, and after an error.
    next: Option<Arc<V>>,
    /// A former standby that snapshots held for too long. It closes with the last of these snapshots.
    retired: Weak<V>,
}

impl<V> DoubleBuffer<V> {
    /// Begins with one view.
    pub fn new(view: V) -> Self {
        let standby = Standby { next: None, retired: Weak::new() };
        Self { current: Mutex::new((Arc::new(view), 0)), standby: Mutex::new(standby) }
    }

    /// The view of new snapshots, which does not change while it is held.
    pub fn current(&self) -> Arc<V> {
        Arc::clone(&self.lock_current().0)
    }

    /// The number of exchanges so far.
    pub fn version(&self) -> u64 {
        self.lock_current().1
    }

    /// Begins a catch-up. Others wait for its end.
    pub fn standby(&self) -> MutexGuard<'_, Standby<V>> {
        self.standby.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a catch-up: `next` becomes the current view, and the current one the standby.
    pub fn exchange(&self, mut standby: MutexGuard<'_, Standby<V>>, next: V) {
        let mut current = self.lock_current();
        current.1 += 1;
        standby.next = Some(std::mem::replace(&mut current.0, Arc::new(next)));
    }

    // The lock is held for an assignment only, which does not panic.
    fn lock_current(&self) -> MutexGuard<'_, (Arc<V>, u64)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Standby<V> {
    /// The next view, if there is one and no snapshot uses it; one that is held for too long is retired.
    ///
    /// # Errors
    /// If snapshots hold all three views.
    pub fn take_unused(&mut self) -> Result<Option<V>, &'static str> {
        let Some(mut next) = self.next.take() else { return Ok(None) };
        let since = Instant::now();
        loop {
            // New snapshots do not use it, so its reference count only falls.
            next = match Arc::try_unwrap(next) {
                Ok(unused) => return Ok(Some(unused)),
                Err(used) => used,
            };
            if since.elapsed() >= MAX_WAIT {
                if self.retired.strong_count() > 0 {
                    self.next = Some(next);
                    return Err("snapshots hold each of three states for too long; try again");
                }
                self.retired = Arc::downgrade(&next);
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Gives back a view that has not caught up.
    pub fn put_back(&mut self, view: V) {
        self.next = Some(Arc::new(view));
    }
}
