//! Withdrawals and deposits, which events name one by one, paired to movements.
//!
//! What a message withdraws or mints it deposits or burns as well, so amounts are paired first in, first out. Where several
//! accounts give to several others in one message, who paid whom is a convention; balances are exact in any case.

use std::collections::VecDeque;

use alloy::primitives::U256;
use indexmap::IndexMap;

use super::{Group, Placed, Token};
use crate::address::Account;

/// One side of a movement.
pub(super) struct Leg {
    pub(super) at: usize,
    pub(super) group: Group,
    pub(super) token: Token,
    /// `None`: it is made or destroyed here.
    pub(super) account: Option<Account>,
    pub(super) amount: U256,
}

/// What has been given and not received yet, by group and token.
#[derive(Default)]
pub(super) struct Pairing(IndexMap<(Group, Token), VecDeque<Open>>);

struct Open {
    at: usize,
    from: Option<Account>,
    amount: U256,
}

impl Pairing {
    pub(super) fn give(&mut self, leg: Leg) {
        let open = Open { at: leg.at, from: leg.account, amount: leg.amount };
        self.0.entry((leg.group, leg.token)).or_default().push_back(open);
    }

    /// Completes movements to `leg`. An amount without a giver is minted here.
    pub(super) fn take(&mut self, leg: Leg, out: &mut Vec<Placed>) {
        let Leg { at, group, token, account: to, amount: mut rest } = leg;
        let key = (group, token);
        let mut open = self.0.get_mut(&key);
        while !rest.is_zero() {
            let Some(first) = open.as_mut().and_then(|open| open.front_mut()) else {
                out.extend(to.map(|to| Placed::new(at, group, key.1.clone(), [None, Some(to)], rest)));
                return;
            };
            let (from, moved) = (first.from, first.amount.min(rest));
            first.amount -= moved;
            rest -= moved;
            if first.amount.is_zero()
                && let Some(open) = &mut open
            {
                open.pop_front();
            }
            // An amount that is minted and burned at once has no owner.
            if !moved.is_zero() && (from.is_some() || to.is_some()) {
                out.push(Placed::new(at, group, key.1.clone(), [from, to], moved));
            }
        }
    }

    /// An amount without a receiver is burned.
    pub(super) fn finish(self, out: &mut Vec<Placed>) {
        for ((group, token), open) in self.0 {
            let given = open.into_iter().filter(|open| open.from.is_some() && !open.amount.is_zero());
            out.extend(
                given.map(|open| Placed::new(open.at, group, token.clone(), [open.from, None], open.amount)),
            );
        }
    }
}
