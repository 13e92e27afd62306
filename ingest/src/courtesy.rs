//! Giving way to those who answer requests: an index at full speed has work for every core, and a request is a matter of
//! microseconds that would wait for milliseconds until a core is free.
//!
//! Two things together do it (`docs/reliability.md` has the figures): the threads of the index have a lower priority, and
//! those that work give up their core after every transaction, so that whoever waits for it is noticed.

/// The niceness of the index's threads: enough to come after a request, and not so much that a busy machine stops the index.
const NICENESS: i32 = 15;

/// Gives the calling thread the priority of the index; to be called where a runtime starts its threads. One that cannot be
/// lowered works as well, only less politely.
pub fn behind_readers() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

/// Lets whoever waits for this core have it.
pub(crate) fn after_you() {
    std::thread::yield_now();
}
