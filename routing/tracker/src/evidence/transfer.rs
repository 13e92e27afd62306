//! One transfer: a chain of hops and the state derived from them. Pure.
//!
//! # Invariants
//!
//! * A successful or failed transfer keeps its state for every later observation.
//! * A transfer is in error only when it can no longer succeed, because wallets treat an error as final.

use serde::{Deserialize, Serialize};

use crate::evidence::hop::{Finalized, ObservedHop, Relation, Unfollowed};
use crate::evidence::state::{Observation, Progress, advance, following, is_refunded, is_settled, progress};

/// The states of the wire, with the names of the Skip API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Accepted, not seen on chain.
    Submitted,
    /// Seen, steps outstanding.
    Pending,
    /// It will fail; the tokens are being refunded.
    PendingError,
    /// The tokens arrived at their destination.
    CompletedSuccess,
    /// Failed; the release names the location of the tokens.
    CompletedError,
    /// No progress for [`crate::Options::stall`] or longer; polling slowed down.
    Abandoned,
}

impl State {
    /// Whether the state is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::CompletedSuccess | Self::CompletedError)
    }
}

/// Current or future location of the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// With the sender of this hop.
    SenderOf(usize),
    /// With the receiver of this hop.
    ReceiverOf(usize),
    /// With the receiver of this hop, whose call was not made.
    Uncalled(usize),
}

/// Combined state of a transfer's hops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// [`State::Pending`], [`State::PendingError`] or an end.
    pub state: State,
    /// The hop that the transfer waits for.
    pub blocking: Option<usize>,
    /// Location of the tokens, and whether they are there yet.
    pub release: Option<(Place, bool)>,
    /// Reason of a failure, if no hop has one.
    pub reason: Option<String>,
}

/// A chain of hops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Empty for a transaction that stayed on its chain.
    pub hops: Vec<ObservedHop>,
    /// Time of the latest evidence; nanoseconds since 1970.
    pub changed: i64,
    /// Seconds after which it was abandoned, if it was.
    #[serde(default)]
    pub abandoned: Option<u64>,
}

impl Transfer {
    /// A transfer with its first hops; none for a transaction that stayed on its chain.
    pub fn new(first: impl IntoIterator<Item = ObservedHop>, now: i64) -> Self {
        Self { hops: first.into_iter().collect(), changed: now, abandoned: None }
    }

    /// Applies an observation about one of the hops. Returns whether there is new evidence, which ends an abandonment.
    pub fn observe(&mut self, at: usize, observation: &Observation, now: i64) -> bool {
        let Some(hop) = self.hops.get(at) else { return false };
        let ended = Some(self.verdict()).filter(|verdict| verdict.state.is_final());
        let after = advance(hop.clone(), observation);
        // After the end, only forwarded packets are still added.
        let mut next = following(&after, observation);
        let may_add = |next: &ObservedHop| ended.is_none() || next.link() == Relation::Forward;
        if self.hops.len() != at + 1 || !next.first().is_some_and(may_add) {
            next = &[];
        }
        if after == *hop && next.is_empty() {
            return false;
        }
        let is_news = !next.is_empty() || !is_only_scanned(hop, &after);
        let mut hops = self.hops.clone();
        hops[at] = after;
        hops.extend_from_slice(next);
        let candidate = Self { hops, ..self.clone() };
        if ended.is_some_and(|ended| candidate.verdict().state != ended.state) {
            // Chains do not contradict themselves, so the observation belongs to another transfer.
            return false;
        }
        self.hops = candidate.hops;
        if is_news {
            self.changed = now;
            self.abandoned = None;
        }
        is_news
    }

    /// Progress of a hop, derived from all hops.
    pub fn progress(&self, at: usize) -> Progress {
        let own = progress(&self.hops[at]);
        if own.is_end() {
            return own;
        }
        // A forwarded packet has the acknowledgement of the next packet: success of one is success of the other, in
        // both directions, because tokens that arrived at the end do not return.
        let forwards = |hop: &ObservedHop| hop.link() == Relation::Forward;
        let later = self.hops.iter().skip(at + 1).take_while(|hop| forwards(hop));
        let mut earlier = (0..at).rev().take_while(|&i| forwards(&self.hops[i + 1]));
        let end_is_good = later.last().is_some_and(|hop| progress(hop) == Progress::Done);
        let begin_is_good = earlier.any(|i| progress(&self.hops[i]) == Progress::Done);
        if end_is_good || begin_is_good { Progress::Done } else { own }
    }

