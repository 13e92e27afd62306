//! One poll of a registered transaction: sends its open queries, and then those that the replies open.
//!
//! # Invariants
//!
//! * The number of queries per poll is bounded.
//! * A query without a reply changes nothing.

use std::collections::HashSet;

use chain::hash::Hash;
use futures_util::{StreamExt as _, stream};

use crate::chains::queries::{ChainQueries, Outcome};
use crate::chains::query_error::QueryError;
use crate::evidence::detect::resolve;
use crate::evidence::hop::ObservedHop;
use crate::evidence::hop_query::{HopQuery, open_queries};
use crate::evidence::state::Observation;
use crate::evidence::transfer::Transfer;
use crate::meter;
use crate::record::{Record, Source};

/// Maximum rounds. A transfer has a few hops, each complete after three rounds.
const ROUNDS: usize = 32;
/// Concurrent queries per transaction.
const TOGETHER: usize = 8;

/// Result of one poll.
pub(crate) struct PollResult {
    pub(crate) record: Record,
    /// Whether every query was answered.
    pub(crate) answered: bool,
}

/// Polls once. `hash` is the registered one.
pub(crate) async fn poll_tx(queries: &ChainQueries<'_>, record: Record, hash: Hash) -> PollResult {
    let mut poll = TxPoll { queries, record, answered: true, sent: HashSet::new() };
    poll.source(hash).await;
    for hop in poll.record.transfers.iter_mut().flat_map(|transfer| &mut transfer.hops) {
        resolve(queries.registry, hop);
    }
    for _ in 0..ROUNDS {
        if !poll.round().await {
            break;
        }
    }
    PollResult { record: poll.record, answered: poll.answered }
}

struct TxPoll<'a> {
    queries: &'a ChainQueries<'a>,
    record: Record,
    answered: bool,
    /// By transfer, hop and packet sequence, because a resent packet needs new queries.
    sent: HashSet<(usize, usize, u64, HopQuery)>,
}

impl TxPoll<'_> {
    async fn source(&mut self, hash: Hash) {
        let is_known = match &self.record.source {
            Source::Failed { .. } | Source::Executed { is_final: true, .. } => true,
            // An ended transaction keeps its source.
            Source::Executed { .. } => self.record.state().is_final(),
            Source::Unseen { .. } | Source::Unsure => false,
        };
        if is_known {
            return;
        }
        let outcome = self.queries.source(&self.record.chain, hash).await;
        self.record.is_without_index = outcome.as_ref().is_err_and(QueryError::is_without_index);
        match outcome {
            Ok(outcome) => self.settle(outcome),
            Err(e) => self.unanswered(&e),
        }
    }

    fn settle(&mut self, outcome: Outcome) {
        let now = self.queries.now;
        let record = &mut self.record;
        match outcome {
            Outcome::Unseen => {
                if !matches!(record.source, Source::Unseen { .. }) {
                    // The block of the transaction was replaced.
                    (record.source, record.transfers) = (Source::Unseen { abandoned: None }, Vec::new());
                    record.since = now;
                }
            }
            Outcome::Unsure => {
                (record.source, record.transfers) = (Source::Unsure, Vec::new());
            }
            Outcome::Failed { code, message } => {
                (record.source, record.transfers) = (Source::Failed { code, message }, Vec::new());
            }
            Outcome::Executed { tx, is_final, hops, other_hash } => {
                let is_same = matches!(&record.source, Source::Executed { tx: known, .. } if *known == tx);
                if !is_same {
                    hops.iter().flatten().for_each(count_unfollowed);
                    record.transfers = if hops.is_empty() {
                        vec![Transfer::new(None, now)]
                    } else {
                        hops.into_iter().map(|hops| Transfer::new(hops, now)).collect()
                    };
                }
                record.other_hash = other_hash.or(record.other_hash.take());
                record.source = Source::Executed { tx, is_final };
            }
        }
    }

    /// Sends all open queries that this poll has not sent; returns true if evidence was added.
    async fn round(&mut self) -> bool {
        let open = self.open();
        let (queries, record) = (self.queries, &self.record);
        let answers: Vec<_> = stream::iter(open)
            .map(async |(transfer, hop, query)| {
                let about = &record.transfers[transfer].hops[hop];
                // Boxed: a query to any chain is a large future.
                (transfer, hop, Box::pin(query_hop(queries, about, query)).await)
            })
            .buffered(TOGETHER)
            .collect()
            .await;
        let mut is_new = false;
        for (transfer, hop, (observations, failure)) in answers {
            if let Some(failure) = failure {
                self.unanswered(&failure);
            }
            let transfer = &mut self.record.transfers[transfer];
            let known = transfer.hops.len();
            for observation in observations {
                is_new |= transfer.observe(hop, &observation, queries.now);
            }
            transfer.hops[known..].iter().for_each(count_unfollowed);
        }
        is_new
    }

    fn open(&mut self) -> Vec<(usize, usize, HopQuery)> {
        let now = self.queries.now;
        let mut open = Vec::new();
        for (at, transfer) in self.record.transfers.iter().enumerate() {
            if transfer.is_settled() {
                continue;
            }
            for (hop_at, hop) in transfer.hops.iter().enumerate() {
                let packet = if let ObservedHop::Ibc(hop) = hop { hop.packet.id.sequence } else { 0 };
                for query in open_queries(hop, now) {
                    if self.sent.insert((at, hop_at, packet, query)) {
                        open.push((at, hop_at, query));
                    }
                }
            }
        }
        open
    }

    fn unanswered(&mut self, failure: &QueryError) {
        tracing::debug!(chain = self.record.chain, hash = self.record.hash, error = %failure, "query failed");
        self.answered = false;
    }
}

fn count_unfollowed(hop: &ObservedHop) {
    if let ObservedHop::Unfollowed(hop) = hop {
        meter::unfollowed(hop);
    }
}

async fn query_hop(
    queries: &ChainQueries<'_>,
    hop: &ObservedHop,
    query: HopQuery,
) -> (Vec<Observation>, Option<QueryError>) {
    match queries.query(hop, query).await {
        Ok(observations) => (observations, None),
        // The sending chain may have the end.
        Err(failure) if query == HopQuery::Received => {
            let mut found = queries.query(hop, HopQuery::Acknowledged).await.unwrap_or_default();
            if found.is_empty() {
                found = queries.query(hop, HopQuery::TimedOut).await.unwrap_or_default();
            }
            (found, Some(failure))
        }
        Err(failure) => (Vec::new(), Some(failure)),
    }
}
