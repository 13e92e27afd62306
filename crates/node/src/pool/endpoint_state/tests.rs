//! Every transition of the state machine.

use std::sync::Arc;

use super::*;
use crate::error::RequestContext;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

fn stats() -> EndpointStats {
    EndpointStats::new(Origin::new("comet", Arc::from("n:26657"), 0))
}

fn block(height: u64) -> Request {
    Request::get("block", String::new()).about_block(height)
}

fn broken() -> Error {
    Error::Cut { at: RequestContext::default(), reason: "closed".to_owned() }
}

fn not_yet(tip: u64) -> Error {
    Error::NotYet { at: RequestContext::default(), tip: Some(tip), message: String::new() }
}

fn busy(retry_after: Option<Duration>) -> Error {
    Error::Busy { at: RequestContext::default(), status: 429, retry_after }
}

fn pruned() -> Error {
    Error::Pruned { at: RequestContext::default(), lowest: None, message: String::new() }
}

fn refused() -> Error {
    Error::Refused { at: RequestContext::default(), code: 3, message: String::new() }
}

fn status(latest_height: u64) -> Status {
    Status {
        chain_id: "c-1".to_owned(),
        node_version: String::new(),
        latest_height,
        latest_hash: Some([7; 32]),
        earliest_height: 1,
        catching_up: false,
    }
}

fn event(height: u64) -> NewBlock {
    NewBlock { chain_id: "c-1".to_owned(), height, parent: Some([6; 32]) }
}

impl EndpointStats {
    /// A request for a block that takes no time. Returns true if the published state has changed.
    fn fail(&mut self, mut error: Error, now: Instant) -> bool {
        self.on_outcome(&block(5), Err(&mut error), now, now).0
    }

    fn answer(&mut self, height: u64, now: Instant) -> bool {
        self.on_outcome(&block(height), Ok(()), now, now).0
    }
}

#[test]
fn the_status_is_that_of_the_most_severe_recent_event() {
    use EndpointStatus::{BackingOff, Distrusted, Healthy, NeverSeen, RateLimited, WrongChain};
    type Step = fn(&mut EndpointStats, Instant);
    let fail: Step = |stats, now| {
        stats.fail(broken(), now);
    };
    let answer: Step = |stats, now| {
        stats.answer(5, now);
    };
    let refuse: Step = |stats, now| {
        stats.fail(refused(), now);
    };
    let wait: Step = |stats, now| {
        stats.fail(not_yet(4), now);
    };
    let limit: Step = |stats, now| {
        stats.fail(busy(Some(SECOND)), now);
    };
    let unavailable: Step = |stats, now| {
        stats.fail(busy(None), now);
    };
    let lie: Step = |stats, now| {
        stats.on_false_answer(String::new(), now);
    };
    let stray: Step = |stats, _| {
        stats.on_chain_id(Some(ChainMismatch { want: "c-1".to_owned(), got: "c-2".to_owned() }));
    };
    let come_back: Step = |stats, _| {
        stats.on_chain_id(None);
    };
    let table: &[(&str, &[Step], EndpointStatus)] = &[
        ("nothing", &[], NeverSeen),
        ("an answer", &[answer], Healthy),
        ("a rejection is an answer", &[refuse], Healthy),
        ("a wait is an answer", &[wait], Healthy),
        ("one failure", &[fail], NeverSeen),
        ("two failures after an answer", &[answer, fail, fail], Healthy),
        ("three failures in a row", &[answer, fail, fail, fail], BackingOff),
        ("three failures without an order", &[unavailable, unavailable, unavailable], BackingOff),
        ("an answer between failures", &[fail, fail, answer, fail], Healthy),
        ("an answer after the backoff began", &[fail, fail, fail, answer], Healthy),
        ("an ordered pause", &[answer, limit], RateLimited),
        ("an answer during an ordered pause", &[limit, answer], RateLimited),
        ("an ordered pause during the backoff", &[fail, fail, fail, limit], RateLimited),
        ("a false answer", &[answer, lie], Distrusted),
        ("an answer after a false one", &[lie, answer], Distrusted),
        ("an ordered pause of a distrusted endpoint", &[lie, limit], Distrusted),
        ("another chain", &[answer, stray], WrongChain),
        ("another chain of a distrusted endpoint", &[lie, stray], WrongChain),
        ("the right chain again", &[answer, stray, come_back], Healthy),
        ("the right chain of a distrusted endpoint", &[lie, stray, come_back], Distrusted),
    ];
    for (name, steps, status) in table {
        let (mut stats, now) = (stats(), Instant::now());
        steps.iter().for_each(|step| step(&mut stats, now));
        assert_eq!(stats.status(now), *status, "{name}");
        let state = stats.snapshot(now);
        assert_eq!(state.is_trusted(), !matches!(status, Distrusted | WrongChain), "{name}");
    }
}

