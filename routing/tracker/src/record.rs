//! A registered transaction with its evidence and its polling schedule. Pure.
//!
//! # Invariants
//!
//! * A transfer is abandoned only after a poll that got all its replies, or after an outage longer than
//!   [`Options::outage_grace`].
//! * An unfinished transfer that was not abandoned long ago has a next poll.
//! * Polling of every finished transfer stops eventually.

use std::time::Duration;

use registry::Registry;
use serde::{Deserialize, Serialize};

use crate::chains::known_chain::{KnownChain, KnownChains};
use crate::evidence::hop::{ObservedHop, TxRef};
use crate::evidence::transfer::{State, Transfer};
use crate::options::Options;
use crate::queue::position::{Class, QueuePosition};

/// A registered transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The chain's id.
    pub chain: String,
    /// The hash as returned at registration.
    pub hash: String,
    /// The other hash of a minievm transaction: the chain's, if the registered one is the EVM's.
    #[serde(default)]
    pub other_hash: Option<String>,
    /// Time of registration or of the last revival; nanoseconds since 1970.
    pub since: i64,
    /// Counts the changes of this record.
    pub generation: u64,
    /// Time of the next poll; none if polling has ended.
    pub due: Option<u64>,
    /// Client that registered it, until a node has it; see `unseen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u64>,
    /// Outcome of the transaction itself.
    pub source: Source,
    /// Whether no node of the chain has an index, so that only its newest blocks can be searched for the transaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_without_index: bool,
    /// Transfers that it started.
    pub transfers: Vec<Transfer>,
    /// The chains of its hops as the registry last had them.
    #[serde(default, skip_serializing_if = "KnownChains::is_empty")]
    pub chains: KnownChains,
}

/// Outcome of a transaction on its own chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// No node has it.
    Unseen {
        /// Seconds after which it was abandoned, if it was.
        abandoned: Option<u64>,
    },
    /// An EVM node has it, but its block is not final.
    Unsure,
    /// It was executed.
    Executed {
        /// Its location.
        tx: TxRef,
        /// Whether its block can no longer change.
        is_final: bool,
    },
    /// It failed.
    Failed {
        /// The module's code, if there is one.
        code: Option<u64>,
        /// Error text.
        message: String,
    },
}

impl Record {
    /// A newly registered transaction.
    pub fn new(chain: &str, hash: &str, now: i64) -> Self {
        Self {
            chain: chain.to_owned(),
            hash: hash.to_owned(),
            other_hash: None,
            since: now,
            generation: 0,
            due: Some(moment(now)),
            client: None,
            source: Source::Unseen { abandoned: None },
            is_without_index: false,
            transfers: Vec::new(),
            chains: KnownChains::new(),
        }
    }

