//! State machine of one endpoint: backoff, rate limit, distrust, chain, head and outage.
//!
//! Pure: every transition takes the time. `pool` drives it with the outcome of every request, `watch` with statuses
//! and websocket events.
//!
//! # Invariants
//!
//! * A failing endpoint is queried last, for a capped time that grows with its failures; one reply resets the backoff.
//! * A pause that the server ordered is kept, capped. A reply does not end it: its request was sent before the
//!   order.
//! * Distrust lasts a minute, each later time twice the last, up to an hour, and ends by time alone. A false reply
//!   during it is counted but does not lengthen it: its request may have been sent before.
//! * A wrong chain ends when the endpoint reports the right one.

use std::time::Duration;

use tokio::time::Instant;

use crate::comet::status::{NewBlock, Status, is_status};
use crate::error::{Error, Kind};
use crate::pool::endpoint::Request;
use crate::pool::origin::Origin;
use crate::pool::outage::Outage;
use crate::retry::Backoff;

/// Availability of an endpoint for queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum EndpointStatus {
    /// Answers, and is queried in its turn.
    Healthy,
    /// Failed several times in a row; queried last.
    BackingOff,
    /// Ordered a pause and is not queried until it is over.
    RateLimited,
    /// Gave a provably false reply; queried only if all others did too.
    Distrusted,
    /// Serves another chain; not queried.
    WrongChain,
    /// Has not answered anything yet; queried in its turn.
    #[default]
    NeverSeen,
}

/// Published state of one endpoint.
#[derive(Debug, Clone, Default)]
pub struct EndpointState {
    /// The endpoint.
    pub origin: Origin,
    /// Height of its last block, as it reported itself.
    pub height: Option<u64>,
    /// Hash of the block at `height`, if `/status` reported it: an event does not contain it.
    pub hash: Option<[u8; 32]>,
    /// Hash of the parent block, if an event reported `height`.
    pub parent: Option<[u8; 32]>,
    /// Height of its oldest block.
    pub earliest: Option<u64>,
    /// True while it syncs old blocks.
    pub catching_up: bool,
    /// When it last reported its height.
    pub seen: Option<Instant>,
    /// Status at the time of this state; some statuses end by time alone.
    pub status: EndpointStatus,
    /// Failed requests.
    pub failures: u64,
    /// Provably false replies.
    pub false_answers: u64,
    /// Text of its last fault: a failure, a gap such as a pruned height, or a false reply. "Not yet" and the
    /// rejection of a single request are not faults.
    pub last_error: Option<String>,
    /// The same in words for strangers: without an address and without a text of the node.
    pub last_outline: Option<&'static str>,
    /// True if a live websocket delivers its new blocks.
    pub by_websocket: bool,
    /// Start of the current outage: a failed status query, or several failed requests in a row.
    pub down_since: Option<Instant>,
}

impl EndpointState {
    /// True if it is neither distrusted nor of another chain.
    pub fn is_trusted(&self) -> bool {
        !matches!(self.status, EndpointStatus::Distrusted | EndpointStatus::WrongChain)
    }
}

/// Availability of an endpoint now, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Availability {
    Ready,
    /// Failing: queried only after the others.
    BackingOff,
    /// The server ordered a pause that lasts this much longer.
    RateLimited(Duration),
}

/// Expected and reported chain id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainMismatch {
    pub(crate) want: String,
    pub(crate) got: String,
}

/// Event of an outage that is to be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutageEvent {
    Began,
    Ended(Duration),
}

/// Consequence of a false reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Penalty {
    /// Remaining time of the distrust.
    pub(crate) left: Duration,
    /// False replies so far, including this one.
    pub(crate) false_answers: u64,
    /// True if it is to be logged.
    pub(crate) log: bool,
}

/// State of one endpoint and its history as far as transitions need it.
#[derive(Debug, Default)]
pub(crate) struct EndpointStats {
    /// All but `status` and `down_since`, which are derived.
    state: EndpointState,
    answered: bool,
    failures_in_a_row: u32,
    backoff_until: Option<Instant>,
    rate_limited_until: Option<Instant>,
    distrusted_until: Option<Instant>,
    penalties: u32,
    penalty_logged: Option<Instant>,
    chain_mismatch: Option<ChainMismatch>,
    /// The lowest height that it was found to lack, and how long that is believed.
    lacking: Option<(u64, Instant)>,
    outage: Outage,
}

/// Consecutive failures without backoff.
const TOLERATED_FAILURES: u32 = 2;

/// Pauses after further failures.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter: true };

/// Longest pause that a server can order.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Durations of distrust.
const PENALTY: Backoff =
    Backoff { initial: Duration::from_mins(1), max: Duration::from_hours(1), jitter: false };

