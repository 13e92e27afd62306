//! Splits a plan into transactions.
//!
//! A plan is untrusted input: this module checks once that the hops join and that each hop matches its channel, bridge,
//! wrapper or OFT group, so that message builders need no checks.

use std::ops::Range;

use chain::{U256, Vm};
use planner::swap::Exact;
use planner::{Hop, Plan, Step};
use registry::{AssetRef, Bridge, ChainKind, ChainRef, ChannelRef, Registry};

use crate::address::Signers;
use crate::error::BuildError;
use crate::layer_zero;
use crate::request::{BuildRequest, BuiltTxs, Tx};
use crate::slippage::Slippage;
use crate::swap;
use crate::tx_builder::{TxBuilder, invalid_plan, step_name};

/// Maximum number of hops; chains do not forward a packet further.
const MAX_HOPS: usize = 32;

/// Builds the transactions of a plan; hops with the same `tx` form one transaction.
pub fn transactions(request: &BuildRequest<'_>) -> Result<BuiltTxs, BuildError> {
    let parts = parts(request.registry, request.plan)?;
    swap::check(request.registry, request.plan)?;
    let slippage = Slippage::parse(request.slippage_percent)?;
    let timeout = deadline(request)?;
    let signers_of = Signers::read(request.registry, request.plan, request.addresses)?;
    let mut txs = Vec::with_capacity(parts.len());
    for (tx, range) in parts.into_iter().enumerate() {
        let signer = signers_of.signer(tx).ok_or_else(|| invalid_plan("a transaction has no signer"))?;
        let hops = &request.plan.hops[range.clone()];
        let builder = TxBuilder {
            request,
            hops,
            signer,
            end: signers_of.end(tx),
            timeout,
            slippage,
            signers: &signers_of,
        };
        txs.push(builder.tx(range)?);
    }
    Ok(BuiltTxs { txs, min_amount_out: least(request, slippage)? })
}

impl TxBuilder<'_> {
    fn tx(&self, hops: Range<usize>) -> Result<Tx, BuildError> {
        let chain = self.chain_of(self.hops[0].from);
        if self.request.registry[chain].kind == ChainKind::Evm {
            return self.evm(chain, hops);
        }
        let mut path = vec![chain];
        for hop in self.hops {
            let next = self.chain_of(hop.to);
            if path.last() != Some(&next) {
                path.push(next);
            }
        }
        Ok(Tx::Cosmos { chain, path, signer: self.signer.text.clone(), msgs: self.cosmos()?, hops })
    }
}

/// Minimum amount out. Only a swap and an OFT group with a fee determine their amount at execution.
fn least(request: &BuildRequest<'_>, slippage: Slippage) -> Result<U256, BuildError> {
    let mut exact = true;
    for hop in &request.plan.hops {
        exact &= !layer_zero::keeps_a_fee(request.registry, hop)?;
    }
    let planned = request.plan.hops.last().map(|hop| hop.amount_out).unwrap_or_default();
    match request.plan.swap.as_ref().map(|swap| swap.exact) {
        Some(Exact::In) => return Ok(slippage.least_rounded_up(planned)),
        // The adapter accepts 99 %.
        Some(Exact::Out) => return Ok(planned - planned.div_ceil(U256::from(100))),
        None => {}
    }
    Ok(if exact { planned } else { slippage.least(planned) })
}

fn deadline(request: &BuildRequest<'_>) -> Result<u64, BuildError> {
    let refused = BuildError::Timeout(request.timeout_seconds);
    let nanos = request.timeout_seconds.checked_mul(1_000_000_000).filter(|nanos| *nanos > 0);
    nanos.and_then(|nanos| request.now_nanos.checked_add(nanos)).ok_or(refused)
}

/// Hops of each transaction, after validation of all hops.
fn parts(registry: &Registry, plan: &Plan) -> Result<Vec<Range<usize>>, BuildError> {
    if plan.hops.is_empty() || plan.hops.len() > MAX_HOPS {
        return Err(invalid_plan(format!("it has {} hops, not 1 to {MAX_HOPS}", plan.hops.len())));
    }
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (index, hop) in plan.hops.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &plan.hops[before]);
        if before.is_some_and(|before| before.to != hop.from || before.amount_out != hop.amount_in) {
            return Err(invalid_plan(format!("hop {index} does not start with what the one before brought")));
        }
        if hop.amount_in.is_zero() || hop.amount_out.is_zero() || hop.amount_in == U256::MAX {
            let denom = registry[hop.from].denom.clone();
            // ICS-20 reads the largest number as the whole balance.
            let must = "it must be at least 1, bring at least 1, and be below 2^256 - 1".to_owned();
            return Err(BuildError::Amount { amount: hop.amount_in, denom, must });
        }
        if !fits(registry, hop) {
            return Err(invalid_plan(format!(
                "hop {index} is no {} between these assets",
                step_name(hop.step)
            )));
        }
        match parts.last_mut() {
            Some(part) if hop.tx + 1 == part_count(before) => part.end = index + 1,
            _ if hop.tx == part_count(before) => parts.push(index..index + 1),
            _ => return Err(invalid_plan(format!("hop {index} is in transaction {}", hop.tx))),
        }
    }
    Ok(parts)
}

/// Number of transactions up to and including a hop.
fn part_count(hop: Option<&Hop>) -> usize {
    hop.map_or(0, |hop| hop.tx.saturating_add(1))
}

/// Whether the channel, bridge, wrapper or group of a hop connects its assets.
fn fits(registry: &Registry, hop: &Hop) -> bool {
    let (from, to) = (&registry[hop.from], &registry[hop.to]);
    let cosmos = |chain: ChainRef| registry[chain].kind == ChainKind::Cosmos;
    let joins = |channel: ChannelRef| {
        let channel = &registry[channel];
        let ends = channel.on(from.chain).is_some() && channel.on(to.chain).is_some();
        ends && from.chain != to.chain && cosmos(from.chain) && cosmos(to.chain)
    };
    let down = |bridge: &Bridge| bridge.l1 == from.chain && bridge.l2 == to.chain;
    let up = |bridge: &Bridge| bridge.l2 == from.chain && bridge.l1 == to.chain;
    let wraps = |local: AssetRef, remote: AssetRef| {
        let pair = registry.wrapper_pair_of(local, remote);
        pair.is_some_and(|pair| pair.local == local) && registry[from.chain].vm == Vm::Evm
    };
    match hop.step {
        Step::Send => hop.from == hop.to && hop.amount_in == hop.amount_out,
        Step::Ibc { channel } => joins(channel),
        Step::MigratedDeposit { bridge, channel } => joins(channel) && down(&registry[bridge]),
        Step::MigratedWithdraw { bridge, channel } => joins(channel) && up(&registry[bridge]),
        Step::Deposit { bridge } => down(&registry[bridge]),
        Step::Withdraw { bridge } => up(&registry[bridge]),
        Step::Wrap => wraps(hop.to, hop.from),
        Step::Unwrap => wraps(hop.from, hop.to),
        Step::Swap => from.chain == to.chain && hop.from != hop.to,
        Step::LayerZero { oft, from: leaves, to: lands, .. } => {
            let legs = &registry[oft].legs;
            let is =
                |position: usize, asset: AssetRef| legs.get(position).is_some_and(|leg| leg.asset == asset);
            leaves != lands && is(leaves, hop.from) && is(lands, hop.to)
        }
    }
}
