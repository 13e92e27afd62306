//! Thread priority of the index below that of the request threads: an index at full speed keeps every core busy, and a
//! request of microseconds would wait milliseconds for a free core.
//!
//! Two measures (`docs/src/reliability.md` has the figures): the threads of the index have a lower priority, and they yield
//! their core several times a millisecond, so that a waiting thread is scheduled.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Minimum time between two yields of a thread: a switch to another thread takes some microseconds and its caches.
const YIELD_EVERY: Duration = Duration::from_micros(200);

/// Niceness of the index's threads relative to the process: they run after requests, and are not starved on a busy
/// machine.
#[cfg(target_os = "linux")]
const NICER_BY: i32 = 15;

/// Lowers the priority of the calling thread; called where a runtime starts its threads. A failure is harmless. On
/// Linux only: elsewhere the same call would lower the priority of the request threads too.
pub fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        // The priority of the first thread, since this thread inherits that of its creator. The kernel caps the sum.
        let own = getpriority_process(Some(rustix::process::getpid()));
        let lowered = own.and_then(|own| setpriority_process(None, own + NICER_BY));
        if let Err(error) = lowered {
            tracing::debug!(%error, "thread priority unchanged");
        }
    }
}

/// Yields this core to a waiting thread, if this thread has not done so recently. Called after every transaction.
pub(crate) fn yield_core() {
    thread_local!(static YIELDED: Cell<Option<Instant>> = const { Cell::new(None) });
    let now = Instant::now();
    if YIELDED.get().is_none_or(|yielded| now.duration_since(yielded) >= YIELD_EVERY) {
        std::thread::yield_now();
        YIELDED.set(Some(now));
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{getpid, getpriority_process, setpriority_process};

    use super::*;

    #[test]
    fn the_priority_of_a_thread_is_relative_to_that_of_a_process_run_with_nice() {
        // As `nice` would: the priority of the first thread, which only waits for the tests.
        let own = getpriority_process(Some(getpid())).unwrap() + 2;
        setpriority_process(Some(getpid()), own).unwrap();
        let lowered = std::thread::spawn(|| {
            lower_thread_priority();
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (own + NICER_BY).min(19));
    }
}
