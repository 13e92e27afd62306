//! A gate that many readers pass together and one writer alone.
//!
//! What must hold: a waiting writer keeps newcomers out, so that readers that overlap without end cannot
//! starve it. Unlike a guard of the standard library's `RwLock`, a pass may move between threads, as
//! snapshots do.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    readers: usize,
    /// A writer waits or works.
    closed: bool,
}

impl Gate {
    /// Waits while a writer waits or works.
    pub(super) fn enter(self: &Arc<Self>) -> Pass {
        let mut state = self.wait_while(self.lock(), |state| state.closed);
        state.readers += 1;
        Pass(Arc::clone(self))
    }

    /// Runs `work` while nobody else is inside.
    pub(super) fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut state = self.wait_while(self.lock(), |state| state.closed);
        state.closed = true;
        drop(self.wait_while(state, |state| state.readers > 0));
        let reopen = Reopen(self);
        let result = work();
        drop(reopen);
        result
    }

    // No lock is held while a caller's code runs, so none can be poisoned half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        condition: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        self.changed.wait_while(state, |state| condition(state)).unwrap_or_else(PoisonError::into_inner)
    }
}

/// One reader inside.
pub(super) struct Pass(Arc<Gate>);

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.readers -= 1;
        if state.readers == 0 {
            self.0.changed.notify_all();
        }
    }
}

/// Lets others in again, even if the work panicked.
struct Reopen<'a>(&'a Gate);

impl Drop for Reopen<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = false;
        self.0.changed.notify_all();
    }
}
