//! How much accounts received and sent in a block.

use std::collections::BTreeMap;

use chain::U256;
use chain::evm::erc20::Erc20Event;
use schema::rich::Address;

/// The amounts that an account received and sent in a block; `None` if a sum exceeds 256 bits, which only a malicious
/// token causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow(Option<(U256, U256)>);

impl Default for Flow {
    fn default() -> Self {
        Self(Some((U256::ZERO, U256::ZERO)))
    }
}

impl Flow {
    pub(super) fn add(&mut self, amount: U256, into: bool) {
        self.0 = self.0.and_then(|(received, sent)| {
            Some(if into {
                (received.checked_add(amount)?, sent)
            } else {
                (received, sent.checked_add(amount)?)
            })
        });
    }

    /// The balance after this flow, from the balance `before`; `None` if that is impossible.
    pub(super) fn after(self, before: U256) -> Option<U256> {
        let (received, sent) = self.0?;
        // The intermediate sum may exceed 256 bits.
        if received >= sent {
            before.checked_add(received - sent)
        } else {
            before.checked_sub(sent - received)
        }
    }

    /// Like [`Flow::after`], for a token that cannot be queried: zero if that is impossible.
    pub(super) fn after_or_zero(self, before: U256) -> U256 {
        self.after(before).unwrap_or(U256::ZERO)
    }
}

/// The address that mints come from and burns go to.
pub(super) const ZERO: Address = [0; 20];

/// The flows of a block, by contract and account. Those of the zero address tell nothing: some contracts destroy what is
/// sent there, others keep it as a balance, and many do both.
pub(super) fn flows(events: &[Erc20Event]) -> BTreeMap<(Address, Address), Flow> {
    let mut flows: BTreeMap<(Address, Address), Flow> = BTreeMap::new();
    for event in events {
        if let Erc20Event::Transfer { contract, from, to, amount } = event {
            for (account, into) in [(from, false), (to, true)] {
                if *account != ZERO {
                    flows.entry((*contract, *account)).or_default().add(*amount, into);
                }
            }
        }
    }
    flows
}

/// The flows of coins, whose contracts are `coins` by denom. The zero address keeps what is sent to it.
pub(super) fn coin_flows(
    events: &[Erc20Event],
    coins: &BTreeMap<String, Address>,
) -> BTreeMap<(Address, Address), Flow> {
    let mut flows: BTreeMap<(Address, Address), Flow> = BTreeMap::new();
    for event in events {
        if let Erc20Event::Coin { denom, account, amount, into } = event
            && let Some(contract) = coins.get(denom)
        {
            flows.entry((*contract, *account)).or_default().add(*amount, *into);
        }
    }
    flows
}
