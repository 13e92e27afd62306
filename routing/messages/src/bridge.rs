//! Messages of the optimistic bridge, of migrated denominations and of minievm's wrapper.
//!
//! A migrated denomination leaves a rollup by `MsgMigrateToken` and an ICS-20 transfer, never by
//! `MsgInitiateTokenWithdrawal`: only then can the packet be forwarded and its timeout chosen, and a refund reaches the
//! user. A wrapped token is unwrapped to the user first, because only newer wrappers migrate by themselves.

use alloy::primitives::Address;
use alloy::sol_types::SolCall as _;
use chain::U256;
use planner::{Hop, Step};
use registry::denom::{self, TRANSFER_PORT};
use registry::{BridgeRef, End};

use crate::address::{Party, contract, evm_address};
use crate::amino::{CALL, Call, Coin, Deposit, Invocation, Migration, Withdrawal};
use crate::calls::{Erc20, WrapAll, Wrapper, WrapperWithMemo};
use crate::error::BuildError;
use crate::request::Msg;
use crate::tx_builder::{TxBuilder, invalid_plan};
use crate::{hook, signed, wrapper};

impl TxBuilder<'_> {
    pub(crate) fn deposit(&self, bridge: BridgeRef) -> Msg {
        self.deposit_to(bridge, self.end.text.clone(), String::new())
    }

    /// The rollup credits the hook's signer; the calls of the hook then wrap the balance for the recipient.
    pub(crate) fn deposit_and_wrap(&self, bridge: BridgeRef) -> Result<Msg, BuildError> {
        let (to, hook) = self.signed_calls(&self.hops[1])?;
        Ok(self.deposit_to(bridge, to, hook))
    }

    /// The account that a deposit credits so that its signed calls wrap the coin, and those calls.
    pub(crate) fn signed_calls(&self, wrap: &Hop) -> Result<(String, String), BuildError> {
        let chain = self.chain_of(wrap.to);
        let given = self.request.signed_hook.ok_or(BuildError::HookRequired)?;
        let signer = self.signer.account;
        let calls = hook::calls(self.request.registry, self.request.facts, wrap.to, signer, self.end)?;
        signed::check(self.request.registry, chain, given, &calls, signer)?;
        Ok((signer.to_bech32(&self.request.registry[chain].bech32_prefix), given.hook.clone()))
    }

    fn deposit_to(&self, bridge: BridgeRef, to: String, data: String) -> Msg {
        let hop = &self.hops[0];
        let deposit = Deposit {
            sender: self.signer.text.clone(),
            bridge_id: self.request.registry[bridge].id.to_string(),
            to,
            amount: Coin::new(self.denom(hop.from), hop.amount_in),
            data,
        };
        Msg::new("/opinit.ophost.v1.MsgInitiateTokenDeposit", &deposit)
    }

    pub(crate) fn withdraw(&self) -> Result<Msg, BuildError> {
        let hop = &self.hops[0];
        self.claimable(hop)?;
        let withdrawal = Withdrawal {
            sender: self.signer.text.clone(),
            to: self.end.text.clone(),
            amount: Coin::new(self.denom(hop.from), hop.amount_in),
        };
        Ok(Msg::new("/opinit.opchild.v1.MsgInitiateTokenWithdrawal", &withdrawal))
    }

    /// Checks that the amount fits 64 bits, because a claim on the L1 hashes it as such.
    fn claimable(&self, hop: &Hop) -> Result<(), BuildError> {
        if hop.amount_in <= U256::from(u64::MAX) {
            return Ok(());
        }
        let must = format!("a withdrawal can be claimed up to {}", u64::MAX);
        Err(BuildError::Amount { amount: hop.amount_in, denom: self.denom(hop.from).to_owned(), must })
    }

    pub(crate) fn wrap(&self) -> Result<Vec<Msg>, BuildError> {
        self.convert(&self.hops[0], |_| self.wrap_call(&self.hops[0]))
    }

    /// Calldata that wraps the amount of a hop for the recipient.
    pub(crate) fn wrap_call(&self, hop: &Hop) -> Result<Vec<u8>, BuildError> {
        let call = Wrapper::toLocalCall {
            receiver: evm_address(self.request.registry, self.chain_of(hop.to), self.end)?,
            remoteDenom: self.denom(hop.from).to_owned(),
            remoteAmount: hop.amount_in,
            remoteDecimals: self.request.registry[hop.from].decimals,
        };
        Ok(call.abi_encode())
    }

    /// Calldata that wraps all that the caller has, for the recipient.
    pub(crate) fn wrap_all_call(&self, hop: &Hop) -> Result<Vec<u8>, BuildError> {
        let call = WrapAll::toLocalCall {
            receiver: evm_address(self.request.registry, self.chain_of(hop.to), self.end)?,
            remoteDenom: self.denom(hop.from).to_owned(),
            remoteDecimals: self.request.registry[hop.from].decimals,
        };
        Ok(call.abi_encode())
    }

    pub(crate) fn unwrap(&self, hop: &Hop, receiver: &Party) -> Result<Vec<Msg>, BuildError> {
        self.convert(hop, |_| {
            let call = Wrapper::toRemoteCall {
                receiver: evm_address(self.request.registry, self.chain_of(hop.from), receiver)?,
                localDenom: self.denom(hop.from).to_owned(),
                localAmount: hop.amount_in,
            };
            Ok(call.abi_encode())
        })
    }

    pub(crate) fn unwrap_and_withdraw(&self) -> Result<Vec<Msg>, BuildError> {
        let hop = &self.hops[0];
        self.claimable(&self.hops[1])?;
        self.convert(hop, |_| {
            let call = Wrapper::toRemoteAndOPWithdrawCall {
                receiver: self.end.text.clone(),
                localDenom: self.denom(hop.from).to_owned(),
                localAmount: hop.amount_in,
            };
            Ok(call.abi_encode())
        })
    }

    /// The wrapper sends the packet, so a forwarding chain sees it as the sender.
    pub(crate) fn unwrap_and_transfer(&self) -> Result<Vec<Msg>, BuildError> {
        let (hop, rest) = (&self.hops[0], &self.hops[1..]);
        self.convert(hop, |wrapper| {
            let (End { port, channel, .. }, _) = self.ends(&rest[0])?;
            if port != TRANSFER_PORT {
                return Err(invalid_plan(format!(
                    "the wrapper sends over port {TRANSFER_PORT} only, not {port}/{channel}"
                )));
            }
            let prefix = &self.request.registry[self.chain_of(hop.from)].bech32_prefix;
            let sender = chain::Account::from(wrapper.into_array()).to_bech32(prefix);
            let (receiver, memo) = self.arrival(rest, &sender)?.texts()?;
            let (denom, channel) = (self.denom(hop.from).to_owned(), channel.clone());
            let (amount, timeout) = (hop.amount_in, U256::from(self.timeout));
            Ok(if memo.is_empty() {
                let fields = (denom, amount, channel, receiver, timeout);
                Wrapper::toRemoteAndIBCTransferCall::from(fields).abi_encode()
            } else {
                let fields = (denom, amount, channel, receiver, timeout, memo);
                WrapperWithMemo::toRemoteAndIBCTransferCall::from(fields).abi_encode()
            })
        })
    }

    pub(crate) fn unwrap_and_migrate(&self) -> Result<Vec<Msg>, BuildError> {
        let mut msgs = self.unwrap(&self.hops[0], self.signer)?;
        msgs.extend(self.migrate(&self.hops[1..])?);
        Ok(msgs)
    }

    /// Migrates the bridged coin to the voucher of the L1's denomination and transfers the voucher.
    pub(crate) fn migrate(&self, hops: &[Hop]) -> Result<Vec<Msg>, BuildError> {
        let hop = &hops[0];
        let Step::MigratedWithdraw { .. } = hop.step else {
            return Err(invalid_plan("nothing was migrated"));
        };
        let (here, there) = self.ends(hop)?;
        let path = denom::received(
            self.request.registry.path(hop.to),
            (&there.port, &there.channel),
            (&here.port, &here.channel),
        );
        let amount = Coin::new(self.denom(hop.from), hop.amount_in);
        let migration = Migration { sender: self.signer.text.clone(), amount };
        let migration = Msg::new("/opinit.opchild.v1.MsgMigrateToken", &migration);
        Ok(vec![migration, self.transfer(hops, &denom::of_path(&path))?])
    }

    /// Allows the wrapper exactly the amount of the hop, so that no allowance remains, and calls it. `calldata`
    /// receives the wrapper's address.
    fn convert(
        &self,
        hop: &Hop,
        calldata: impl FnOnce(Address) -> Result<Vec<u8>, BuildError>,
    ) -> Result<Vec<Msg>, BuildError> {
        let (wrapper, spender) = self.wrapper_of(hop)?;
        let call = calldata(spender)?;
        let token = hook::token(self.request.registry, self.request.facts, hop.from)?;
        let approve = Erc20::approveCall { spender, amount: hop.amount_in };
        Ok(vec![self.call(&token, &approve.abi_encode()), self.call(wrapper, &call)])
    }

    fn call(&self, contract: &str, calldata: &[u8]) -> Msg {
        let input = Invocation::new(contract, calldata);
        Msg::new(CALL, &Call { sender: self.signer.text.clone(), input })
    }

    /// The wrapper of a hop, in the spelling of the registry and parsed.
    pub(crate) fn wrapper_of(&self, hop: &Hop) -> Result<(&str, Address), BuildError> {
        let pair = wrapper::pair(self.request.registry, self.request.facts, hop.from, hop.to)?;
        Ok((pair.contract, contract("wrapper", pair.contract)?))
    }
}
