//! What is not known of a hop and can be asked now.
//!
//! Pure. Must hold: what has ended and is complete asks nothing; a question whose answer cannot be there yet is not
//! asked; every step that a hop can take next is covered by a question.

use crate::hop::{Hop, Ibc, Withdrawal};
use crate::state::is_settled;

/// A question about a hop. Each is a search or two on one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// Did the receiving chain receive the packet? And if it cannot any more: is it past the timeout?
    Received,
    /// Did the receiving chain write an acknowledgement?
    Written,
    /// Did the acknowledgement come back?
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
}

impl Question {
    /// The chain that answers it; none if the registry did not know it when the hop was found.
    pub(crate) fn chain(self, hop: &Hop) -> Option<&str> {
        match (hop, self) {
            (Hop::Ibc(hop), Self::Received | Self::Written) => hop.packet.to.as_deref(),
            (Hop::Ibc(hop), _) => Some(&hop.packet.id.chain),
            (Hop::Deposit(hop), _) => hop.to.as_deref(),
            (Hop::Withdrawal(hop), _) => hop.to.as_ref().map(|(l1, _)| l1.as_str()),
            (Hop::LayerZero(hop), _) => hop.to.as_deref(),
        }
    }
}

/// The questions that are open at `now`, in nanoseconds since 1970, in the order of life.
pub fn questions(hop: &Hop, now: i64) -> Vec<Question> {
    if is_settled(hop) {
        return Vec::new();
    }
    match hop {
        Hop::Ibc(hop) => of_packet(hop, now),
        Hop::Deposit(hop) => hop.to.iter().map(|_| Question::Finalized).collect(),
        Hop::Withdrawal(hop) => of_withdrawal(hop),
        Hop::LayerZero(hop) => hop.to.iter().map(|_| Question::Delivered).collect(),
    }
}

/// Whether a packet may be past its timeout by this clock. A height tells nothing without asking.
pub fn may_be_late(hop: &Ibc, now: i64) -> bool {
    let packet = &hop.packet;
    packet.timeout_height > 0
        || (packet.timeout_nanos > 0 && crate::record::moment(now) >= packet.timeout_nanos)
}

fn of_packet(hop: &Ibc, now: i64) -> Vec<Question> {
    let mut open = Vec::new();
    let is_there = hop.packet.to.is_some();
    if hop.received.is_none() && is_there {
        open.push(Question::Received);
    }
    if hop.received.is_some() && hop.ack.is_none() && is_there {
        open.push(Question::Written);
    }
    let blind = !is_there;
    if hop.acknowledged.is_none() && (hop.received.is_some() || blind) {
        open.push(Question::Acknowledged);
    }
    if hop.received.is_none() && hop.acknowledged.is_none() && (may_be_late(hop, now) || blind) {
        open.push(Question::TimedOut);
    }
    open
}

fn of_withdrawal(hop: &Withdrawal) -> Vec<Question> {
    match (&hop.to, &hop.output) {
        (None, _) => Vec::new(),
        (Some(_), None) => vec![Question::Output],
        (Some(_), Some(_)) => vec![Question::Output, Question::Claimed],
    }
}
