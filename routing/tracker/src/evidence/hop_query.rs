//! Open queries about a hop. Pure.
//!
//! # Invariants
//!
//! * A hop that has ended and is complete has no query.
//! * No query is sent before its reply can exist.
//! * Every possible next event of a hop is covered by a query.

use crate::evidence::hop::{Ibc, ObservedHop, TxRef, Withdrawal};
use crate::evidence::state::is_settled;

/// A query about a hop: of one chain's state, and of the transaction behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HopQuery {
    /// Did the receiving chain receive the packet? If it cannot any more: is it past the timeout?
    Received,
    /// Did the receiving chain write an acknowledgement?
    Written,
    /// Did the sending chain process the acknowledgement?
    Acknowledged,
    /// Was the timeout proved to the sending chain?
    TimedOut,
    /// Did the rollup finalize the deposit?
    Finalized,
    /// Which output covers the withdrawal?
    Output,
    /// Was the withdrawal claimed?
    Claimed,
    /// Did the message arrive?
    Delivered,
    /// Which denominations have the swapped tokens?
    Denoms,
}

impl HopQuery {
    /// The chain to query; none if the registry did not have it when the hop was found.
    pub(crate) fn chain(self, hop: &ObservedHop) -> Option<&str> {
        match (hop, self) {
            (ObservedHop::Ibc(hop), Self::Received | Self::Written) => hop.packet.to.as_deref(),
            (ObservedHop::Ibc(hop), _) => Some(&hop.packet.id.chain),
            (ObservedHop::Deposit(hop), _) => hop.to.as_deref(),
            (ObservedHop::Withdrawal(hop), _) => hop.to.as_ref().map(|(l1, _)| l1.as_str()),
            (ObservedHop::LayerZero(hop), _) => hop.to.as_deref(),
            (ObservedHop::Swap(hop), _) => Some(&hop.chain),
            (ObservedHop::Unfollowed(_), _) => None,
        }
    }
}

/// The queries that are open at `now`, in nanoseconds since 1970, in the order of the events.
pub fn open_queries(hop: &ObservedHop, now: i64) -> Vec<HopQuery> {
    if is_settled(hop) {
        return Vec::new();
    }
    match hop {
        ObservedHop::Ibc(hop) => of_packet(hop, now),
        ObservedHop::Deposit(hop) => hop.to.iter().map(|_| HopQuery::Finalized).collect(),
        ObservedHop::Withdrawal(hop) => of_withdrawal(hop),
        ObservedHop::LayerZero(hop) => hop.to.iter().map(|_| HopQuery::Delivered).collect(),
        ObservedHop::Swap(_) => vec![HopQuery::Denoms],
        ObservedHop::Unfollowed(_) => Vec::new(),
    }
}

/// Whether a packet may be past its timeout by this clock. Only the chain can decide on a timeout by height.
pub fn may_be_expired(hop: &Ibc, now: i64) -> bool {
    let packet = &hop.packet;
    packet.timeout_height > 0
        || (packet.timeout_nanos > 0 && crate::record::moment(now) >= packet.timeout_nanos)
}

fn of_packet(hop: &Ibc, now: i64) -> Vec<HopQuery> {
    let mut open = Vec::new();
    let is_there = hop.packet.to.is_some();
    let is_missing = |at: &Option<TxRef>| at.as_ref().is_none_or(|at| !at.is_found());
    if is_missing(&hop.received) && hop.timed_out.is_none() && is_there {
        open.push(HopQuery::Received);
    }
    if hop.received.is_some() && hop.ack.is_none() && is_there {
        open.push(HopQuery::Written);
    }
    let blind = !is_there;
    if is_missing(&hop.acknowledged) && hop.timed_out.is_none() && (hop.received.is_some() || blind) {
        open.push(HopQuery::Acknowledged);
    }
    let is_open = hop.received.is_none() && hop.acknowledged.is_none();
    if is_missing(&hop.timed_out) && is_open && (may_be_expired(hop, now) || blind) {
        open.push(HopQuery::TimedOut);
    }
    open
}

fn of_withdrawal(hop: &Withdrawal) -> Vec<HopQuery> {
    match (&hop.to, &hop.output) {
        (None, _) => Vec::new(),
        (Some(_), _) if hop.claimed.is_some() => vec![HopQuery::Claimed],
        (Some(_), None) => vec![HopQuery::Output],
        (Some(_), Some(_)) => vec![HopQuery::Output, HopQuery::Claimed],
    }
}
