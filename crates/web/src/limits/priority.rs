//! Priority of threads: requests of microseconds would wait milliseconds for a core that long work has.

/// Niceness of expensive requests: cheap ones run first.
pub const EXPENSIVE: i32 = 10;

/// Niceness of work that no request waits for. It is not starved on a busy machine.
pub const BACKGROUND: i32 = 15;

/// Lowers the priority of the calling thread to `by` below that of the process, as niceness. A failure is harmless. On
/// Linux only: elsewhere the same call would lower the priority of all threads.
pub fn lower(by: i32) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpid, getpriority_process, setpriority_process};
        // The priority of the first thread, since this thread inherits that of its creator. The kernel caps the sum.
        let own = getpriority_process(Some(getpid()));
        if let Err(error) = own.and_then(|own| setpriority_process(None, own + by)) {
            tracing::debug!(%error, "thread priority unchanged");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = by;
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
            lower(15);
            lower(15);
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (own + 15).min(19));
    }
}
