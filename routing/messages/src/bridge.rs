//! Messages of the optimistic bridge, of migrated denominations and of minievm's wrapper.
//!
//! A migrated denomination leaves a rollup by `MsgMigrateToken` and an ICS-20 transfer, never by
//! `MsgInitiateTokenWithdrawal`: only then can the packet be forwarded and its timeout chosen, and a refund reaches the
//! user. A wrapped token is unwrapped to the user first, because only newer wrappers migrate by themselves
//! (`router-mechanics.md` §2.4, §2.6, §3.3).

use alloy::primitives::Address;
use chain::U256;
use planner::{Hop, Step};
use registry::{BridgeRef, denom};

use crate::address::{Party, contract, evm_address};
use crate::amino::{Amino as _, Call, Coin, Deposit, Invocation, Migration, Withdrawal};
use crate::calls::{self, Packet};
use crate::error::BuildError;
use crate::request::Msg;
use crate::tx_builder::{TxBuilder, invalid_plan};
use crate::{hook, signed, wrapper};

/// The only port that the wrapper sends over.
const TRANSFER: &str = "transfer";

impl TxBuilder<'_> {
    pub(crate) fn deposit(&self, bridge: BridgeRef) -> Msg {
        self.deposit_to(bridge, self.end.text.clone(), String::new())
    }

    /// The rollup credits the signer of the hook, whose calls then wrap the balance for the recipient.
    pub(crate) fn deposit_and_wrap(&self, bridge: BridgeRef) -> Result<Msg, BuildError> {
        let hop = &self.hops[1];
        let chain = self.chain_of(hop.to);
        let given = self.request.signed_hook.ok_or(BuildError::HookRequired)?;
        let signer = self.signer.account;
        let calls = hook::calls(self.request.registry, self.request.facts, hop.to, signer, self.end)?;
        signed::check(self.request.registry, chain, given, &calls, signer)?;
        let to = signer.to_bech32(&self.request.registry[chain].bech32_prefix);
        Ok(self.deposit_to(bridge, to, given.hook.clone()))
    }

    fn deposit_to(&self, bridge: BridgeRef, to: String, data: String) -> Msg {
        let hop = &self.hops[0];
        Deposit {
            sender: self.signer.text.clone(),
            bridge_id: self.request.registry[bridge].id.to_string(),
            to,
            amount: Coin::new(self.denom(hop.from), hop.amount_in),
            data,
        }
        .msg()
    }

    pub(crate) fn withdraw(&self) -> Result<Msg, BuildError> {
        let hop = &self.hops[0];
        self.claimable(hop)?;
        Ok(Withdrawal {
            sender: self.signer.text.clone(),
            to: self.end.text.clone(),
            amount: Coin::new(self.denom(hop.from), hop.amount_in),
        }
        .msg())
    }

    /// A claim on the L1 hashes the amount as a 64-bit number.
    fn claimable(&self, hop: &Hop) -> Result<(), BuildError> {
        if hop.amount_in <= U256::from(u64::MAX) {
            return Ok(());
        }
        let must = format!("a withdrawal can be claimed up to {}", u64::MAX);
        Err(BuildError::Amount { amount: hop.amount_in, denom: self.denom(hop.from).to_owned(), must })
    }

    pub(crate) fn wrap(&self) -> Result<Vec<Msg>, BuildError> {
        let hop = &self.hops[0];
        let (wrapper, address) = self.wrapper_of(hop)?;
        let receiver = evm_address(self.request.registry, self.chain_of(hop.to), self.end)?;
        let decimals = self.request.registry[hop.from].decimals;
        let call = calls::wrap(receiver, self.denom(hop.from), hop.amount_in, decimals);
        Ok(vec![self.allow(hop, address)?, self.call(wrapper, &call)])
    }

    pub(crate) fn unwrap(&self, hop: &Hop, receiver: &Party) -> Result<Vec<Msg>, BuildError> {
        let (wrapper, address) = self.wrapper_of(hop)?;
        let receiver = evm_address(self.request.registry, self.chain_of(hop.from), receiver)?;
        let call = calls::unwrap(receiver, self.denom(hop.from), hop.amount_in);
        Ok(vec![self.allow(hop, address)?, self.call(wrapper, &call)])
    }

    pub(crate) fn unwrap_and_withdraw(&self) -> Result<Vec<Msg>, BuildError> {
        let hop = &self.hops[0];
        self.claimable(&self.hops[1])?;
        let (wrapper, address) = self.wrapper_of(hop)?;
        let call = calls::unwrap_and_withdraw(&self.end.text, self.denom(hop.from), hop.amount_in);
        Ok(vec![self.allow(hop, address)?, self.call(wrapper, &call)])
    }

    /// The wrapper sends the packet, so a forwarding chain sees it as the sender.
    pub(crate) fn unwrap_and_transfer(&self) -> Result<Vec<Msg>, BuildError> {
        let (hop, rest) = (&self.hops[0], &self.hops[1..]);
        let (wrapper, address) = self.wrapper_of(hop)?;
        let (source, _) = self.ends(&rest[0])?;
        if source.port != TRANSFER {
            let channel = &source.channel;
            return Err(invalid_plan(format!(
                "the wrapper sends over port {TRANSFER} only, not {}/{channel}",
                source.port
            )));
        }
        let prefix = &self.request.registry[self.chain_of(hop.from)].bech32_prefix;
        let sender = chain::Account::from(address.into_array()).to_bech32(prefix);
        let (receiver, memo) = self.arrival(rest, &sender)?.texts()?;
        let packet = Packet { channel: source.channel.clone(), receiver, timeout: self.timeout, memo };
        let call = calls::unwrap_and_transfer(self.denom(hop.from), hop.amount_in, packet);
        Ok(vec![self.allow(hop, address)?, self.call(wrapper, &call)])
    }

    pub(crate) fn unwrap_and_migrate(&self) -> Result<Vec<Msg>, BuildError> {
        let mut msgs = self.unwrap(&self.hops[0], self.signer)?;
        msgs.extend(self.migrate(&self.hops[1..])?);
        Ok(msgs)
    }

    /// Turns the bridged coin into the voucher that the L1 takes back as its own, and sends that.
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
        let migration = Migration { sender: self.signer.text.clone(), amount }.msg();
        Ok(vec![migration, self.transfer(hops, &denom::of_path(&path))?])
    }

    /// Lets the wrapper take what the hop sends: exactly that, so that nothing is left allowed.
    fn allow(&self, hop: &Hop, wrapper: Address) -> Result<Msg, BuildError> {
        let token = hook::token(self.request.registry, self.request.facts, hop.from)?;
        Ok(self.call(&token, &calls::approve(wrapper, hop.amount_in)))
    }

    fn call(&self, contract: &str, calldata: &[u8]) -> Msg {
        Call { sender: self.signer.text.clone(), input: Invocation::new(contract, calldata) }.msg()
    }

    /// The wrapper that converts in a hop, as the registry writes it.
    pub(crate) fn wrapper_of(&self, hop: &Hop) -> Result<(&str, Address), BuildError> {
        let pair = wrapper::pair(self.request.registry, self.request.facts, hop.from, hop.to)?;
        Ok((pair.contract, contract("wrapper", pair.contract)?))
    }
}
