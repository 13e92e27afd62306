//! Ranking of failures.

use std::time::Duration;

use super::*;

#[test]
fn of_two_transient_errors_the_one_with_the_shorter_pause_counts() {
    let busy = |seconds: Option<u64>| Error::Busy {
        at: RequestContext::default(),
        status: 429,
        retry_after: seconds.map(Duration::from_secs),
    };
    let broken = || Error::Cut { at: RequestContext::default(), reason: String::new() };
    let resting = || Error::RateLimited { at: RequestContext::default(), left: Duration::from_secs(5) };
    let table = [
        (busy(Some(60)), broken()),
        (busy(Some(60)), busy(None)),
        (busy(Some(60)), busy(Some(1))),
        (busy(Some(60)), resting()),
        (resting(), broken()),
    ];
    for (later, sooner) in table {
        assert_eq!(better(Some(later.clone()), sooner.clone()), sooner);
        assert_eq!(better(Some(sooner.clone()), later), sooner);
    }
}
