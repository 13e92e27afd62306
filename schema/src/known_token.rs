//! What is known of the balances of a token: whether all are, and how much of it exists.
//!
//! # Invariants
//!
//! * A supply is known at each height if it is at one: what was minted and burned in between is the change of the outside.
//! * A height that is not known is `None`, never 0.

use chain::U256;
use chain::movement::Token;
use store::{Message, Snapshot};

use crate::Error;
use crate::balances::{self, TokenState, TokenStates};
use crate::known_balance::is_kept_at_zero;
use crate::ledger::{self, LEDGER, is_negative};
use crate::meta::{self, RichLane};
use crate::movement::TokenKey;
use crate::rich::Erc20s;
use crate::supply::{SupplyReplies, outside};

/// What is known of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownToken {
    /// The block from which on the balances of all holders are known; `None` if some may not be.
    pub complete_from: Option<u64>,
    /// Balances were seen to change without movements.
    pub is_drifting: bool,
    /// Its contract does not answer queries of balances.
    pub is_silent: bool,
}

/// A supply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// The amount; `None` if it is not known.
    pub amount: Option<U256>,
    /// The last block at which a node was asked for it; `None` if none was.
    pub checked: Option<u64>,
}

impl KnownToken {
    /// What is known of `token`.
    pub fn of(snapshot: &dyn Snapshot, token: &Token) -> Result<Self, Error> {
        let state = state(snapshot, token)?;
        let mut known = Self { is_drifting: state.drifting, ..Self::default() };
        let first = LEDGER.state(snapshot)?.map(|state| state.from);
        let has_lane = meta::read::<RichLane>(snapshot)?.is_some_and(|lane| lane.height > 0);
        let (is_complete, since) = match token {
            Token::Erc20(contract) => {
                let row = store::table::read::<Erc20s>(snapshot, contract)?.filter(|_| has_lane);
                let erc20 = row.map(|Message(erc20)| erc20).unwrap_or_default();
                known.is_drifting |= erc20.drifting;
                known.is_silent = erc20.silent;
                (erc20.complete && !erc20.coin, first)
            }
            Token::Cw20(_) => {
                let whole = ledger::whole_from(snapshot, token)?;
                (state.proved || whole.is_some(), whole.or(first))
            }
            _ => (state.proved && has_lane, first),
        };
        known.complete_from = since.filter(|_| is_complete && !known.is_drifting && !known.is_silent);
        Ok(known)
    }

    /// The supply of `token` after the block `height`. If it changes without movements, it is that of the block at which a node was
    /// asked, and not known before.
    pub fn supply(&self, snapshot: &dyn Snapshot, token: &Token, height: u64) -> Result<Supply, Error> {
        if !ledger::has_balances(token) {
            return Ok(Supply::default());
        }
        let reply = store::table::read::<SupplyReplies>(snapshot, &TokenKey(token.clone()))?;
        let reply = reply.map(|Message(reply)| reply);
        let checked = reply.as_ref().map(|reply| reply.height);
        let base = match (reply, token) {
            (Some(reply), _) => U256::try_from_be_slice(&reply.base),
            // Nothing of it was held before.
            (None, Token::Cw20(_)) => self.complete_from.map(|_| U256::ZERO),
            (None, Token::Erc20(_)) => None,
            (None, _) => {
                let state = self.complete_from.map(|_| state(snapshot, token)).transpose()?;
                state.map(|state| balances::sum_of_bases(&state))
            }
        };
        let Some(base) = base else { return Ok(Supply { amount: None, checked }) };
        let is_unsteady = match token {
            _ if self.is_drifting => true,
            Token::Erc20(contract) => is_kept_at_zero(snapshot, contract)?,
            _ => false,
        };
        let at = if is_unsteady { checked.filter(|checked| *checked <= height) } else { Some(height) };
        let amount =
            at.map(|at| Ok::<_, Error>(base.wrapping_sub(outside(snapshot, token, at)?))).transpose()?;
        // Less than 0: it has changed without movements since.
        Ok(Supply { amount: amount.filter(|amount| !is_negative(*amount)), checked })
    }
}

fn state(snapshot: &dyn Snapshot, token: &Token) -> Result<TokenState, Error> {
    let row = store::table::read::<TokenStates>(snapshot, &TokenKey(token.clone()))?;
    Ok(row.map_or_else(TokenState::default, |Message(state)| state))
}
