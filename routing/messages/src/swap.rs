//! Messages of a swap: a call of the pool, of the adapter, or a packet whose memo calls the adapter.
//!
//! # Invariants
//!
//! * No message swaps without a minimum, or a maximum if the amount out is exact.
//! * The pools of a swap join its two assets and carry all of its amount.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::U256;
use planner::swap::{Exact, PoolKind, Swap, SwapLeg, SwapPart};
use planner::{Hop, Plan, Step};
use registry::denom::{self, TRANSFER_PORT};
use registry::{ChainRef, Registry};

use crate::adapter::{self, PostAction, SwapCall};
use crate::amino::{Execute, Function, argument};
use crate::error::BuildError;
use crate::memo::Arrival;
use crate::request::Msg;
use crate::slippage::Slippage;
use crate::tx_builder::{TxBuilder, invalid_plan};

/// Pools in a row.
const LEGS: usize = 3;

impl TxBuilder<'_> {
    /// The messages of a transaction that begins with a swap: one for each share of it. A pool is called directly if
    /// nothing else is to be done, because such a swap fails with its transaction.
    pub(crate) fn swap(&self) -> Result<Vec<Msg>, BuildError> {
        let swap = self.planned()?;
        let is_alone = self.hops.len() == 1 && self.end.account == self.signer.account;
        let message = |part: &SwapPart| {
            let function = match part.legs.as_slice() {
                [leg] if is_alone && swap.exact == Exact::In => self.straight(leg)?,
                _ => self.adapted(swap, part, &self.hops[1..], &self.signer.text)?,
            };
            let sender = self.signer.text.clone();
            Ok(Msg::new("/initia.move.v1.MsgExecute", &Execute::new(sender, function)))
        };
        swap.parts.iter().map(message).collect()
    }

    /// The arrival of a packet on the chain of a swap, the first of `hops`; `account` is the one that the chain derives
    /// from the packet and that swaps.
    pub(crate) fn swap_on_arrival(&self, hops: &[Hop], account: &str) -> Result<Arrival, BuildError> {
        let swap = self.planned()?;
        let [part] = swap.parts.as_slice() else {
            return Err(invalid_plan("a packet executes one share of a swap only"));
        };
        let function = self.adapted(swap, part, &hops[1..], account)?;
        let chain = self.chain_of(hops[0].from);
        let receiver = adapter::hook_receiver(self.request.registry, chain, &function);
        Ok(Arrival::executing(receiver, function))
    }

    fn planned(&self) -> Result<&Swap, BuildError> {
        self.request.plan.swap.as_ref().ok_or_else(|| invalid_plan("its swap names no pools"))
    }

    /// The call of a pool by the user.
    fn straight(&self, leg: &SwapLeg) -> Result<Function, BuildError> {
        let object = |denom: &str| argument(&denom::metadata(denom));
        let least = Some(minimum(self.slippage, leg.amount_out)?);
        let (offer, returned) = (object(&leg.denom_in), object(&leg.denom_out));
        let (amount, least) = (argument(&leg.amount_in), argument(&least));
        let (function, args) = match leg.kind {
            PoolKind::Weighted => ("swap_script", vec![object(&leg.pool), offer, amount, least]),
            PoolKind::Stable => ("swap_script", vec![object(&leg.pool), offer, returned, amount, least]),
            PoolKind::Minitswap => ("swap", vec![offer, returned, amount, least]),
        };
        Ok(Function::new("0x1", leg.kind.module(), function, args))
    }

    /// The call of the adapter by `account`, with the hops after the swap.
    fn adapted(
        &self,
        swap: &Swap,
        part: &SwapPart,
        rest: &[Hop],
        account: &str,
    ) -> Result<Function, BuildError> {
        let chain = self.swap_chain()?;
        let (amount_in, amount_out) = match swap.exact {
            Exact::In => (part.amount_in(), minimum(self.slippage, part.amount_out())?),
            Exact::Out => (self.slippage.most(part.amount_in()), part.amount_out()),
        };
        let call = SwapCall {
            part,
            exact: swap.exact,
            amount_in,
            amount_out,
            action: self.action(rest, account)?,
            timeout: self.timeout,
            recover: self.recover_address(chain)?,
        };
        Ok(call.of(adapter::of_chain(self.request, chain)?))
    }

    /// What the adapter does with the returned coin.
    fn action(&self, rest: &[Hop], account: &str) -> Result<PostAction, BuildError> {
        let Some(first) = rest.first() else { return Ok(PostAction::Transfer(self.end.text.clone())) };
        match (first.step, rest) {
            (Step::Ibc { .. } | Step::MigratedDeposit { .. }, _) => {
                let (source, _) = self.ends(first)?;
                if source.port != TRANSFER_PORT {
                    return Err(invalid_plan(format!(
                        "after a swap, coins leave over port {TRANSFER_PORT} only, not {}/{}",
                        source.port, source.channel
                    )));
                }
                let (receiver, memo) = self.arrival(rest, account)?.texts()?;
                Ok(PostAction::Ibc { channel: source.channel.clone(), receiver, memo })
            }
            (Step::Deposit { bridge }, [_]) => {
                let bridge = self.request.registry[bridge].id;
                Ok(PostAction::Deposit { bridge, to: self.end.text.clone(), data: Vec::new() })
            }
            (Step::Deposit { bridge }, [_, wrap]) if wrap.step == Step::Wrap => {
                let (to, hook) = self.signed_calls(wrap)?;
                let data =
                    STANDARD.decode(hook).map_err(|_| BuildError::Hook("it is no base64".to_owned()))?;
                Ok(PostAction::Deposit { bridge: self.request.registry[bridge].id, to, data })
            }
            _ => Err(invalid_plan(format!("no single transaction does this: {}", self.describe()))),
        }
    }

    fn swap_chain(&self) -> Result<ChainRef, BuildError> {
        let swap = self.hops.iter().find(|hop| hop.step == Step::Swap);
        swap.map(|hop| self.chain_of(hop.from)).ok_or_else(|| invalid_plan("a transaction has no swap"))
    }

    /// The user's account on the chain of a swap, which gets back what could not be swapped.
    fn recover_address(&self, chain: ChainRef) -> Result<String, BuildError> {
        let (registry, signed_on) = (self.request.registry, self.chain_of(self.hops[0].from));
        // Chains of Initia derive accounts from keys in the same way.
        if signed_on == chain || (registry[signed_on].initia && registry[chain].initia) {
            return Ok(self.signer.account.to_bech32(&registry[chain].bech32_prefix));
        }
        let given = self.signers.own(chain).map(|party| party.text.clone());
        given.ok_or_else(|| BuildError::NoRecoverAddress { chain: registry[chain].id.clone() })
    }

    /// Whether a hop's amount is only known at execution.
    pub(crate) fn follows_swap(&self, hop: &Hop) -> bool {
        self.hops.iter().take_while(|other| *other != hop).any(|other| other.step == Step::Swap)
    }
}

