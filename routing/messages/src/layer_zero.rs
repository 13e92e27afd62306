//! Messages of omnichain fungible tokens.
//!
//! The remainder that does not fit the shared decimals of both chains is not sent; it stays on the sending chain.

use std::ops::Range;

use alloy::primitives::{B256, Bytes};
use alloy::sol_types::SolCall as _;
use chain::{Account, U256, Vm};
use planner::{Hop, Step};
use registry::{ChainRef, Leg, LegKind, OftRef, Registry};

use crate::address::{contract, evm_address};
use crate::amino::{CALL, Call, Execute, Function, Invocation, argument};
use crate::calls::{Erc20, MessagingFee, Oft, SendParam};
use crate::error::BuildError;
use crate::hook;
use crate::request::{Approval, Msg, Tx};
use crate::tx_builder::{TxBuilder, invalid_plan};

/// Legs and fee of a hop.
struct Crossing<'a> {
    from: &'a Leg,
    to: &'a Leg,
    fee: U256,
}

/// Amounts of a message.
struct Sent {
    /// Base units of the sending chain's token, without the remainder that stays there.
    amount: U256,
    /// Minimum received, in the same units.
    least: U256,
}

/// Whether the contract of a LayerZero hop charges a fee; `false` for all other steps.
pub(crate) fn keeps_a_fee(registry: &Registry, hop: &Hop) -> Result<bool, BuildError> {
    let Step::LayerZero { oft, from, to, .. } = hop.step else { return Ok(false) };
    let (sent, received, _) = shared(registry, hop, leg(registry, oft, from)?, leg(registry, oft, to)?)?;
    Ok(received < sent)
}

/// A call of an OFT contract's `send`.
struct OftCall {
    to: String,
    /// Base units of the chain's coin: the fee, and the amount where the coin itself is sent.
    value: U256,
    data: Vec<u8>,
    /// The allowance that the contract needs first.
    approval: Option<Approval>,
}

