//! ICS-20 transfers: the route of a packet and its memo.

use chain::Vm;
use planner::{Hop, Step};
use registry::{ChainRef, End, intermediary};

use crate::address::evm_address;
use crate::amino::{Amino as _, Coin, Invocation, Never, Transfer};
use crate::calls;
use crate::error::BuildError;
use crate::memo::Arrival;
use crate::request::Msg;
use crate::tx_builder::{TxBuilder, invalid_plan};

/// Receiver on a chain that only forwards. It is no address on purpose: a chain that would not forward refunds then,
/// instead of crediting somebody.
const NOBODY: &str = "pfm";

impl TxBuilder<'_> {
    /// Sends `denom` over the channel of the first of `hops`, which are the rest of the transaction.
    pub(crate) fn transfer(&self, hops: &[Hop], denom: &str) -> Result<Msg, BuildError> {
        let (source, _) = self.ends(&hops[0])?;
        let (receiver, memo) = self.arrival(hops, &self.signer.text)?.texts()?;
        Ok(Transfer {
            source_port: source.port.clone(),
            source_channel: source.channel.clone(),
            token: Coin::new(denom, hops[0].amount_in),
            sender: self.signer.text.clone(),
            receiver,
            timeout_height: Never {},
            timeout_timestamp: self.timeout.to_string(),
            memo,
        }
        .msg())
    }

    /// Who gets the packet that `sender` sends in the first of `hops`, and what it tells the chains to do for the
    /// others.
    pub(crate) fn arrival(&self, hops: &[Hop], sender: &str) -> Result<Arrival, BuildError> {
        let (packets, wrap) = match hops {
            [packets @ .., wrap] if wrap.step == Step::Wrap => (packets, Some(wrap)),
            _ => (hops, None),
        };
        let receivers = self.receivers_between(packets, sender)?;
        let mut arrival = match wrap {
            Some(wrap) => Arrival::calling(self.wrapping(wrap)?),
            None => Arrival::at(self.end.text.clone()),
        };
        for (hop, receiver) in packets.iter().skip(1).zip(receivers).rev() {
            let (source, _) = self.ends(hop)?;
            arrival = arrival.forwarded_by(receiver, &source.port, &source.channel);
        }
        Ok(arrival)
    }

    /// The receiver of every packet that is sent on.
    fn receivers_between(&self, packets: &[Hop], sender: &str) -> Result<Vec<String>, BuildError> {
        let (mut receivers, mut sender) = (Vec::new(), sender.to_owned());
        for hop in &packets[..packets.len().saturating_sub(1)] {
            let chain = self.chain_of(hop.to);
            let at = &self.request.registry[chain];
            if !at.forwards {
                return Err(invalid_plan(format!("chain `{}` does not forward packets", at.id)));
            }
            if let Step::MigratedDeposit { .. } = hop.step {
                // The middleware that forwards would look for the voucher that was just turned into the bridged coin.
                return Err(invalid_plan(format!(
                    "what was migrated to `{}` cannot be forwarded by it",
                    at.id
                )));
            }
            let (_, arrives) = self.ends(hop)?;
            let holder = intermediary::forwarder(&arrives.channel, &sender).to_bech32(&at.bech32_prefix);
            receivers.push(if self.reads_receivers(chain) { holder.clone() } else { NOBODY.to_owned() });
            sender = holder;
        }
        Ok(receivers)
    }

    /// Whether a chain takes only addresses as receivers, even of what it forwards: a rollup with migrated
    /// denominations does (`router-mechanics.md` §4.2).
    fn reads_receivers(&self, chain: ChainRef) -> bool {
        let (registry, facts) = (self.request.registry, self.request.facts);
        let Some(bridge) = registry.bridge_to(chain).map(|bridge| &registry[bridge]) else { return false };
        let key = (registry[bridge.l1].id.clone(), bridge.id);
        let said = facts.bridges.get(&key).is_some_and(|said| said.migrated.values().any(Option::is_some));
        said || !bridge.migrated.is_empty()
    }

    /// The call that wraps what a packet brings. The hook has let the wrapper take it.
    fn wrapping(&self, hop: &Hop) -> Result<Invocation, BuildError> {
        let (registry, chain) = (self.request.registry, self.chain_of(hop.to));
        let at = &registry[chain];
        if at.vm != Vm::Evm || !self.request.facts.hooks_allowed(registry, chain) {
            return Err(invalid_plan(format!("chain `{}` does not let packets call its wrapper", at.id)));
        }
        let (wrapper, _) = self.wrapper_of(hop)?;
        let receiver = evm_address(registry, chain, self.end)?;
        let coin = &registry[hop.from];
        Ok(Invocation::new(wrapper, &calls::wrap(receiver, &coin.denom, hop.amount_in, coin.decimals)))
    }

    /// The sending and the receiving end of a hop's channel.
    pub(crate) fn ends(&self, hop: &Hop) -> Result<(&End, &End), BuildError> {
        let (Step::Ibc { channel }
        | Step::MigratedDeposit { channel, .. }
        | Step::MigratedWithdraw { channel, .. }) = hop.step
        else {
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
