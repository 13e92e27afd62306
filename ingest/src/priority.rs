//! Giving way to those who answer requests: an index at full speed has work for every core, and a request is a matter of
//! microseconds that would wait for milliseconds until a core is free.
//!
//! Two things together do it (`docs/reliability.md` has the figures): the threads of the index have a lower priority, and
//! those that work give up their core after every transaction, so that whoever waits for it is noticed.

/// How much nicer the index's threads are than the process: enough to come after a request, and not so much that a busy
/// machine stops the index.
#[cfg(target_os = "linux")]
const NICER_BY: i32 = 15;

/// Gives the calling thread the priority of the index; to be called where a runtime starts its threads. One that cannot be
/// lowered works as well, only less politely. Only on Linux has a thread a priority of its own: elsewhere the same call
/// would slow down the threads that answer requests too.
pub fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        // That of the first thread, since this one inherits the priority of whichever started it. The kernel caps the sum.
        let own = getpriority_process(Some(rustix::process::getpid()));
        let lowered = own.and_then(|own| setpriority_process(None, own + NICER_BY));
        if let Err(error) = lowered {
            tracing::debug!(%error, "the priority of a thread stays as it is");
        }
    }
}

/// Lets whoever waits for this core have it.
pub(crate) fn yield_core() {
    std::thread::yield_now();
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{getpid, getpriority_process, setpriority_process};

    use super::*;

    #[test]
    fn the_priority_of_a_thread_is_relative_to_that_of_a_process_run_with_nice() {
        // As `nice` would: that of the first thread, which only waits for the tests.
        let own = getpriority_process(Some(getpid())).unwrap() + 2;
        setpriority_process(Some(getpid()), own).unwrap();
        let lowered = std::thread::spawn(|| {
            lower_thread_priority();
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (own + NICER_BY).min(19));
    }
}
