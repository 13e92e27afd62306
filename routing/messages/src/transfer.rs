//! ICS-20 transfers: the route of a packet and its memo.

use chain::Vm;
use planner::{Hop, Step};
use registry::denom::is_contract_port;
use registry::{ChainRef, End, intermediary};

use crate::amino::{Coin, Invocation, Never, Transfer};
use crate::error::BuildError;
use crate::memo::Arrival;
use crate::request::Msg;
use crate::tx_builder::{TxBuilder, invalid_plan};

impl TxBuilder<'_> {
    /// Sends `denom` over the channel of the first of `hops`; the memo executes the others.
    pub(crate) fn transfer(&self, hops: &[Hop], denom: &str) -> Result<Msg, BuildError> {
        let (source, _) = self.ends(&hops[0])?;
        if is_contract_port(&source.port) {
            return self.cw20_transfer(&hops[0], source);
        }
        let (receiver, memo) = self.arrival(hops, &self.signer.text)?.texts()?;
        let transfer = Transfer {
            source_port: source.port.clone(),
            source_channel: source.channel.clone(),
            token: Coin::new(denom, hops[0].amount_in),
            sender: self.signer.text.clone(),
            receiver,
            timeout_height: Never {},
            timeout_timestamp: self.timeout.to_string(),
            memo,
        };
        Ok(Msg::new("/ibc.applications.transfer.v1.MsgTransfer", &transfer))
    }

    /// Receiver and memo of the packet that `sender` sends in the first of `hops`; the memo contains the other hops.
    pub(crate) fn arrival(&self, hops: &[Hop], sender: &str) -> Result<Arrival, BuildError> {
        let called = hops.iter().position(|hop| matches!(hop.step, Step::Swap | Step::Wrap));
        let (packets, rest) = hops.split_at(called.unwrap_or(hops.len()));
        let (receivers, holder) = self.receivers_between(packets, sender)?;
        let mut arrival = match rest {
            [] => Arrival::at(self.end.text.clone()),
            [wrap] if wrap.step == Step::Wrap => Arrival::calling(self.wrapping(wrap)?),
            [swap, ..] if swap.step == Step::Swap => {
                let account = self.hook_caller(packets, &holder)?;
                self.swap_on_arrival(rest, &account)?
            }
            _ => return Err(invalid_plan(format!("no single transaction does this: {}", self.describe()))),
        };
        for (hop, receiver) in packets.iter().skip(1).zip(receivers).rev() {
            let (source, _) = self.ends(hop)?;
            arrival = arrival.forwarded_by(receiver, &source.port, &source.channel);
        }
        Ok(arrival)
    }

    /// The receiver of each packet that is forwarded: an address of the chain, because some read it (Noble does for its own
    /// USDC). The middleware replaces it by the account of which it sends on; a chain that has lost the middleware pays
    /// it, so it is the account of the signer's key there, unless the rollup reads the receiver for more. Also the sender of
    /// the last packet.
    fn receivers_between(&self, packets: &[Hop], sender: &str) -> Result<(Vec<String>, String), BuildError> {
        let (mut receivers, mut sender) = (Vec::new(), sender.to_owned());
        for hop in &packets[..packets.len().saturating_sub(1)] {
            let chain = self.chain_of(hop.to);
            let at = &self.request.registry[chain];
            if !self.request.facts.forwards(self.request.registry, chain) {
                return Err(invalid_plan(format!("chain `{}` does not forward packets", at.id)));
            }
            if let Step::MigratedDeposit { .. } = hop.step {
                // The middleware would forward the voucher, which the rollup has converted into the bridged coin.
                return Err(invalid_plan(format!(
                    "what was migrated to `{}` cannot be forwarded by it",
                    at.id
                )));
            }
            let (_, arrives) = self.ends(hop)?;
            let holder = intermediary::forwarder(&arrives.channel, &sender).to_bech32(&at.bech32_prefix);
            let has_key = self.signer.account.as_bytes().len() == 20;
            receivers.push(if has_key && !self.converts_receipts(chain) {
                self.signer.account.to_bech32(&at.bech32_prefix)
            } else {
                holder.clone()
            });
            sender = holder;
        }
        Ok((receivers, sender))
    }

    /// The account that executes the memo of the last of `packets` on the receiving chain.
    fn hook_caller(&self, packets: &[Hop], sender: &str) -> Result<String, BuildError> {
        let last = packets.last().ok_or_else(|| invalid_plan("no packet carries the swap"))?;
        let (_, arrives) = self.ends(last)?;
        let at = &self.request.registry[self.chain_of(last.to)];
        let caller = intermediary::hook_caller(at.vm, &arrives.channel, sender);
        let caller = caller.ok_or_else(|| invalid_plan(format!("chain `{}` executes no memo", at.id)))?;
        Ok(caller.to_bech32(&at.bech32_prefix))
    }

    /// Whether a chain converts what its receivers get before the middleware sends it on: a rollup with migrated
    /// denominations does.
    fn converts_receipts(&self, chain: ChainRef) -> bool {
        let (registry, facts) = (self.request.registry, self.request.facts);
        let Some(bridge) = registry.bridge_to(chain).map(|bridge| &registry[bridge]) else { return false };
        let key = (registry[bridge.l1].id.clone(), bridge.id);
        let facts = facts.bridges.get(&key);
        facts.is_some_and(|facts| facts.migrated.values().any(Option::is_some)) || !bridge.migrated.is_empty()
    }

    /// The call that wraps the tokens of a packet. The IBC hook has approved the wrapper.
    fn wrapping(&self, hop: &Hop) -> Result<Invocation, BuildError> {
        let (registry, chain) = (self.request.registry, self.chain_of(hop.to));
        let at = &registry[chain];
        if at.vm != Vm::Evm || !self.request.facts.hooks_allowed(registry, chain) {
            return Err(invalid_plan(format!("chain `{}` does not let packets call its wrapper", at.id)));
        }
        let (wrapper, _) = self.wrapper_of(hop)?;
        // The amount of a swap is not known beforehand.
        let call = if self.follows_swap(hop) { self.wrap_all_call(hop)? } else { self.wrap_call(hop)? };
        Ok(Invocation::new(wrapper, &call))
    }

    /// The sending and the receiving end of a hop's channel.
    pub(crate) fn ends(&self, hop: &Hop) -> Result<(&End, &End), BuildError> {
        let Some(channel) = hop.step.channel() else {
            return Err(invalid_plan(format!("no single transaction does this: {}", self.describe())));
        };
        let channel = &self.request.registry[channel];
        let ends = (channel.on(self.chain_of(hop.from)), channel.on(self.chain_of(hop.to)));
        match ends {
            (Some(source), Some(target)) => Ok((source, target)),
            _ => Err(invalid_plan("a channel does not join the chains of its hop")),
        }
    }
}