impl TxBuilder<'_> {
    /// The call as a transaction of an EVM chain.
    pub(crate) fn oft_send(&self, chain: ChainRef, hops: Range<usize>) -> Result<Tx, BuildError> {
        let OftCall { to, value, data, approval } = self.oft_call(chain)?;
        let (data, approvals) = (alloy::hex::encode(data), approval.into_iter().collect());
        Ok(Tx::Evm { chain, to, value, data, approvals, signer: self.signer.text.clone(), hops })
    }

    /// The call as messages of a minievm chain: the allowance, then the call. A contract there counts the chain's
    /// coin in
    /// base units, as `MsgCall` does (minievm `x/evm/keeper/msg_server.go`), so its fee is the value.
    fn oft_messages(&self, chain: ChainRef) -> Result<Vec<Msg>, BuildError> {
        let OftCall { to, value, data, approval } = self.oft_call(chain)?;
        let call = |contract: &str, data: &[u8], value: U256| {
            let input = Invocation::new(contract, data).with_value(value);
            Msg::new(CALL, &Call { sender: self.signer.text.clone(), input })
        };
        let mut msgs = Vec::new();
        if let Some(Approval { token, spender, amount }) = approval {
            let approve = Erc20::approveCall { spender: contract("OFT contract", &spender)?, amount };
            msgs.push(call(&token, &approve.abi_encode(), U256::ZERO));
        }
        msgs.push(call(&to, &data, value));
        Ok(msgs)
    }

    /// The messages of a Cosmos chain: a Move module, or a contract of a minievm chain.
    pub(crate) fn omnichain(&self) -> Result<Vec<Msg>, BuildError> {
        let chain = self.chain_of(self.hops[0].from);
        match self.request.registry[chain].vm {
            Vm::Evm => self.oft_messages(chain),
            _ => Ok(vec![self.move_send()?]),
        }
    }

    fn oft_call(&self, chain: ChainRef) -> Result<OftCall, BuildError> {
        let (registry, hop) = (self.request.registry, &self.hops[0]);
        let crossing = self.crossing(hop)?;
        let leg = crossing.from;
        contract("OFT contract", &leg.contract)?;
        let sent = self.sent(hop, &crossing)?;
        let (coin, approval) = match leg.kind {
            LegKind::Token => (U256::ZERO, None),
            LegKind::NativeAdapter => (sent.amount, None),
            LegKind::Adapter => {
                let token = hook::token(registry, self.request.facts, hop.from)?;
                let spender = leg.contract.clone();
                (U256::ZERO, Some(Approval { token, spender, amount: sent.amount }))
            }
            LegKind::Move => return Err(invalid_plan("a Move module is not on a chain with an EVM")),
        };
        let value =
            coin.checked_add(crossing.fee).ok_or_else(|| self.too_much(hop, "2^256 - 1 with the fee"))?;
        let receiver = padded(self.end.account);
        let call = Oft::sendCall {
            sendParam: send_param(leg, crossing.to.eid, receiver, sent.amount, sent.least)?,
            fee: MessagingFee { nativeFee: crossing.fee, lzTokenFee: U256::ZERO },
            refundAddress: evm_address(registry, chain, self.signer)?,
        };
        Ok(OftCall { to: leg.contract.clone(), value, data: call.abi_encode(), approval })
    }

    /// `send_withdraw` of the module: it withdraws amount and fee from the sender and refunds the rest of the fee.
    ///
    /// A `MsgExecute` and not a `MsgExecuteJSON`, because both real clients encode the former.
    fn move_send(&self) -> Result<Msg, BuildError> {
        let hop = &self.hops[0];
        let crossing = self.crossing(hop)?;
        let leg = crossing.from;
        if leg.kind != LegKind::Move {
            let chain = &self.request.registry[self.chain_of(hop.from)].id;
            return Err(invalid_plan(format!(
                "the OFT on `{chain}` is no Move module, which is all that such a chain has"
            )));
        }
        let sent = self.sent(hop, &crossing)?;
        let small = |amount: U256| {
            u64::try_from(amount).map_err(|_| self.too_much(hop, "64 bits, as Move counts, with its fee"))
        };
        let args = vec![
            argument(&crossing.to.eid),
            argument(padded(self.end.account).as_slice()),
            argument(&small(sent.amount)?),
            argument(&small(sent.least)?),
            argument(&options(leg)?),
            argument::<[u8]>(&[]),
            argument::<[u8]>(&[]),
            argument(&small(crossing.fee)?),
            argument(&0u64),
        ];
        let function = Function::new(&leg.contract, "oft", "send_withdraw", args);
        let execute = Execute::new(self.signer.text.clone(), function);
        Ok(Msg::new("/initia.move.v1.MsgExecute", &execute))
    }

    fn crossing(&self, hop: &Hop) -> Result<Crossing<'_>, BuildError> {
        let Step::LayerZero { oft, from, to, fee } = hop.step else {
            return Err(invalid_plan("no LayerZero transfer"));
        };
        let registry = self.request.registry;
        Ok(Crossing { from: leg(registry, oft, from)?, to: leg(registry, oft, to)?, fee })
    }

    /// Without a fee, the minimum received is the amount sent; with a fee, the slippage tolerance lowers it.
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

/// Amount in and amount out in shared decimals, and the size of such a unit in base units of the sending chain.
/// `out <= in`, and `in * unit` is at most the hop's amount in.
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

/// An account as 32 bytes, padded with zeros in front.
fn padded(account: Account) -> B256 {
    B256::left_padding_from(account.as_bytes())
}

/// The parameters of a message without composed message or command.
pub(crate) fn send_param(
    leg: &Leg,
    destination: u32,
    to: B256,
    amount: U256,
    least: U256,
) -> Result<SendParam, BuildError> {
    Ok(SendParam {
        dstEid: destination,
        to,
        amountLD: amount,
        minAmountLD: least,
        extraOptions: options(leg)?.into(),
        composeMsg: Bytes::new(),
        oftCmd: Bytes::new(),
    })
}

fn options(leg: &Leg) -> Result<Vec<u8>, BuildError> {
    let decoded = leg.options.strip_prefix("0x").and_then(|digits| alloy::hex::decode(digits).ok());
    decoded.ok_or_else(|| BuildError::Registry {
        what: "LayerZero options",
        value: leg.options.clone(),
        must: "0x and hex digits",
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn arguments_are_the_base64_of_their_bcs_form() {
        assert_eq!(argument(&30_101u32), "lXUAAA==");
        assert_eq!(argument(&1_000_000u64), "QEIPAAAAAAA=");
        assert_eq!(argument::<[u8]>(&[]), "AA==");
        let decoded = |length: usize| STANDARD.decode(argument(&vec![9u8; length])).unwrap();
        assert_eq!(decoded(127)[..2], [127, 9]);
        assert_eq!(decoded(128)[..3], [0x80, 1, 9]);
        assert_eq!(decoded(300)[..3], [0xac, 2, 9]);
        assert_eq!(decoded(300).len(), 302);
    }
}
