//! Coins of a bank that keeps balances itself, in the rich list of a chain with cosmos/evm or ethermint.
//!
//! Their balances change by events of the bank, and by what calls send along, which no event tells. So the lane follows that of
//! internal transactions too, and reads the stored calls and the errors of those that failed.

use std::collections::{BTreeMap, BTreeSet};

use chain::U256;
use chain::evm::coin::{self, NATIVE, Sent};
use chain::evm::erc20::Erc20Event;
use chain::evm::flavour::Flavour;
use schema::block::Blocks;
use schema::call_errors::{self, CALL_ERRORS};
use schema::evm_tx::EvmTxs;
use schema::internal_tx::{self, Calls};
use schema::meta::{self, BlockLane, CallLane};
use schema::payload::Codec;
use schema::records;
use schema::rich::{Address, Denoms};
use schema::tx::Txs;
use serde::Deserialize;
use store::{Bounds, Message, Snapshot, Table as _};

use super::lane::{BalanceReply, End, RichList};
use crate::retry::retry_until;
use crate::{Error, Progress};

impl RichList {
    /// The denom of the native coin, on a chain whose bank keeps its balances.
    pub(super) fn native(&self) -> Option<&str> {
        Some(self.coins.as_ref()?.native.get()?.as_str())
    }

    /// Waits until the native coin has a name: that of the fees of the EVM's transactions.
    pub(super) fn name_native(&self) -> Result<(), End> {
        let Some(coins) = &self.coins else { return Ok(()) };
        let (mut blocks, mut is_logged) = (self.blocks.clone(), false);
        loop {
            blocks.borrow_and_update();
            let snapshot = self.store.snapshot()?;
            if let Some(denom) = known_native(&*snapshot)?
                .map_or_else(|| self.fee_denom(&*snapshot), |known| Ok(Some(known)))?
            {
                coins.native.get_or_init(|| denom);
                return Ok(());
            }
            drop(snapshot);
            if blocks.borrow().height >= self.chain.borrow().height
                && let Some(denom) = self.wait_for(self.configured_native())?
            {
                coins.native.get_or_init(|| denom);
                return Ok(());
            }
            if !std::mem::replace(&mut is_logged, true) {
                tracing::info!(
                    "the rich list waits for an EVM transaction with a fee, which names the native coin"
                );
            }
            self.wait_for(async { blocks.changed().await.map_err(|_| End::Stopped) })??;
        }
    }

    /// The native coin by the parameters of the EVM's module.
    async fn configured_native(&self) -> Option<String> {
        let path = match self.workers.rules().flavour {
            Flavour::CosmosEvm => "/cosmos/evm/vm/v1/params",
            Flavour::Ethermint => "/ethermint/evm/v1/params",
            Flavour::MiniEvm => return None,
        };
        let reply = self.node.rest.as_ref()?.get(path, None).await.ok()?;
        let reply: serde_json::Value = serde_json::from_slice(&reply).ok()?;
        reply["params"]["evm_denom"].as_str().filter(|denom| !denom.is_empty()).map(str::to_owned)
    }