/// The least that a swap may return, rounded up.
fn minimum(slippage: Slippage, amount: u64) -> Result<u64, BuildError> {
    let least = u64::try_from(slippage.least_rounded_up(U256::from(amount))).unwrap_or(amount);
    if least == 0 { Err(BuildError::NoMinimum) } else { Ok(least) }
}

/// Whether the pools of a plan carry out its swap hop.
pub(crate) fn check(registry: &Registry, plan: &Plan) -> Result<(), BuildError> {
    let mut hops = plan.hops.iter().enumerate().filter(|(_, hop)| hop.step == Step::Swap);
    let (at, hop, swap) = match (hops.next(), hops.next(), &plan.swap) {
        (None, _, None) => return Ok(()),
        (Some((at, hop)), None, Some(swap)) => (at, hop, swap),
        _ => return Err(invalid_plan("its swap and the pools of it do not match")),
    };
    let joins = |part: &SwapPart| {
        let is_row = part
            .legs
            .windows(2)
            .all(|pair| pair[0].denom_out == pair[1].denom_in && pair[0].amount_out == pair[1].amount_in);
        let ends = part.legs.first().zip(part.legs.last());
        let is_between = ends.is_some_and(|(first, last)| {
            first.denom_in == registry[hop.from].denom && last.denom_out == registry[hop.to].denom
        });
        let has_amounts = part.legs.iter().all(|leg| leg.amount_in > 0 && leg.amount_out > 0);
        is_row && is_between && has_amounts && part.legs.len() <= LEGS
    };
    let sum = |amount: fn(&SwapPart) -> u64| {
        swap.parts.iter().fold(U256::ZERO, |sum, part| sum + U256::from(amount(part)))
    };
    let is_whole = sum(SwapPart::amount_in) == hop.amount_in && sum(SwapPart::amount_out) == hop.amount_out;
    let tx: Vec<&Hop> = plan.hops.iter().filter(|other| other.tx == hop.tx).collect();
    let is_first = at == 0 || plan.hops[at - 1].tx != hop.tx;
    let is_fit = match (swap.exact, swap.parts.len()) {
        (Exact::Out, parts) => is_first && parts == 1,
        (Exact::In, parts) => parts == 1 || tx.len() == 1,
    };
    if swap.parts.iter().all(joins) && is_whole && is_fit {
        return Ok(());
    }
    Err(invalid_plan(format!("the pools of hop {at} do not make its swap")))
}
