//! Balances of a chain without an EVM, by the same lane.
//!
//! ```text
//! baseline ──▶ what each account held before the first block ──▶ holders ──▶ block by block: the ledger's changes
//! bank balances of all,                                                       in turns: samples, supplies
//! less their movements
//! ```
//!
//! # Invariants
//! * A balance is never stored: it is the base and the change by movements, at each height.
//! * The lane is never ahead of the ledger.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use chain::movement::{Token, metadata_of_denom};
use chain::{Account, U256, Vm};
use node::Rest;
use schema::balances::{self, Base, Bases, TokenHolders, TokenStates};
use schema::keys::AccountKey;
use schema::ledger::{self, BalanceTotals, Change, History, Holder, LEDGER};
use schema::meta::RichLane;
use schema::movement::TokenKey;
use schema::supply::put_supply;
use serde_json::Value;
use store::key::All;
use store::{Batch, Bounds, Durability, Message, Order, RANK, Snapshot, Table as _};
use tokio::time::Instant;

use super::lane::{End, RichList};
use crate::meter::Event;
use crate::{Error, Progress};

/// Heights of one commit.
const HEIGHTS_AT_ONCE: u64 = 1024;
/// Holders of one commit of the first list of them.
const HOLDERS_AT_ONCE: usize = 4096;
/// Greatest holders in a sample.
const SAMPLED: u64 = 4;
/// Samples in the time of the setting `reconcile`.
const TURNS: u32 = 16;
/// Timeout of a sample; blocks wait meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Tokens of one account: more are in no bank.
const MAX_TOKENS: usize = 1 << 20;

/// The rows of a first list of holders.
type Listed = Vec<(TokenKey, AccountKey, U256)>;

impl RichList {
    pub(super) fn work_of_bank(&self) -> Result<Infallible, End> {
        let mut lane = self.baseline()?;
        if lane.height == 0 {
            lane = self.list_holders(lane)?;
        }
        let (mut sampled, mut asked, mut turned) = (None, None, Instant::now());
        loop {
            self.progress.send_replace(Progress { height: lane.height, records: 0 });
            let due = self.reconcile_every.map(|every| turned + every / TURNS);
            if let Some(last) = self.next_of_ledger(lane.height, due)? {
                let to = last.min(lane.height + HEIGHTS_AT_ONCE);
                store::commit_rows::<Error>(&*self.store, Durability::Synced, |txn| {
                    Ok(balances::move_lane(txn, lane.clone(), to)?)
                })?;
                lane.height = to;
            } else {
                sampled = self.compare(sampled, lane.height)?;
                asked = self.prove_contract(asked, lane.height)?;
                turned = Instant::now();
            }
        }
    }

    /// Waits until the ledger has a block after `height`, and returns its last one; `None` if a sample is `due` before.
    pub(super) fn next_of_ledger(&self, height: u64, due: Option<Instant>) -> Result<Option<u64>, End> {
        let mut blocks = self.blocks.clone();
        let next = async {
            loop {
                blocks.borrow_and_update();
                let last = LEDGER.state(&*self.store.snapshot()?)?.map_or(0, |state| state.height);
                if last > height {
                    return Ok(Some(last));
                }
                // The lane of blocks announces what it builds of the ledger too.
                blocks.changed().await.map_err(|_| End::Stopped)?;
            }
        };
        self.wait_for(async {
            match due {
                Some(due) => tokio::time::timeout_at(due, next).await.unwrap_or(Ok(None)),
                None => next.await,
            }
        })?
    }

    /// Stores what each account held before the first block, given what it held at the baseline.
    pub(super) fn commit_bases(
        &self,
        lane: &mut RichLane,
        held: &[(Account, Vec<(String, U256)>)],
        next: String,
    ) -> Result<(), Error> {
        let snapshot = self.store.snapshot()?;
        let bases = held.iter().map(|(account, held)| {
            let bases = self.bases(&*snapshot, *account, held, lane.baseline)?;
            Ok::<_, Error>((*account, bases))
        });
        let bases = bases.collect::<Result<Vec<_>, _>>()?;
        drop(snapshot);
        lane.next_accounts = next;
        store::commit_rows::<Error>(&*self.store, Durability::Synced, |txn| {
            for (account, bases) in &bases {
                balances::put_bases(txn, *account, bases)?;
            }
            balances::put_lane(txn, lane);
            Ok(())
        })
    }

    fn bases(
        &self,
        snapshot: &dyn Snapshot,
        account: Account,
        held: &[(String, U256)],
        height: u64,
    ) -> Result<Vec<(Token, Base)>, Error> {
        // One that has given all it had is not among those that the bank names.
        let moved = ledger::tokens_of(snapshot, AccountKey(account), None, Order::Asc, MAX_TOKENS)?;
        let moved = moved.into_iter().map(|TokenKey(token)| token).filter(balances::is_of_bank);
        let mut amounts: BTreeMap<Token, Base> = moved.map(|token| (token, Base::default())).collect();
        let named = held.iter().filter_map(|(denom, amount)| {
            Some((self.token_of(denom)?, Base { amount: *amount, denom: denom.clone() }))
        });
        amounts.extend(named);
        let base = |(token, base): (Token, Base)| {
            let history = History::of(snapshot, &token, Holder(Some(account)))?;
            let change = history.until(height)?.map_or_else(Change::default, |(_, change)| change);
            Ok((token, Base { amount: change.taken_from(base.amount), ..base }))
        };
        amounts.into_iter().map(base).collect()
    }