#[test]
fn backoff_grows_from_the_third_failure_and_is_capped() {
    let (mut stats, now) = (stats(), Instant::now());
    for _ in 0..3 {
        stats.fail(broken(), now);
    }
    assert_eq!(stats.availability(now), Availability::BackingOff);
    assert_eq!(stats.availability(now + SECOND), Availability::Ready);
    for _ in 0..100 {
        stats.fail(broken(), now);
    }
    assert_eq!(stats.availability(now + SECOND * 29), Availability::BackingOff);
    assert_eq!(stats.availability(now + MINUTE), Availability::Ready);
    assert_eq!(stats.snapshot(now).failures, 103);
}

#[test]
fn an_ordered_pause_is_capped_and_neither_an_answer_nor_a_shorter_order_ends_it() {
    let (mut stats, now) = (stats(), Instant::now());
    let mut error = busy(Some(SECOND * 86_400));
    stats.on_outcome(&block(5), Err(&mut error), now, now);
    assert_eq!(error.pause(), Some(MINUTE), "the caller waits no longer either");
    stats.answer(5, now);
    assert_eq!(stats.availability(now), Availability::RateLimited(MINUTE));
    assert_eq!(stats.on_rate_limit(SECOND, now + SECOND), SECOND * 59);
    assert_eq!(stats.on_rate_limit(MINUTE, now + SECOND), MINUTE);
    assert_eq!(stats.availability(now + MINUTE), Availability::RateLimited(SECOND));
    assert_eq!(stats.availability(now + MINUTE + SECOND), Availability::Ready);
}

#[test]
fn distrust_lasts_a_minute_and_each_later_time_twice_the_last_up_to_an_hour() {
    let (mut stats, mut now) = (stats(), Instant::now());
    for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert!(!stats.is_distrusted(now));
        assert_eq!(stats.on_false_answer(String::new(), now).left, MINUTE * minutes);
        now += MINUTE * minutes;
        assert!(stats.is_distrusted(now - Duration::from_millis(1)));
    }
    assert_eq!(stats.snapshot(now).false_answers, 8);
}

#[test]
fn false_answers_to_earlier_requests_count_and_do_not_lengthen_distrust() {
    let (mut stats, now) = (stats(), Instant::now());
    stats.on_false_answer(String::new(), now);
    let second = stats.on_false_answer(String::new(), now + SECOND * 10);
    assert_eq!((second.left, second.false_answers), (SECOND * 50, 2));
}

#[test]
fn the_first_false_answer_is_logged_and_then_one_every_thirty_seconds() {
    let (mut stats, now) = (stats(), Instant::now());
    let mut logged = Vec::new();
    for second in 0..100 {
        logged.extend(stats.on_false_answer(String::new(), now + SECOND * second).log.then_some(second));
    }
    assert_eq!(logged, [0, 30, 60, 90]);
}

#[test]
fn a_mismatch_of_the_chain_is_reported_once() {
    let mismatch = |got: &str| Some(ChainMismatch { want: "c-1".to_owned(), got: got.to_owned() });
    let mut stats = stats();
    let news = [None, mismatch("c-2"), mismatch("c-2"), mismatch("c-3"), None, None];
    assert_eq!(news.map(|mismatch| stats.on_chain_id(mismatch)), [false, true, false, true, true, false]);
}

#[test]
fn an_answer_raises_a_known_height_and_a_wait_sets_it() {
    let (mut stats, now) = (stats(), Instant::now());
    let height = |stats: &EndpointStats| stats.snapshot(now).height;
    stats.answer(6, now);
    assert_eq!(height(&stats), None, "an old block does not show the tip");
    assert!(stats.fail(not_yet(5), now));
    assert_eq!((height(&stats), stats.snapshot(now).seen), (Some(5), Some(now)));
    assert!(stats.answer(6, now) && !stats.answer(6, now) && !stats.answer(2, now));
    assert_eq!(height(&stats), Some(6));
    stats.on_outcome(&Request::get("x", String::new()).about(9), Ok(()), now, now);
    assert_eq!(height(&stats), Some(6), "an answer that any endpoint can give");
    stats.fail(not_yet(4), now);
    assert_eq!(height(&stats), Some(4), "a node can be reset");
}

#[test]
fn an_overtaken_status_changes_nothing_and_a_later_one_may_lower_the_height() {
    let (mut stats, now) = (stats(), Instant::now());
    stats.on_event(&event(9), now + SECOND);
    stats.on_event(&event(8), now + SECOND);
    let head = |stats: &EndpointStats| {
        let state = stats.snapshot(now);
        (state.height, state.hash, state.parent)
    };
    assert_eq!(head(&stats), (Some(9), None, Some([6; 32])));
    stats.on_status(&status(8), now, now + SECOND * 2);
    assert_eq!(head(&stats), (Some(9), None, Some([6; 32])));
    stats.on_status(&status(9), now, now + SECOND * 2);
    assert_eq!(head(&stats), (Some(9), Some([7; 32]), Some([6; 32])));
    stats.on_status(&status(8), now + SECOND * 3, now + SECOND * 4);
    assert_eq!(head(&stats), (Some(8), Some([7; 32]), None));
    assert_eq!(stats.snapshot(now).earliest, Some(1));
}

