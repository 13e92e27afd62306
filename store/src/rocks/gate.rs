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

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_writer_waits_for_readers_inside_and_newcomers_wait_for_it() {
        let gate = Arc::new(Gate::default());
        let (log, events) = mpsc::channel();
        let (writer, newcomer) = (log.clone(), log.clone());
        let inside = gate.enter();
        thread::scope(|scope| {
            scope.spawn(|| gate.alone(|| writer.send("writer").unwrap()));
            while !gate.lock().closed {
                thread::yield_now();
            }
            scope.spawn(|| {
                let _pass = gate.enter();
                newcomer.send("newcomer").unwrap();
            });
            log.send("leaving").unwrap();
            drop(inside);
        });
        assert_eq!(events.try_iter().collect::<Vec<_>>(), ["leaving", "writer", "newcomer"]);
    }

    #[test]
    fn readers_share_the_gate_and_may_leave_on_another_thread() {
        let gate = Arc::new(Gate::default());
        let (one, other) = (gate.enter(), gate.enter());
        thread::spawn(move || drop(one)).join().unwrap();
        drop(other);
        assert_eq!(gate.alone(|| 7), 7);
        assert_eq!(gate.alone(|| 8), 8);
    }
}