/// Minimum interval between log lines of further false replies.
const REMINDER: Duration = Duration::from_secs(30);

/// Time for which an endpoint that lacked a height is queried about it and later ones after the others. Services without
/// a status show that they have caught up only when they are queried.
const LAG: Duration = Duration::from_secs(10);

/// A shorter failure is not an outage: a starting server answers 503 for a moment.
const MIN_OUTAGE: Duration = Duration::from_secs(1);

impl EndpointStats {
    pub(crate) fn new(origin: Origin) -> Self {
        let state = EndpointState { origin, ..EndpointState::default() };
        Self { state, ..Self::default() }
    }

    pub(crate) fn snapshot(&self, now: Instant) -> EndpointState {
        EndpointState { status: self.status(now), down_since: self.outage.since(), ..self.state.clone() }
    }

    pub(crate) fn status(&self, now: Instant) -> EndpointStatus {
        if self.chain_mismatch.is_some() {
            return EndpointStatus::WrongChain;
        }
        if self.is_distrusted(now) {
            return EndpointStatus::Distrusted;
        }
        match self.availability(now) {
            Availability::RateLimited(_) => EndpointStatus::RateLimited,
            Availability::BackingOff => EndpointStatus::BackingOff,
            Availability::Ready if self.answered => EndpointStatus::Healthy,
            Availability::Ready => EndpointStatus::NeverSeen,
        }
    }

    pub(crate) fn availability(&self, now: Instant) -> Availability {
        match self.rate_limited_until.filter(|until| *until > now) {
            Some(until) => Availability::RateLimited(until - now),
            None if self.backoff_until.is_some_and(|until| until > now) => Availability::BackingOff,
            None => Availability::Ready,
        }
    }

    pub(crate) fn is_distrusted(&self, now: Instant) -> bool {
        self.distrusted_until.is_some_and(|until| until > now)
    }

    /// True if no outage is known.
    pub(crate) fn is_up(&self) -> bool {
        self.outage.since().is_none()
    }

    pub(crate) fn chain_mismatch(&self) -> Option<&ChainMismatch> {
        self.chain_mismatch.as_ref()
    }

    /// Preference for a request about `height` among endpoints of the same availability; the least is best. Distrusted
    /// endpoints are compared by their false replies, others by whether they are known to have the height.
    pub(crate) fn preference(&self, height: Option<u64>, now: Instant) -> u64 {
        let Some(height) = height.filter(|_| !self.is_distrusted(now)) else {
            return if self.is_distrusted(now) { self.state.false_answers } else { 0 };
        };
        let is_pruned = self.state.earliest.is_some_and(|earliest| earliest > height);
        let is_lacking = self.lacking.is_some_and(|(lowest, until)| lowest <= height && until > now);
        match self.state.height {
            Some(top) if top < height => 2,
            _ if is_pruned || is_lacking => 2,
            Some(_) => 0,
            None => 1,
        }
    }

    /// Records the outcome of a request that began at `began`. Returns true if the published state has changed, and the
    /// begin or end of an outage. Caps the pause in the error.
    pub(crate) fn on_outcome(
        &mut self,
        request: &Request,
        outcome: Result<(), &mut Error>,
        began: Instant,
        now: Instant,
    ) -> (bool, Option<OutageEvent>) {
        let before = self.comparable(now);
        let mut is_new_error = false;
        let mut outage = None;
        match outcome {
            Err(error) if error.kind() == Kind::Transient => {
                self.state.failures = self.state.failures.saturating_add(1);
                if let Error::Busy { retry_after: Some(pause), .. } = error {
                    *pause = self.on_rate_limit(*pause, now);
                } else {
                    self.on_failure(now);
                }
                // A single failure may be due to the request; only `/status` can always be answered.
                let is_down = is_status(request) || self.failures_in_a_row > TOLERATED_FAILURES;
                if is_down && self.outage.failed(began, now, MIN_OUTAGE) {
                    outage = Some(OutageEvent::Began);
                }
                is_new_error = self.set_last_error(error);
            }
            answered => {
                (self.answered, self.failures_in_a_row, self.backoff_until) = (true, 0, None);
                match answered {
                    Ok(()) => self.on_answer(request),
                    Err(error) => {
                        if let Some(tip) = error.tip() {
                            self.state.seen = Some(now);
                            self.set_height(tip);
                        }
                        if let Some(height) = request.height.filter(|_| error.kind() == Kind::NotYet) {
                            let known = self.lacking.filter(|(_, until)| *until > now);
                            let lowest = known.map_or(height, |(lowest, _)| lowest.min(height));
                            self.lacking = Some((lowest, now + LAG));
                        }
                        is_new_error = self.set_last_error(error);
                    }
                }
                outage = self.outage.recovered(now).map(OutageEvent::Ended);
            }
        }
        (is_new_error || before != self.comparable(now), outage)
    }

