//! Messages of omnichain fungible tokens (`router-mechanics.md` §4.7).
//!
//! The remainder that does not fit the shared decimals of both chains is not sent; it stays on the sending chain.

use std::ops::Range;

use chain::{Account, U256};
use planner::{Hop, Step};
use registry::{ChainRef, Leg, LegKind, OftRef, Registry};

use crate::address::{contract, evm_address};
use crate::amino::{Amino as _, Execute};
use crate::calls::{self, OftSend};
use crate::error::BuildError;
use crate::request::{Approval, Msg, Tx};
use crate::tx_builder::{TxBuilder, invalid_plan};
use crate::{bcs, hook};

/// A hop of a group: where it leaves, where it lands, the fee.
struct Crossing<'a> {
    from: &'a Leg,
    to: &'a Leg,
    fee: U256,
}

/// Encodes the options of a group's contract.
struct Sent {
    /// Base units of the sending chain's token, without what cannot cross.
    amount: U256,
    /// The least that must arrive, in the same.
    least: U256,
}

/// Whether a hop brings less than went in, by a fee that its contract decides; `false` for all other steps.
pub(crate) fn keeps_a_fee(registry: &Registry, hop: &Hop) -> Result<bool, BuildError> {
    let Step::LayerZero { oft, from, to, .. } = hop.step else { return Ok(false) };
    let (sent, received, _) = shared(registry, hop, leg(registry, oft, from)?, leg(registry, oft, to)?)?;
    Ok(received < sent)
}

impl TxBuilder<'_> {
    pub(crate) fn oft_send(&self, chain: ChainRef, hops: Range<usize>) -> Result<Tx, BuildError> {
        let (registry, hop) = (self.request.registry, &self.hops[0]);
        let crossing = self.crossing(hop)?;
        let leg = crossing.from;
        contract("OFT contract", &leg.contract)?;
        let sent = self.sent(hop, &crossing)?;
        let (coin, approvals) = match leg.kind {
            LegKind::Token => (U256::ZERO, Vec::new()),
            LegKind::NativeAdapter => (sent.amount, Vec::new()),
            LegKind::Adapter => {
                let token = hook::token(registry, self.request.facts, hop.from)?;
                let spender = leg.contract.clone();
                (U256::ZERO, vec![Approval { token, spender, amount: sent.amount }])
            }
            LegKind::Move => return Err(invalid_plan("a Move module is not on an EVM chain")),
        };
        let value =
            coin.checked_add(crossing.fee).ok_or_else(|| self.too_much(hop, "2^256 - 1 with the fee"))?;
        let data = calls::oft_send(OftSend {
            destination: crossing.to.eid,
            to: padded(self.end.account),
            amount: sent.amount,
            least: sent.least,
            options: options(leg)?,
            fee: crossing.fee,
            refund: evm_address(registry, chain, self.signer)?,
        });
        let (to, signer) = (leg.contract.clone(), self.signer.text.clone());
        Ok(Tx::Evm { chain, to, value, data: alloy::hex::encode(data), approvals, signer, hops })
    }

    /// `send_withdraw` of the module: it takes amount and fee from the sender and gives back what is left of the fee.
    ///
    /// A `MsgExecute` and not a `MsgExecuteJSON`, because both real clients encode the former (`router-api.md` §7.2).
    pub(crate) fn move_send(&self) -> Result<Msg, BuildError> {
        let hop = &self.hops[0];
        let crossing = self.crossing(hop)?;
        let leg = crossing.from;
        if leg.kind != LegKind::Move {
            let chain = &self.request.registry[self.chain_of(hop.from)].id;
            return Err(invalid_plan(format!(
                "the OFT on `{chain}` is no Move module, and calls of others are not made there"
            )));
        }
        let sent = self.sent(hop, &crossing)?;
        let small = |amount: U256| {
            u64::try_from(amount).map_err(|_| self.too_much(hop, "64 bits, as Move counts, with its fee"))
        };
        let args = vec![
            bcs::u32(crossing.to.eid),
            bcs::bytes(&padded(self.end.account)),
            bcs::u64(small(sent.amount)?),
            bcs::u64(small(sent.least)?),
            bcs::bytes(&options(leg)?),
            bcs::bytes(&[]),
            bcs::bytes(&[]),
            bcs::u64(small(crossing.fee)?),
            bcs::u64(0),
        ];
        Ok(Execute {
            sender: self.signer.text.clone(),
            module_address: leg.contract.clone(),
            module_name: "oft",
            function_name: "send_withdraw",
            type_args: [],
            args,
        }
        .msg())
    }

    fn crossing(&self, hop: &Hop) -> Result<Crossing<'_>, BuildError> {
        let Step::LayerZero { oft, from, to, fee } = hop.step else {
            return Err(invalid_plan("no LayerZero transfer"));
        };
        let registry = self.request.registry;
        Ok(Crossing { from: leg(registry, oft, from)?, to: leg(registry, oft, to)?, fee })
    }

    /// A group without fee must bring everything; one with a fee may bring less by the tolerated part.
    fn sent(&self, hop: &Hop, crossing: &Crossing<'_>) -> Result<Sent, BuildError> {
        let (sent, received, unit) = shared(self.request.registry, hop, crossing.from, crossing.to)?;
        let least = if received == sent { sent } else { self.slippage.least(received) };
        Ok(Sent { amount: sent * unit, least: least * unit })
    }

    fn too_much(&self, hop: &Hop, limit: &str) -> BuildError {
        let must = format!("it must fit into {limit}");
        BuildError::Amount { amount: hop.amount_in, denom: self.denom(hop.from).to_owned(), must }
    }
}

