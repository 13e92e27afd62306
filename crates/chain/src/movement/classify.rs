//! Kinds and causes of movements, by the events around them.

use super::cause::Act;
use super::kind::Kind;
use super::modules::MODULES;
use super::{Group, Movement, Placed, Reader, Source};
use crate::address::Account;
use crate::comet::Event;

/// Sets the kinds and causes of all movements of a transaction or of a block.
pub(super) fn classify(reader: &Reader<'_>, source: Source<'_>, events: &[Event<'_>], found: &mut [Placed]) {
    if found.is_empty() {
        return;
    }
    let is_tx = matches!(source, Source::Tx(_));
    // Without messages, as in a transaction that failed, all is before them.
    let first_message = events.iter().position(|event| Group::of(event).message.is_some());
    let mut acts = Act::all(reader, events);
    for Placed { at, group, movement } in found {
        let of_fee = (is_tx && group.message.is_none())
            .then(|| fee(movement, first_message.is_none_or(|first| *at < first)))
            .flatten();
        let mut of_act = || {
            let mut acts = acts.iter_mut().filter(|act| act.group == *group);
            acts.find_map(|act| act.kind(movement).map(|kind| (kind, act.cause.clone())))
        };
        let (kind, cause) = match of_fee {
            Some(kind) => (kind, None),
            None => of_act().map_or_else(
                || (plain(movement, is_tx || pays_rewards(events, *group)), None),
                |(kind, cause)| (kind, Some(cause)),
            ),
        };
        (movement.kind, movement.cause) = (kind, cause);
    }
}

fn fee(movement: &Movement, is_before: bool) -> Option<Kind> {
    let collector = Some(MODULES.fee_collector);
    match is_before {
        true if movement.to == collector => Some(Kind::Fee),
        false if movement.from == collector => Some(Kind::FeeRefund),
        _ => None,
    }
}

fn plain(movement: &Movement, rewards: bool) -> Kind {
    let is_pool = |account: Account| MODULES.pools.contains(&account);
    match (movement.from, movement.to) {
        (None, _) => Kind::Mint,
        (_, None) => Kind::Burn,
        // The staking module pays rewards too, without an event about them. What a proposal spends comes from the same account,
        // but is paid by the block.
        (Some(from), _) if from == MODULES.distribution && rewards => Kind::Reward,
        (Some(from), Some(to)) if is_pool(from) || is_pool(to) => Kind::Stake,
        _ => Kind::Transfer,
    }
}

fn pays_rewards(events: &[Event<'_>], group: Group) -> bool {
    let of_group = |event: &&Event<'_>| Group::of(event) == group;
    let names = ["withdraw_rewards", "withdraw_commission"];
    events.iter().filter(of_group).any(|event| names.contains(&event.kind.as_ref()))
}