    /// The members of the published state that a request can change, except for the last error.
    fn comparable(&self, now: Instant) -> impl PartialEq + use<> {
        (self.status(now), self.state.failures, self.state.height, self.outage.since())
    }

    fn on_failure(&mut self, now: Instant) {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        if let Some(steps) = self.failures_in_a_row.checked_sub(TOLERATED_FAILURES + 1) {
            self.backoff_until = Some(now + BACKOFF.delay(steps));
        }
    }

    /// Only raises a known height: an old block does not show the tip.
    fn on_answer(&mut self, request: &Request) {
        self.lacking =
            self.lacking.filter(|(lowest, _)| request.height.is_none_or(|height| height < *lowest));
        if let Some(height) = request.height.filter(|_| request.shows_height)
            && self.state.height.is_some_and(|top| top < height)
        {
            self.set_height(height);
        }
    }

    /// Sets the last error, if the endpoint and not the request is the reason. Returns true if it differs from the
    /// previous one.
    fn set_last_error(&mut self, error: &Error) -> bool {
        let of_request = matches!(
            error,
            Error::NotYet { .. }
                | Error::Refused { .. }
                | Error::Untraceable { .. }
                | Error::InvalidRequest { .. }
                | Error::TooLarge { .. }
        );
        if !of_request {
            self.state.last_outline = Some(error.outline());
        }
        let text = Some(error.to_string());
        !of_request && std::mem::replace(&mut self.state.last_error, text.clone()) != text
    }

    /// Records a pause that the server ordered. Returns its length: the later end of two orders applies.
    pub(crate) fn on_rate_limit(&mut self, pause: Duration, now: Instant) -> Duration {
        let until = (now + pause.min(MAX_PAUSE)).max(self.rate_limited_until.unwrap_or(now));
        self.rate_limited_until = Some(until);
        until - now
    }

    /// Records a provably false reply; `text` describes it.
    pub(crate) fn on_false_answer(&mut self, text: String, now: Instant) -> Penalty {
        (self.state.last_error, self.state.last_outline) =
            (Some(text), Some("its replies contradict each other"));
        self.state.false_answers = self.state.false_answers.saturating_add(1);
        let until = self.distrusted_until.filter(|until| *until > now).unwrap_or_else(|| {
            self.penalties = self.penalties.saturating_add(1);
            now + PENALTY.delay(self.penalties - 1)
        });
        self.distrusted_until = Some(until);
        let log = self.penalty_logged.is_none_or(|logged| now - logged >= REMINDER);
        if log {
            self.penalty_logged = Some(now);
        }
        Penalty { left: until - now, false_answers: self.state.false_answers, log }
    }

    /// Records the chain that the endpoint reports. Returns true if the mismatch differs from the previous one.
    pub(crate) fn on_chain_id(&mut self, mismatch: Option<ChainMismatch>) -> bool {
        std::mem::replace(&mut self.chain_mismatch, mismatch.clone()) != mismatch
    }

    /// Records a status that was requested at `requested`, unless a later event is newer. Returns true if the node was
    /// syncing at the previous status.
    pub(crate) fn on_status(&mut self, status: &Status, requested: Instant, now: Instant) -> bool {
        let state = &mut self.state;
        state.earliest = Some(status.earliest_height);
        let was_catching_up = std::mem::replace(&mut state.catching_up, status.catching_up);
        let is_overtaken =
            state.seen.is_some_and(|seen| seen > requested) && state.height > Some(status.latest_height);
        state.seen = Some(now);
        if !is_overtaken {
            self.set_height(status.latest_height);
            self.state.hash = status.latest_hash;
        }
        was_catching_up
    }

    /// Records a websocket event. Only a higher block changes the state: an earlier status may have reported the same,
    /// and only a status shows that a node was reset.
    pub(crate) fn on_event(&mut self, block: &NewBlock, now: Instant) {
        if self.state.height.is_none_or(|top| top < block.height) {
            self.set_height(block.height);
            (self.state.parent, self.state.seen) = (block.parent, Some(now));
        }
    }

    pub(crate) fn on_websocket(&mut self, is_live: bool) {
        self.state.by_websocket = is_live;
    }

    fn set_height(&mut self, height: u64) {
        if self.state.height != Some(height) {
            (self.state.height, self.state.hash, self.state.parent) = (Some(height), None, None);
        }
    }
}

#[cfg(test)]
mod tests;