fn leg(registry: &Registry, oft: OftRef, position: usize) -> Result<&Leg, BuildError> {
    registry[oft].legs.get(position).ok_or_else(|| invalid_plan("the group has no such leg"))
}

/// What goes in and what comes out in the decimals that all chains of the group share, and how many base units of the
/// sending chain one of those is. `out <= in`, and `in * unit` is at most what the hop sends.
fn shared(registry: &Registry, hop: &Hop, from: &Leg, to: &Leg) -> Result<(U256, U256, U256), BuildError> {
    let unit = |leg: &Leg| {
        let finer = registry[leg.asset].decimals.checked_sub(leg.shared_decimals);
        finer.map(|digits| U256::from(10).pow(U256::from(digits)))
    };
    let (Some(unit_in), Some(unit_out)) = (unit(from), unit(to)) else {
        return Err(invalid_plan("a leg shares more decimals than its token has"));
    };
    let (sent, received) = (hop.amount_in / unit_in, hop.amount_out / unit_out);
    if from.shared_decimals != to.shared_decimals || received > sent {
        return Err(invalid_plan("a LayerZero transfer cannot bring more than it takes"));
    }
    if sent.is_zero() {
        let denom = registry[hop.from].denom.clone();
        let must = format!("LayerZero moves multiples of {unit_in}");
        return Err(BuildError::Amount { amount: hop.amount_in, denom, must });
    }
    Ok((sent, received, unit_in))
}

/// An account as LayerZero names it: 32 bytes, a shorter one with zeros in front.
fn padded(account: Account) -> [u8; 32] {
    let (bytes, mut out) = (account.as_bytes(), [0; 32]);
    out[32 - bytes.len()..].copy_from_slice(bytes);
    out
}

pub(crate) fn options(leg: &Leg) -> Result<Vec<u8>, BuildError> {
    let decoded = leg.options.strip_prefix("0x").and_then(|digits| alloy::hex::decode(digits).ok());
    decoded.ok_or_else(|| BuildError::Registry {
        what: "LayerZero options",
        value: leg.options.clone(),
        must: "0x and hex digits",
    })
}
