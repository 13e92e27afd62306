//! Lanes: how much work a synchronous handler may do, and where.
//!
//! A handler begins in the light lane, on the thread of its connection. It counts the bytes that it reads ([`spend`]);
//! past [`LIGHT`] it ends with an error, and the server runs it once more in a lane with a small pool of its own
//! ([`mod@crate::limits::share`]). So no handler has to tell its cost before it knows it, and cheap requests never wait for a
//! thread that an expensive one has. A handler that is always expensive says so by [`heavy`], one that needs a lock by
//! [`serial`]. Outside of a server nothing is counted.
//!
//! # Invariants
//! * The light lane does at most [`LIGHT`] bytes of work for a request, and the heavy one [`HEAVY`].
//! * A handler that ran past its lane has no effect: its response is dropped, and it only reads.

use std::cell::Cell;

use crate::http_error::HttpError;

/// Bytes of work in the light lane: a page of a hundred usual transactions.
pub const LIGHT: u64 = 512 << 10;

/// Bytes of work in the heavy lane: some of the largest pages, or one large record. The giant lane, for records beyond
/// it, has no limit, and one place.
pub const HEAVY: u64 = 32 << 20;

/// Where a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// On the thread of the connection.
    Light,
    /// In the pool of expensive requests.
    Heavy,
    /// One at a time: for work beyond [`HEAVY`].
    Giant,
    /// One at a time: for handlers that need a lock.
    Serial,
}

#[derive(Clone, Copy)]
struct Work {
    lane: Lane,
    left: u64,
    /// The lane that the handler needs instead.
    needs: Option<Lane>,
}

thread_local! {
    static WORK: Cell<Option<Work>> = const { Cell::new(None) };
}

/// Runs `job` in a lane; the lane that it needs instead, if it went past this one.
pub(crate) fn run<T>(lane: Lane, job: impl FnOnce() -> T) -> Result<T, Lane> {
    /// Leaves the lane, also if `job` panics.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            WORK.set(None);
        }
    }
    let left = match lane {
        Lane::Light => LIGHT,
        Lane::Heavy => HEAVY,
        Lane::Giant | Lane::Serial => u64::MAX,
    };
    WORK.set(Some(Work { lane, left, needs: None }));
    let leave = Leave;
    let done = job();
    let needs = needs();
    drop(leave);
    needs.map_or(Ok(done), Err)
}

/// The lane that the handler on this thread needs, if it went past its own.
pub(crate) fn needs() -> Option<Lane> {
    WORK.get().and_then(|work| work.needs)
}

/// True if the handler on this thread went past its lane: its response will be dropped, so it may end early.
pub fn is_over() -> bool {
    needs().is_some()
}

/// True in the light lane.
pub(crate) fn is_light() -> bool {
    WORK.get().is_some_and(|work| work.lane == Lane::Light)
}

/// Counts `bytes` that the handler is about to read or write.
///
/// # Errors
/// If that is more than its lane allows. The handler returns the error, which no client sees.
pub fn spend(bytes: u64) -> Result<(), HttpError> {
    let Some(work) = WORK.get() else { return Ok(()) };
    if let Some(left) = work.left.checked_sub(bytes) {
        WORK.set(Some(Work { left, ..work }));
        return Ok(());
    }
    let is_giant = work.lane == Lane::Heavy || bytes > HEAVY;
    Err(move_to(work, if is_giant { Lane::Giant } else { Lane::Heavy }))
}

/// Declares the handler expensive.
///
/// # Errors
/// As [`spend`].
pub fn heavy() -> Result<(), HttpError> {
    match WORK.get() {
        Some(work) if work.lane == Lane::Light => Err(move_to(work, Lane::Heavy)),
        _ => Ok(()),
    }
}

/// Declares that the handler holds a lock: a single handler of this kind runs at a time, so that it never waits for the
/// lock on a thread.
///
/// # Errors
/// As [`spend`].
pub fn serial() -> Result<(), HttpError> {
    match WORK.get() {
        Some(work) if work.lane != Lane::Serial => Err(move_to(work, Lane::Serial)),
        _ => Ok(()),
    }
}

fn move_to(work: Work, lane: Lane) -> HttpError {
    WORK.set(Some(Work { needs: Some(lane), ..work }));
    HttpError::unavailable("the request costs more than was known; it runs again in another lane")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_beyond_a_lane_needs_the_next_one() {
        let work = |bytes| move || spend(bytes).is_ok();
        assert_eq!(run(Lane::Light, work(LIGHT)), Ok(true));
        assert_eq!(run(Lane::Light, work(LIGHT + 1)), Err(Lane::Heavy));
        assert_eq!(run(Lane::Light, work(HEAVY + 1)), Err(Lane::Giant));
        assert_eq!(run(Lane::Heavy, work(HEAVY)), Ok(true));
        assert_eq!(run(Lane::Heavy, || spend(HEAVY).is_ok() && spend(1).is_ok()), Err(Lane::Giant));
        assert_eq!(run(Lane::Giant, work(u64::MAX)), Ok(true));
        assert!(spend(u64::MAX).is_ok(), "outside of a server nothing is counted");
    }

    #[test]
    fn a_handler_can_declare_its_lane() {
        for (lane, needed) in
            [(Lane::Light, Err(Lane::Heavy)), (Lane::Heavy, Ok(true)), (Lane::Serial, Ok(true))]
        {
            assert_eq!(run(lane, || heavy().is_ok()), needed);
        }
        for lane in [Lane::Light, Lane::Heavy, Lane::Giant] {
            assert_eq!(run(lane, || serial().is_ok()), Err(Lane::Serial));
        }
        assert_eq!(run(Lane::Serial, || serial().is_ok()), Ok(true));
        assert!(heavy().is_ok() && serial().is_ok());
    }

    #[test]
    fn a_panic_leaves_the_lane() {
        let panicked =
            std::panic::catch_unwind(|| run(Lane::Light, || assert!(spend(1).is_err(), "as a handler may")));
        assert!(panicked.is_err());
        assert!(spend(u64::MAX).is_ok());
    }
}