    /// Keeps what the registry knows of the chains of a transaction that was executed.
    pub(crate) fn keep_chains(&mut self, registry: &Registry) {
        let hops = self.transfers.iter().flat_map(|transfer| &transfer.hops);
        let ends = hops.flat_map(|hop| [Some(hop.from()), hop.to()]).flatten();
        let all: Vec<_> = match self.source {
            Source::Executed { .. } => ends.chain([self.chain.as_str()]).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        for id in all {
            if let Some(chain) = KnownChain::in_registry(registry, &id) {
                self.chains.insert(id, chain);
            }
        }
    }

    /// Resumes abandoned transfers; returns true if there were any.
    pub fn revive(&mut self, now: i64) -> bool {
        let mut revived = false;
        if let Source::Unseen { abandoned: abandoned @ Some(_) } = &mut self.source {
            *abandoned = None;
            revived = true;
        }
        for transfer in &mut self.transfers {
            if transfer.abandoned.take().is_some() {
                transfer.changed = now;
                revived = true;
            }
        }
        if revived {
            self.since = now;
            self.due = Some(moment(now));
            self.generation += 1;
        }
        revived
    }

    /// Abandons transfers without progress for too long, and sets the time of the next poll. `answered`: whether every
    /// query of this poll was answered.
    pub fn schedule(&mut self, now: i64, answered: bool, options: &Options) {
        // If the clock was set back since, a later `since` would delay abandonment by the difference.
        self.since = self.since.min(now);
        for transfer in &mut self.transfers {
            transfer.changed = transfer.changed.min(now);
        }
        let source = match &mut self.source {
            Source::Unseen { abandoned } => {
                let quiet = since(self.since, now);
                if answered && abandoned.is_none() && quiet >= options.submitted_grace {
                    *abandoned = Some(quiet.as_secs());
                }
                match *abandoned {
                    _ if !answered && quiet >= options.outage_grace => None,
                    None => Some(options.unseen_pace(quiet)),
                    Some(_) => next(*abandoned, quiet, options.unseen_kept, options),
                }
            }
            Source::Unsure | Source::Executed { is_final: false, .. } => {
                Some(options.pace(since(self.since, now)))
            }
            Source::Executed { .. } | Source::Failed { .. } => None,
        };
        let transfers = self.transfers.iter_mut().map(|transfer| schedule(transfer, now, answered, options));
        let soonest = transfers.flatten().chain(source).min();
        self.due = soonest.map(|wait| moment(now).saturating_add(nanos(wait).max(1)));
        if !self.is_unseen() {
            self.client = None;
        }
    }

    /// Position in the queue of its chain.
    pub fn position(&self) -> QueuePosition {
        let class = match (&self.source, self.due) {
            (_, None) => {
                let changed = self.transfers.iter().map(|transfer| transfer.changed).max();
                return QueuePosition {
                    class: Class::Ended,
                    at: moment(self.since.max(changed.unwrap_or(0))),
                };
            }
            (Source::Unseen { abandoned: Some(_) }, _) => Class::Abandoned,
            // A polled transaction is due later than its registration.
            (Source::Unseen { .. }, Some(due)) if due <= moment(self.since) => Class::New,
            (Source::Unseen { .. }, _) => Class::Unseen,
            _ => Class::Followed,
        };
        QueuePosition { class, at: self.due.unwrap_or(0) }
    }

    /// True if no node has it.
    pub fn is_unseen(&self) -> bool {
        matches!(self.source, Source::Unseen { .. })
    }

    /// Whether no node has it and it is due for deletion.
    pub fn is_expired(&self) -> bool {
        self.is_unseen() && self.due.is_none()
    }

    /// The combined state.
    pub fn state(&self) -> State {
        match &self.source {
            Source::Unseen { abandoned: None } | Source::Unsure => State::Submitted,
            Source::Unseen { abandoned: Some(_) } => State::Abandoned,
            Source::Failed { .. } => State::CompletedError,
            Source::Executed { .. } => overall(&self.transfers),
        }
    }
}

/// Abandons a transfer without progress for too long; returns the time until its next poll.
fn schedule(transfer: &mut Transfer, now: i64, answered: bool, options: &Options) -> Option<Duration> {
    let quiet = since(transfer.changed, now);
    if transfer.verdict().state.is_final() {
        let is_waiting = !transfer.is_settled() && quiet < options.post_final_watch;
        return is_waiting.then(|| options.pace(quiet));
    }
    let patience = patience(transfer, options);
    let patience = if answered { patience } else { patience.max(options.outage_grace) };
    if transfer.abandoned.is_none() && quiet >= patience {
        transfer.abandoned = Some(quiet.as_secs());
    }
    let wait = next(transfer.abandoned, quiet, options.abandoned_recheck, options)?;
    Some(transfer.hops.iter().filter_map(|hop| claimable_in(hop, now)).fold(wait, Duration::min))
}

fn next(
    abandoned: Option<u64>,
    quiet: Duration,
    abandoned_recheck: Duration,
    options: &Options,
) -> Option<Duration> {
    let Some(after) = abandoned else { return Some(options.pace(quiet)) };
    let is_watched = quiet.saturating_sub(Duration::from_secs(after)) < abandoned_recheck;
    is_watched.then_some(options.abandoned_recheck_every)
}

/// Time without progress after which a transfer is abandoned.
fn patience(transfer: &Transfer, options: &Options) -> Duration {
    let longest = options.stall * Options::LONGEST_STALL;
    let wait = |hop: &ObservedHop| match hop {
        ObservedHop::Ibc(hop) if hop.packet.timeout_nanos > 0 => {
            let until =
                Duration::from_nanos(hop.packet.timeout_nanos.saturating_sub(moment(transfer.changed)));
            (until + Duration::from_mins(10)).min(longest)
        }
        ObservedHop::Withdrawal(hop) => match hop.output.as_ref().and_then(|output| output.claimable_at) {
            Some(at) => since(transfer.changed, at) + options.claim_margin,
            None => Duration::from_secs(hop.finalization_seconds).saturating_add(options.claim_margin),
        },
        _ => Duration::ZERO,
    };
    transfer.hops.iter().map(wait).fold(options.stall, Duration::max)
}

fn claimable_in(hop: &ObservedHop, now: i64) -> Option<Duration> {
    let ObservedHop::Withdrawal(hop) = hop else { return None };
    let at = hop.output.as_ref().filter(|_| hop.claimed.is_none())?.claimable_at?;
    (at > now).then(|| since(now, at))
}

/// Nanoseconds since 1970 in the form of the queue's keys.
pub(crate) fn moment(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

fn since(then: i64, now: i64) -> Duration {
    Duration::from_nanos(u64::try_from(i128::from(now) - i128::from(then)).unwrap_or(0))
}

pub(crate) fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

fn overall(transfers: &[Transfer]) -> State {
    let states: Vec<_> = transfers.iter().map(Transfer::state).collect();
    let has = |wanted: &[State]| states.iter().any(|state| wanted.contains(state));
    let in_error = has(&[State::PendingError, State::CompletedError]);
    if has(&[State::Submitted, State::Pending, State::PendingError]) {
        return if in_error { State::PendingError } else { State::Pending };
    }
    if in_error {
        State::CompletedError
    } else if has(&[State::Abandoned]) {
        State::Abandoned
    } else {
        State::CompletedSuccess
    }
}