    /// Combined state of the hops.
    pub fn verdict(&self) -> Verdict {
        let Some(last) = self.hops.len().checked_sub(1) else {
            return Verdict { state: State::CompletedSuccess, blocking: None, release: None, reason: None };
        };
        if self.progress(last) == Progress::Done {
            if self.may_go_on(last) {
                // The sending chain reports success; the next hop is unknown yet.
                let blocking = Some(last);
                return Verdict { state: State::Pending, blocking, release: None, reason: None };
            }
            let refund = self.hops[last].link() == Relation::Refund;
            let state = if refund { State::CompletedError } else { State::CompletedSuccess };
            let reason = refund.then(|| self.failed().and_then(|at| reason(&self.hops[at]))).flatten();
            let release = (!self.went_on(last)).then_some((Place::ReceiverOf(last), true));
            return Verdict { state, blocking: None, release, reason };
        }
        let Some(at) = self.failed() else {
            return Verdict { state: State::Pending, blocking: self.blocking(), release: None, reason: None };
        };
        let (place, is_there) = match &self.hops[at] {
            ObservedHop::Deposit(hop) if matches!(&hop.finalized, Some((_, Finalized::HookFailed(_)))) => {
                (Place::Uncalled(at), true)
            }
            _ => {
                let root = self.root(at);
                (Place::SenderOf(root), is_refunded(&self.hops[root]))
            }
        };
        let state = if is_there { State::CompletedError } else { State::PendingError };
        let blocking = if is_there { None } else { self.blocking() };
        Verdict { state, blocking, release: Some((place, is_there)), reason: reason(&self.hops[at]) }
    }

    /// The state, with abandonment.
    pub fn state(&self) -> State {
        match self.verdict().state {
            state if state.is_final() => state,
            _ if self.abandoned.is_some() => State::Abandoned,
            state => state,
        }
    }

    /// The step that cannot be followed, if the transfer waits for one.
    pub fn unfollowed(&self) -> Option<&Unfollowed> {
        let last = self.hops.len().checked_sub(1)?;
        match &self.hops[last] {
            ObservedHop::Unfollowed(hop) if !self.progress(last).is_end() => Some(hop),
            _ => None,
        }
    }

    /// Whether no further evidence is possible.
    pub fn is_settled(&self) -> bool {
        self.verdict().state.is_final() && self.hops.iter().all(is_settled)
    }

    /// The first hop that failed or can no longer succeed.
    fn failed(&self) -> Option<usize> {
        (0..self.hops.len()).find(|&at| progress(&self.hops[at]) == Progress::Failed || self.is_lost(at))
    }

    /// Whether a packet can only time out and will not be resent.
    fn is_lost(&self, at: usize) -> bool {
        let ObservedHop::Ibc(hop) = &self.hops[at] else { return false };
        let sent_once = match at.checked_sub(1).map(|before| &self.hops[before]) {
            Some(ObservedHop::Ibc(before)) if hop.link == Relation::Forward => {
                before.packet.forward.as_ref().is_some_and(|forward| forward.retries == Some(0))
            }
            _ => true,
        };
        hop.expired && sent_once
    }

    /// Whether a packet may have been forwarded by a chain that has not acknowledged it yet.
    fn may_go_on(&self, at: usize) -> bool {
        let ObservedHop::Ibc(hop) = &self.hops[at] else { return false };
        let packet = &hop.packet;
        let is_unseen = hop.received.as_ref().is_none_or(|at| !at.is_found());
        // A forwarded packet is acknowledged after the next one; what a contract sent shows only in the transaction.
        packet.to.is_some()
            && ((packet.forward.is_some() && hop.received.is_none()) || (packet.hook.is_some() && is_unseen))
    }

    /// Whether a packet was forwarded to a chain that is not tracked.
    fn went_on(&self, at: usize) -> bool {
        matches!(&self.hops[at], ObservedHop::Ibc(hop) if hop.packet.forward.is_some())
    }

    /// The hop whose sender receives the refund when the hop `at` fails.
    fn root(&self, at: usize) -> usize {
        (0..=at).rev().find(|&i| self.hops[i].link() != Relation::Forward).unwrap_or(0)
    }

    /// The first unfinished hop; if all are finished, the first that failed.
    fn blocking(&self) -> Option<usize> {
        let all = 0..self.hops.len();
        all.clone()
            .find(|&at| !self.progress(at).is_end())
            .or_else(|| all.clone().find(|&at| self.progress(at) == Progress::Failed))
    }
}

/// Whether only the scan position changed, which is stored but is no progress.
fn is_only_scanned(before: &ObservedHop, after: &ObservedHop) -> bool {
    let unscanned = |hop: &ObservedHop| match hop.clone() {
        ObservedHop::LayerZero(mut hop) => {
            hop.scanned = None;
            ObservedHop::LayerZero(hop)
        }
        // The L1 returned the same output at a greater height.
        ObservedHop::Withdrawal(mut hop) => {
            hop.output_as_of = 0;
            ObservedHop::Withdrawal(hop)
        }
        other => other,
    };
    unscanned(before) == unscanned(after)
}

fn reason(hop: &ObservedHop) -> Option<String> {
    match hop {
        ObservedHop::Deposit(hop) => match &hop.finalized {
            Some((_, Finalized::HookFailed(reason) | Finalized::DepositFailed(reason))) => {
                Some(reason.clone())
            }
            _ => None,
        },
        ObservedHop::Swap(hop) => hop.outcome.as_ref().err().cloned(),
        _ => None,
    }
}
