//! State machine of one hop: applies observations and derives progress.
//!
//! Pure and total: any observation may arrive at any time, twice, or never.
//!
//! # Invariants
//!
//! * Observations commute: the same set gives the same hop in any order.
//! * Evidence is only added. Exception: the L1 may delete an output; the observation at the greater L1 height wins.
//! * A hop that ended one way never ends another way; later evidence only completes its transactions.

use crate::evidence::hop::{
    Ack, Claim, Deposit, Finalized, Ibc, LayerZero, ObservedHop, Output, Packet, PacketId, Relation, Swap,
    TxRef, Withdrawal,
};

/// Evidence found on a chain about a hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// A packet was received, by a transaction or by a state; with the acknowledgement that was written in the same message, if any, and the steps
    /// that the same message took.
    Received {
        /// Id of the packet.
        packet: PacketId,
        /// Its transaction.
        at: TxRef,
        /// The acknowledgement.
        ack: Option<Ack>,
        /// The steps that the same message took: a swap, the packet that it forwarded or sent.
        next: Vec<ObservedHop>,
    },
    /// An acknowledgement was written.
    Written {
        /// Id of the packet.
        packet: PacketId,
        /// The acknowledgement.
        ack: Ack,
    },
    /// The sending chain processed the acknowledgement.
    Acknowledged {
        /// Id of the packet.
        packet: PacketId,
        /// Its transaction.
        at: TxRef,
        /// The acknowledgement, if the sending chain's events have it.
        ack: Option<Ack>,
    },
    /// A packet timed out on its sending chain; with the packet that the same message sent in its place, if any.
    TimedOut {
        /// Id of the packet.
        packet: PacketId,
        /// Its transaction.
        at: TxRef,
        /// The packet sent in its place.
        again: Option<Box<(Packet, TxRef)>>,
    },
    /// The sending contract of a returned packet made another token of it.
    Refunded {
        /// Id of the packet.
        packet: PacketId,
        /// The token's denomination.
        denom: String,
        /// Base units.
        amount: String,
    },
    /// The receiving chain is past the timeout and has not received the packet.
    Expired {
        /// Id of the packet.
        packet: PacketId,
    },
    /// A deposit was finalized; with the steps that the same message took.
    Finalized {
        /// `l1_sequence`.
        sequence: u64,
        /// Its transaction.
        at: TxRef,
        /// Outcome.
        how: Finalized,
        /// The withdrawal that returns the tokens, or the steps that the deposit's call took with them.
        next: Vec<ObservedHop>,
    },
    /// The output that covers a withdrawal at L1 height `as_of`; none if none existed, or it was deleted.
    Output {
        /// `l2_sequence`.
        sequence: u64,
        /// The L1's height.
        as_of: u64,
        /// The output.
        output: Option<Output>,
    },
    /// A withdrawal was claimed.
    Claimed {
        /// `l2_sequence`.
        sequence: u64,
        /// Its transaction, if a node has it.
        at: Option<TxRef>,
    },
    /// LayerZero delivered a message.
    Delivered {
        /// Its guid.
        guid: String,
        /// Its transaction.
        at: TxRef,
        /// Base units of the receiving chain.
        amount: String,
    },
    /// LayerZero could not deliver a message.
    Alerted {
        /// Its guid.
        guid: String,
        /// Its transaction.
        at: TxRef,
    },
    /// The call of a message was executed.
    Composed {
        /// Its guid.
        guid: String,
        /// Its transaction.
        at: TxRef,
    },
    /// The denomination of a swapped token.
    Named {
        /// Address of its metadata.
        metadata: String,
        /// The denomination.
        denom: String,
    },
    /// The receiving chain was scanned up to this block, exclusive.
    Scanned {
        /// The message's guid.
        guid: String,
        /// The next block to scan.
        next: u64,
    },
}

/// Progress of a hop, in chronological order; the last two are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// The destination is unknown.
    Unknown,
    /// Sent.
    Sent,
    /// Received, outcome unknown.
    Received,
    /// Succeeded.
    Done,
    /// Failed.
    Failed,
}

