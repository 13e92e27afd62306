//! What a movement is for, by the events around it.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use super::cause::Act;
use super::{Group, Movement, Placed, Reader, Source};
use crate::address::Account;
use crate::comet::Event;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// What a movement is for. A later version may know more.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name,)+
        }

        impl Kind {
            /// Every kind; the place of a kind is its number on disk.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

kinds! {
    /// From one account to another.
    Transfer = "transfer",
    /// The fee of a transaction.
    Fee = "fee",
    /// A part of the fee that is given back.
    FeeRefund = "fee_refund",
    /// What did not exist before.
    Mint = "mint",
    /// What exists no more.
    Burn = "burn",
    /// To another chain by IBC.
    IbcOut = "ibc_out",
    /// From another chain by IBC.
    IbcIn = "ibc_in",
    /// Back from a packet that was not delivered.
    IbcRefund = "ibc_refund",
    /// Into an OPinit bridge.
    BridgeOut = "bridge_out",
    /// Out of an OPinit bridge.
    BridgeIn = "bridge_in",
    /// To or from the staking pools.
    Stake = "stake",
    /// A reward of staking.
    Reward = "reward",
}

/// Accounts of modules.
pub(super) struct Modules {
    fee_collector: Account,
    distribution: Account,
    pools: [Account; 2],
    pub(super) transfer: Account,
    pub(super) opchild: Account,
}

pub(super) static MODULES: LazyLock<Modules> = LazyLock::new(|| Modules {
    fee_collector: module_account("fee_collector"),
    distribution: module_account("distribution"),
    pools: ["bonded_tokens_pool", "not_bonded_tokens_pool"].map(module_account),
    transfer: module_account("transfer"),
    opchild: module_account("opchild"),
});

/// The account of a module of the Cosmos SDK, by the module's name.
pub fn module_account(name: &str) -> Account {
    let mut address = [0; 20];
    address.copy_from_slice(&Sha256::digest(name)[..20]);
    address.into()
}

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