    fn token_of(&self, denom: &str) -> Option<Token> {
        match self.vm {
            Vm::Move => metadata_of_denom(denom).map(Token::Asset),
            Vm::Evm | Vm::Wasm | Vm::None => Some(Token::Denom(denom.to_owned())),
        }
    }

    /// Lists the holders of all tokens at the last height of the ledger.
    fn list_holders(&self, mut lane: RichLane) -> Result<RichLane, End> {
        let mut batch = Batch::new();
        batch.delete_range(TokenHolders::SPEC, Vec::new(), vec![u8::MAX; 64]);
        batch.delete_range(RANK, vec![TokenHolders::SPEC.tag], vec![TokenHolders::SPEC.tag + 1]);
        self.store.commit(batch, Durability::Buffered)?;
        self.next_of_ledger(lane.baseline.saturating_sub(1), None)?;
        let snapshot = self.store.snapshot()?;
        lane.height = LEDGER.state(&*snapshot)?.map_or(0, |state| state.height);
        let mut listed = Listed::new();
        // Those whose balance has changed, then the others.
        store::for_each_row(&*snapshot, BalanceTotals::SPEC, Bounds::all(), |key, row| {
            let ((token, Holder(account)), total) = store::table::decode_row::<BalanceTotals>(key, row)?;
            let Some(account) = account.filter(|_| balances::is_of_bank(&token.0)) else { return Ok(()) };
            let base = store::table::read::<Bases>(&*snapshot, &(AccountKey(account), token.clone()))?;
            let base = U256::try_from_be_slice(&base.unwrap_or_default()).unwrap_or_default();
            let amount = total.change.amount_after(base).unwrap_or_default();
            self.list(&mut listed, (token, AccountKey(account), amount))
        })?;
        store::for_each_row(&*snapshot, Bases::SPEC, Bounds::all(), |key, row| {
            let ((account, token), base) = store::table::decode_row::<Bases>(key, row)?;
            let pair = (token.clone(), Holder(Some(account.0)));
            if store::table::read::<BalanceTotals>(&*snapshot, &pair)?.is_some() {
                return Ok(());
            }
            self.list(&mut listed, (token, account, U256::try_from_be_slice(&base).unwrap_or_default()))
        })?;
        drop(snapshot);
        self.write_holders(&mut listed)?;
        store::commit_rows::<Error>(&*self.store, Durability::Synced, |txn| {
            balances::put_lane(txn, &lane);
            Ok(())
        })?;
        tracing::info!(height = lane.height, "holders of all tokens listed");
        Ok(lane)
    }

    fn list(&self, listed: &mut Listed, holder: (TokenKey, AccountKey, U256)) -> Result<(), Error> {
        listed.push(holder);
        if listed.len() >= HOLDERS_AT_ONCE { self.write_holders(listed) } else { Ok(()) }
    }

    fn write_holders(&self, listed: &mut Listed) -> Result<(), Error> {
        store::commit_rows::<Error>(&*self.store, Durability::Buffered, |txn| {
            for (token, account, amount) in listed.drain(..) {
                balances::add_token(txn, &token.0)?;
                balances::move_holder(txn, &token, account, (None, Some(amount)))?;
            }
            Ok(())
        })
    }