impl Progress {
    /// Whether the progress is final.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// The hop with the evidence of the observation. An observation about another hop adds none.
#[must_use]
pub fn advance(hop: ObservedHop, observation: &Observation) -> ObservedHop {
    match hop {
        ObservedHop::Ibc(hop) => ObservedHop::Ibc(ibc(hop, observation)),
        ObservedHop::Deposit(hop) => ObservedHop::Deposit(deposit(hop, observation)),
        ObservedHop::Withdrawal(hop) => ObservedHop::Withdrawal(withdrawal(hop, observation)),
        ObservedHop::LayerZero(hop) => ObservedHop::LayerZero(layer_zero(hop, observation)),
        ObservedHop::Swap(hop) => ObservedHop::Swap(swap(hop, observation)),
        ObservedHop::Unfollowed(_) => hop,
    }
}

/// The next hops according to this observation: a forwarded packet, the steps of a call, or the withdrawal of a refused
/// deposit. `hop` is the hop after [`advance`].
pub fn following<'a>(hop: &ObservedHop, observation: &'a Observation) -> &'a [ObservedHop] {
    match (hop, observation) {
        (ObservedHop::Ibc(hop), Observation::Received { packet, at, next, .. })
            if hop.packet.id == *packet && hop.received.as_ref() == Some(at) =>
        {
            next
        }
        (ObservedHop::Deposit(hop), Observation::Finalized { sequence, next, .. })
            if hop.l1_sequence == *sequence && hop.finalized.is_some() =>
        {
            next
        }
        _ => &[],
    }
}

fn ibc(mut hop: Ibc, observation: &Observation) -> Ibc {
    match observation {
        Observation::Received { packet, at, ack, .. } if of(&hop, packet) && hop.timed_out.is_none() => {
            see(&mut hop.received, at);
            learn(&mut hop, ack.as_ref());
        }
        Observation::Written { packet, ack } if of(&hop, packet) && hop.timed_out.is_none() => {
            learn(&mut hop, Some(ack));
        }
        Observation::Acknowledged { packet, at, ack } if of(&hop, packet) && hop.timed_out.is_none() => {
            see(&mut hop.acknowledged, at);
            learn(&mut hop, ack.as_ref());
        }
        Observation::TimedOut { packet, at, again } if of(&hop, packet) => match again {
            Some(again) if is_open(&hop) => {
                let (packet, sent) = (**again).clone();
                return resent(hop.link, packet, sent);
            }
            None if is_open(&hop) || hop.timed_out.is_some() => see(&mut hop.timed_out, at),
            _ => {}
        },
        Observation::Refunded { packet, denom, amount } if of(&hop, packet) => {
            hop.refund.get_or_insert_with(|| Box::new((denom.clone(), amount.clone())));
        }
        Observation::Expired { packet } if of(&hop, packet) && is_open(&hop) => hop.expired = true,
        _ => {}
    }
    // Only a packet in flight can expire.
    hop.expired &= is_open(&hop);
    hop
}

/// Keeps the first transaction that was found; a state counts until there is one.
fn see(known: &mut Option<TxRef>, new: &TxRef) {
    let is_better = known.as_ref().is_none_or(|known| match (known.is_found(), new.is_found()) {
        (false, false) => new.height < known.height,
        (is_found, is_new_found) => is_new_found && !is_found,
    });
    if is_better {
        *known = Some(new.clone());
    }
}

/// A packet that was sent, without further evidence.
pub(crate) fn resent(link: Relation, packet: Packet, sent: TxRef) -> Ibc {
    Ibc {
        packet,
        link,
        sent,
        received: None,
        acknowledged: None,
        timed_out: None,
        ack: None,
        expired: false,
        refund: None,
    }
}

fn of(hop: &Ibc, packet: &PacketId) -> bool {
    hop.packet.id == *packet
}

/// Whether the packet is neither received nor returned.
fn is_open(hop: &Ibc) -> bool {
    hop.received.is_none() && hop.acknowledged.is_none() && hop.timed_out.is_none() && hop.ack.is_none()
}

/// The first acknowledgement is kept; a later one of the same kind may add the reason.
fn learn(hop: &mut Ibc, ack: Option<&Ack>) {
    match (&mut hop.ack, ack) {
        (None, Some(ack)) => hop.ack = Some(ack.clone()),
        (Some(Ack::Error { reason: known @ None, .. }), Some(Ack::Error { reason: Some(new), .. })) => {
            *known = Some(new.clone());
        }
        _ => {}
    }
}

fn deposit(mut hop: Deposit, observation: &Observation) -> Deposit {
    if let Observation::Finalized { sequence, at, how, .. } = observation
        && *sequence == hop.l1_sequence
    {
        let is_better =
            |(_, known): &(TxRef, Finalized)| *known == Finalized::Unknown && *how != Finalized::Unknown;
        if hop.finalized.as_ref().is_none_or(is_better) {
            hop.finalized = Some((at.clone(), how.clone()));
        }
    }
    hop
}

fn withdrawal(mut hop: Withdrawal, observation: &Observation) -> Withdrawal {
    match observation {
        // The observation at the greater L1 height wins.
        Observation::Output { sequence, as_of, output }
            if *sequence == hop.l2_sequence && *as_of > hop.output_as_of =>
        {
            hop.output_as_of = *as_of;
            hop.output.clone_from(output);
        }
        Observation::Claimed { sequence, at } if *sequence == hop.l2_sequence => {
            let claim = hop.claimed.get_or_insert(Claim { tx: None });
            if claim.tx.is_none() {
                claim.tx.clone_from(at);
            }
        }
        _ => {}
    }
    hop
}