    /// The denom of the fee of the first or the last EVM transaction.
    fn fee_denom(&self, snapshot: &dyn Snapshot) -> Result<Option<String>, Error> {
        let lane: BlockLane = meta::read(snapshot)?.unwrap_or_default();
        let ends = [1, lane.evm_txs].into_iter().filter(|_| lane.evm_txs > 0);
        for seq in ends {
            let mut height = None;
            records::each::<EvmTxs>(snapshot, &self.finality.codec, &[seq], |record| {
                height = height_of(record);
            })?;
            let Some(height) = height else { continue };
            let Some(Message(block)) = store::table::read::<Blocks>(snapshot, &height)? else { continue };
            let seqs: Vec<u64> = (block.first_tx..block.first_tx + block.txs).collect();
            let mut found = None;
            records::each::<Txs>(snapshot, &self.finality.codec, &seqs, |record| {
                found = found.take().or_else(|| fee_of_ethereum(record));
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Waits until a block after `height` is indexed, with its calls where they are needed, and returns the last one.
    pub(super) async fn indexed_after(&self, height: u64) -> Result<u64, End> {
        let mut blocks = self.blocks.clone();
        let is_after = |progress: &Progress| progress.height > height;
        let last = blocks.wait_for(is_after).await.map_err(|_| End::Stopped)?.height;
        let Some(coins) = &self.coins else { return Ok(last) };
        let mut calls = coins.calls.clone();
        let traced = calls.wait_for(is_after).await.map_err(|_| End::Stopped)?.height;
        Ok(last.min(traced))
    }

    /// Adds to the events of the block at `height` what its calls have sent.
    pub(super) fn with_sent(
        &self,
        height: u64,
        mut events: Vec<Erc20Event>,
    ) -> Result<Vec<Erc20Event>, Error> {
        let Some(native) = self.native() else { return Ok(events) };
        if events.contains(&Erc20Event::ValuesInEvents) {
            return Ok(events);
        }
        let snapshot = self.store.snapshot()?;
        let Some(sent) = sent_at(&*snapshot, &self.finality.codec, height)? else {
            events.push(Erc20Event::Untraced);
            return Ok(events);
        };
        for Sent { from, to, amount } in sent {
            for (account, into) in [(from, false), (to, true)] {
                events.push(Erc20Event::Coin { denom: native.to_owned(), account, amount, into });
            }
        }
        Ok(events)
    }

    /// The denoms of coins by their contracts.
    pub(super) fn coin_denoms(&self) -> Result<BTreeMap<Address, String>, Error> {
        if self.coins.is_none() {
            return Ok(BTreeMap::new());
        }
        denoms(&*self.store.snapshot()?)
    }

    /// The balances of the bank in the state of `height`, else in the latest.
    pub(super) async fn bank_amounts(
        &self,
        accounts: &[(Address, Address)],
        denoms: &BTreeMap<Address, String>,
        height: u64,
    ) -> Result<Vec<BalanceReply>, Error> {
        if accounts.is_empty() {
            return Ok(Vec::new());
        }
        let Some(rest) = &self.node.rest else { return Ok(vec![BalanceReply::NoReply; accounts.len()]) };
        let probe = self.finality.probe(height)?;
        let mut replies = Vec::with_capacity(accounts.len());
        for (contract, account) in accounts {
            let address = chain::Account::from(*account).to_bech32(&self.prefix);
            let exact =
                || async { rest.balances(&address, self.finality.state(height, probe.as_ref())?).await };
            let (held, is_exact) = match retry_until(height, "balances", exact).await {
                Ok(held) => (held, true),
                Err(Error::Node { source, .. }) if source.is_pruned() => {
                    let latest = || async { rest.balances(&address, None).await };
                    (retry_until(height, "balances", latest).await?, false)
                }
                Err(error) => return Err(error),
            };
            let held = held.iter().find(|(denom, _)| Some(denom) == denoms.get(contract));
            let amount =
                held.and_then(|(_, amount)| U256::from_str_radix(amount, 10).ok()).unwrap_or_default();
            replies.push(if is_exact {
                BalanceReply::AtHeight(amount)
            } else {
                BalanceReply::Latest(amount)
            });
        }
        Ok(replies)
    }
}

fn denoms(snapshot: &dyn Snapshot) -> Result<BTreeMap<Address, String>, Error> {
    let mut denoms = BTreeMap::new();
    store::for_each_row(snapshot, Denoms::SPEC, Bounds::all(), |key, value| {
        let (denom, contract) = store::table::decode_row::<Denoms>(key, value)?;
        denoms.extend(Address::try_from(contract).ok().map(|contract| (contract, denom.0)));
        Ok::<(), Error>(())
    })?;
    Ok(denoms)
}

fn known_native(snapshot: &dyn Snapshot) -> Result<Option<String>, Error> {
    Ok(denoms(snapshot)?.remove(&NATIVE))
}

fn height_of(receipt: &[u8]) -> Option<u64> {
    serde_json::from_slice::<chain::evm::Receipt<'_>>(receipt).ok()?.block_number()
}

/// The denom of the fee of a transaction with one of Ethereum's in it.
fn fee_of_ethereum(record: &[u8]) -> Option<String> {
    memchr::memmem::find(record, b".MsgEthereumTx\"")?;
    let record: serde_json::Value = serde_json::from_slice(record).ok()?;
    let fee = &record["tx"]["auth_info"]["fee"]["amount"][0]["denom"];
    fee.as_str().filter(|denom| !denom.is_empty()).map(str::to_owned)
}

/// A stored call.
#[derive(Deserialize)]
struct Frame {
    parent_index: i64,
    index: u64,
    #[serde(rename = "type")]
    kind: String,
    from: String,
    to: String,
    value: String,
}

/// What the calls at `height` have sent; `None` if some transactions have no calls, or it is unknown which of them failed.
fn sent_at(snapshot: &dyn Snapshot, codec: &Codec, height: u64) -> Result<Option<Vec<Sent>>, Error> {
    let lane: CallLane = meta::read(snapshot)?.unwrap_or_default();
    if lane.untraced.contains(&height) {
        return Ok(None);
    }
    let Some(calls) = internal_tx::of_block(snapshot, height)? else { return Ok(Some(Vec::new())) };
    if CALL_ERRORS.state(snapshot)?.is_none_or(|state| state.from > height || state.height < height) {
        return Ok(None);
    }
    let seqs: Vec<u64> = (calls.first..calls.first + calls.count()).collect();
    let failed = call_errors::of_frames(snapshot, calls.first, calls.first + calls.count())?;
    let failed: BTreeSet<u64> = failed.into_iter().map(|(seq, _)| seq).collect();
    let mut frames = Vec::with_capacity(seqs.len());
    records::each::<Calls>(snapshot, codec, &seqs, |record| {
        frames.push(serde_json::from_slice::<Frame>(record).ok());
    })?;
    let (mut sent, mut place) = (Vec::new(), 0);
    for count in calls.counts {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let of_tx = seqs.iter().zip(&frames).skip(place).take(count);
        sent.extend(coin::sent(of_tx.filter_map(|(seq, frame)| {
            let Frame { parent_index, index, kind, from, to, value } = frame.as_ref()?;
            let failed = failed.contains(seq);
            Some(coin::Call { index: *index, parent: *parent_index, kind, from, to, value, failed })
        })));
        place += count;
    }
    Ok(Some(sent))
}