    /// Compares the greatest holders and the supply of the token after `sampled` with the bank at `height`, which is the
    /// lane's. Returns the token; `None` after the last one.
    fn compare(&self, sampled: Option<TokenKey>, height: u64) -> Result<Option<TokenKey>, End> {
        let Some(rest) = &self.node.rest else { return Ok(None) };
        let snapshot = self.store.snapshot()?;
        let row = match &sampled {
            Some(after) => store::table::rows_after::<TokenStates>(&*snapshot, &All, after, Order::Asc, 1),
            None => store::table::rows::<TokenStates>(&*snapshot, &All, Order::Asc, 1),
        };
        let Some((token, Message(state))) = row?.pop() else { return Ok(None) };
        if !balances::is_of_bank(&token.0) {
            return Ok(Some(token));
        }
        let len = store::ranked::len::<TokenHolders>(&*snapshot, &token)?;
        // Of stores of Move's objects, which have 32 bytes, the bank tells nothing.
        let is_in_bank = |((_, account), ()): &(([u8; 32], AccountKey), ())| {
            !matches!(token.0, Token::Asset(_)) || account.0.as_bytes().len() == 20
        };
        let mut greatest =
            store::ranked::slice::<TokenHolders>(&*snapshot, &token, len.saturating_sub(SAMPLED)..len)?;
        greatest.retain(is_in_bank);
        let denom = balances::denom_in_bank(&*snapshot, &token.0)?;
        let outside = History::of(&*snapshot, &token.0, Holder(None))?.until(height)?;
        drop(snapshot);
        let asked = self.wait_for(tokio::time::timeout(
            ANSWER_TIMEOUT,
            self.bank_says(rest, height, &denom, &greatest),
        ))?;
        let Ok(Ok((held, supply))) = asked else { return Ok(Some(token)) };
        Event::Sample.count_many(held.len() as u64);
        let differing = greatest
            .iter()
            .zip(&held)
            .find(|(((amount, _), ()), held)| U256::from_be_bytes(*amount) != **held);
        let mut new = state.clone();
        if let Some((((computed, account), ()), held)) = differing {
            if !state.drifting {
                let (account, computed) = (account.0.to_bech32(&self.prefix), U256::from_be_bytes(*computed));
                tracing::warn!(denom, account, %computed, %held, height, "balances of a denom change without events");
                Event::Drift.count();
            }
            new.drifting = true;
        }
        // What was minted less what was burned is what the outside has lost.
        let before = supply.wrapping_add(outside.map_or(U256::ZERO, |(_, Change(change))| change));
        new.proved = balances::sum_of_bases(&state) == before;
        new.incomplete = !new.proved;
        if new.incomplete && !state.incomplete {
            tracing::warn!(denom, %supply, height, "a denom has holders that are not known");
            Event::Incomplete.count();
        }
        store::commit_rows::<Error>(&*self.store, Durability::Buffered, |txn| {
            if new != state {
                txn.put::<TokenStates>(&token, &Message(new));
            }
            Ok(put_supply(txn, &token.0, supply, height)?)
        })?;
        Ok(Some(token))
    }

    /// Asks the CW20 after `after` for its supply, and adds it if movements explain all of it. Returns the contract; `None` after
    /// the last one.
    fn prove_contract(&self, after: Option<TokenKey>, height: u64) -> Result<Option<TokenKey>, End> {
        let Some(rest) = self.node.rest.as_ref().filter(|_| self.vm == Vm::Wasm) else { return Ok(None) };
        let snapshot = self.store.snapshot()?;
        let Some(token) = balances::next_unproved(&*snapshot, after.as_ref())? else { return Ok(None) };
        let TokenKey(Token::Cw20(contract)) = &token else { return Ok(None) };
        let outside = History::of(&*snapshot, &token.0, Holder(None))?.until(height)?.unwrap_or_default().1;
        drop(snapshot);
        let address = Account::from(*contract).to_bech32(&self.prefix);
        let supply =
            self.wait_for(tokio::time::timeout(ANSWER_TIMEOUT, self.supply_of(rest, height, &address)))?;
        if let Ok(Ok(Some(supply))) = supply {
            store::commit_rows::<Error>(&*self.store, Durability::Buffered, |txn| {
                if outside.amount_after(supply) == Some(U256::ZERO) {
                    balances::add_proved(txn, &token, height)?;
                }
                Ok(put_supply(txn, &token.0, supply, height)?)
            })?;
        }
        Ok(Some(token))
    }

    /// The supply of a CW20, if it is one.
    async fn supply_of(&self, rest: &Rest, height: u64, contract: &str) -> Result<Option<U256>, Error> {
        let failed = |error| Error::node(height, "token_info", error);
        let probe = self.finality.probe(height)?;
        let state = self.finality.state(height, probe.as_ref()).map_err(failed)?;
        let reply = rest.wasm_smart(contract, r#"{"token_info":{}}"#, state).await.map_err(failed)?;
        let reply: Value = serde_json::from_slice(&reply).unwrap_or_default();
        let supply = reply["data"]["total_supply"].as_str();
        Ok(supply.and_then(|digits| U256::from_str_radix(digits, 10).ok()))
    }

    /// What the bank says of holders, and of the supply.
    async fn bank_says(
        &self,
        rest: &Rest,
        height: u64,
        denom: &str,
        holders: &[(([u8; 32], AccountKey), ())],
    ) -> Result<(Vec<U256>, U256), Error> {
        let probe = self.finality.probe(height)?;
        let state = || self.finality.state(height, probe.as_ref());
        let failed = |error| Error::node(height, "balances", error);
        let mut held = Vec::with_capacity(holders.len());
        for ((_, account), ()) in holders {
            let address = account.0.to_bech32(&self.prefix);
            let balances = rest.balances(&address, state().map_err(failed)?).await.map_err(failed)?;
            let amount = balances.iter().find(|(other, _)| other == denom);
            held.push(
                amount.and_then(|(_, amount)| U256::from_str_radix(amount, 10).ok()).unwrap_or_default(),
            );
        }
        let supply = rest.supply(denom, state().map_err(failed)?).await.map_err(failed)?;
        Ok((held, supply))
    }
}