fn layer_zero(mut hop: LayerZero, observation: &Observation) -> LayerZero {
    match observation {
        Observation::Delivered { guid, at, amount } if *guid == hop.guid => {
            hop.received.get_or_insert_with(|| (at.clone(), amount.clone()));
        }
        // Of several attempts, the first one is kept.
        Observation::Alerted { guid, at }
            if *guid == hop.guid && hop.alert.as_ref().is_none_or(|known| at.height < known.height) =>
        {
            hop.alert = Some(at.clone());
        }
        Observation::Composed { guid, at } if *guid == hop.guid => {
            hop.composed.get_or_insert_with(|| at.clone());
        }
        Observation::Scanned { guid, next } if *guid == hop.guid => {
            hop.scanned = hop.scanned.max(Some(*next));
        }
        _ => {}
    }
    hop
}

fn swap(mut hop: Swap, observation: &Observation) -> Swap {
    if let Observation::Named { metadata, denom } = observation {
        for coin in hop.coins_mut().filter(|coin| coin.metadata == *metadata && coin.denom.is_none()) {
            coin.denom = Some(denom.clone());
        }
    }
    hop
}

/// Progress of a hop by its own evidence.
pub fn progress(hop: &ObservedHop) -> Progress {
    match hop {
        ObservedHop::Ibc(hop) => match (&hop.ack, &hop.timed_out) {
            (Some(Ack::Error { .. }), _) | (None, Some(_)) => Progress::Failed,
            (Some(Ack::Good), _) => Progress::Done,
            (None, None) if hop.received.is_some() || hop.acknowledged.is_some() => Progress::Received,
            (None, None) if hop.packet.to.is_none() => Progress::Unknown,
            (None, None) => Progress::Sent,
        },
        ObservedHop::Deposit(hop) => match &hop.finalized {
            Some((_, Finalized::Good)) => Progress::Done,
            Some((_, Finalized::Unknown)) => Progress::Received,
            Some(_) => Progress::Failed,
            None if hop.to.is_none() => Progress::Unknown,
            None => Progress::Sent,
        },
        ObservedHop::Withdrawal(hop) => match (&hop.claimed, &hop.to) {
            (Some(_), _) => Progress::Done,
            (None, None) => Progress::Unknown,
            (None, Some(_)) => Progress::Sent,
        },
        ObservedHop::LayerZero(hop) => match (&hop.received, &hop.to) {
            (Some(_), _) if hop.composes && hop.composed.is_none() => Progress::Received,
            (Some(_), _) => Progress::Done,
            (None, None) => Progress::Unknown,
            (None, Some(_)) => Progress::Sent,
        },
        ObservedHop::Swap(hop) if hop.outcome.is_ok() => Progress::Done,
        ObservedHop::Swap(_) => Progress::Failed,
        ObservedHop::Unfollowed(_) => Progress::Unknown,
    }
}

/// Whether a failed hop has returned the tokens on its sending chain.
pub fn is_refunded(hop: &ObservedHop) -> bool {
    match hop {
        ObservedHop::Ibc(hop) => {
            hop.timed_out.is_some()
                || (matches!(hop.ack, Some(Ack::Error { .. })) && hop.acknowledged.is_some())
        }
        ObservedHop::Swap(hop) => hop.outcome.is_err(),
        ObservedHop::Deposit(_)
        | ObservedHop::Withdrawal(_)
        | ObservedHop::LayerZero(_)
        | ObservedHop::Unfollowed(_) => false,
    }
}

/// Whether no further evidence of the hop is possible.
pub fn is_settled(hop: &ObservedHop) -> bool {
    match hop {
        ObservedHop::Ibc(hop) => {
            let is_found = |at: &Option<TxRef>| at.as_ref().is_some_and(TxRef::is_found);
            is_found(&hop.timed_out)
                || (is_found(&hop.acknowledged) && is_found(&hop.received) && hop.ack.is_some())
        }
        ObservedHop::Deposit(hop) => {
            hop.finalized.as_ref().is_some_and(|(_, how)| *how != Finalized::Unknown)
        }
        ObservedHop::Withdrawal(hop) => hop.claimed.as_ref().is_some_and(|claim| claim.tx.is_some()),
        ObservedHop::LayerZero(hop) => progress(&ObservedHop::LayerZero(hop.clone())).is_end(),
        ObservedHop::Swap(hop) => hop.coins().all(|coin| coin.denom.is_some()),
        ObservedHop::Unfollowed(_) => true,
    }
}