#[test]
fn a_status_reports_whether_the_node_was_syncing_before() {
    let (mut stats, now) = (stats(), Instant::now());
    let syncing = Status { catching_up: true, ..status(8) };
    let before =
        [syncing.clone(), syncing, status(9), status(9)].map(|status| stats.on_status(&status, now, now));
    assert_eq!(before, [false, true, true, false]);
}

#[test]
fn endpoints_with_the_height_are_preferred_and_those_without_come_last() {
    let (mut unknown, now) = (stats(), Instant::now());
    let mut known = stats();
    known.on_status(&Status { earliest_height: 3, ..status(9) }, now, now);
    let preference = |stats: &EndpointStats, height| stats.preference(height, now);
    assert_eq!([9, 10, 2].map(|height| preference(&known, Some(height))), [0, 2, 2]);
    assert_eq!((preference(&unknown, Some(9)), preference(&known, None)), (1, 0));
    unknown.on_false_answer(String::new(), now);
    unknown.on_false_answer(String::new(), now);
    assert_eq!(preference(&unknown, Some(9)), 2, "distrusted endpoints are compared by their false answers");
}

#[test]
fn an_endpoint_that_lacked_a_height_is_queried_last_about_it_for_a_while() {
    let (mut stats, now) = (stats(), Instant::now());
    // The EVM's JSON-RPC answers `null`, without its tip.
    let lacks = |stats: &mut EndpointStats, height| {
        let error = Error::NotYet { at: RequestContext::default(), tip: None, message: String::new() };
        stats.on_outcome(&block(height), Err(&mut error.clone()), now, now);
    };
    lacks(&mut stats, 9);
    lacks(&mut stats, 8);
    let preferences =
        |stats: &EndpointStats, now| [7, 8, 20].map(|height| stats.preference(Some(height), now));
    assert_eq!(preferences(&stats, now), [1, 2, 2]);
    assert_eq!(preferences(&stats, now + LAG), [1, 1, 1], "it may have caught up");
    stats.answer(7, now);
    assert_eq!(preferences(&stats, now), [1, 2, 2]);
    stats.answer(9, now);
    assert_eq!(preferences(&stats, now), [1, 1, 1], "it has caught up");
}

#[test]
fn an_outage_begins_with_failing_statuses_or_several_failures_and_ends_with_an_answer() {
    let status_request = Request::get("status", String::new());
    for (request, failures) in [(status_request, 1), (block(5), 3)] {
        let (mut stats, start) = (stats(), Instant::now());
        for number in 1..=failures {
            assert!(stats.is_up());
            let (changed, event) = stats.on_outcome(&request, Err(&mut broken()), start, start);
            assert!(changed && event.is_none(), "failure {number}");
        }
        assert!(!stats.is_up());
        assert_eq!(stats.snapshot(start).down_since, Some(start));
        let later = start + MIN_OUTAGE;
        let (_, event) = stats.on_outcome(&request, Err(&mut broken()), later, later);
        assert_eq!(event, Some(OutageEvent::Began), "only now it has lasted long enough to be logged");
        let end = start + SECOND * 5;
        let (changed, event) = stats.on_outcome(&request, Ok(()), end, end);
        assert_eq!((changed, event), (true, Some(OutageEvent::Ended(SECOND * 5))));
        assert!(stats.is_up());
    }
}

#[test]
fn the_last_error_is_that_of_the_endpoint_and_not_that_of_a_request() {
    let (mut stats, now) = (stats(), Instant::now());
    let last = |stats: &EndpointStats| stats.snapshot(now).last_error;
    stats.fail(refused(), now);
    stats.fail(not_yet(5), now);
    assert_eq!(last(&stats), None);
    assert!(stats.fail(pruned(), now) && !stats.fail(pruned(), now), "the same text is not news");
    assert_eq!(last(&stats), Some(pruned().to_string()));
    stats.answer(5, now);
    assert_eq!(last(&stats), Some(pruned().to_string()), "an answer does not end it");
    stats.on_false_answer("its block 5 is false".to_owned(), now);
    assert_eq!(last(&stats).as_deref(), Some("its block 5 is false"));
}

#[test]
fn a_websocket_is_published() {
    let (mut stats, now) = (stats(), Instant::now());
    stats.on_websocket(true);
    assert!(stats.snapshot(now).by_websocket);
}
