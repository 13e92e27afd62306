//! Reconciliation: compares stored balances with the contracts' own, and repairs a token whose balances changed without a
//! log. The order of the comparisons is in `queue`, the check of supplies in `supply`, the search for unknown holders in
//! `search`.
//!
//! A sample of a token is its largest holders, some others, and accounts that blocks have touched. It is at the lane's
//! height, so any difference is an error. A token is repaired in chunks of its holders, between blocks: the lane does not
//! wait for all of them, and a chunk that the node does not answer in time is requested again with the next turn.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use chain::U256;
use chain::movement::Token;
use node::ContractCall;
use schema::meta::RichLane;
use schema::rich::{self, Address, Balances, Erc20s, Holders, UndoBuilder};
use schema::supply::put_supply;
use store::{Message, Order};

use super::lane::{BalanceReply, End, RichList};
use super::ledger::{hex, put_balance, put_token};
use super::queue::{Queue, Touched};
use super::search::Searched;
use super::supply;
use crate::Error;
use crate::meter::Event;

/// Greatest holders in a sample.
const GREATEST: u64 = 3;
/// Other holders in a sample, at random.
const OTHERS: u64 = 5;
/// Tokens that are sampled at once, and so about 200 balances; blocks wait meanwhile.
const SAMPLED_AT_ONCE: usize = 16;
/// Timeout of the samples, and of one chunk of a repair; blocks wait meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Holders per chunk of a repair.
const REPAIRED_AT_ONCE: usize = 100;

/// An account and its stored balance.
type Holder = (Address, U256);

/// The state of the reconciliation.
#[derive(Debug, Default)]
pub(super) struct Reconciler {
    pub(super) queue: Queue,
    searched: Searched,
    repair: Option<Repair>,
}

/// The repair of a token.
#[derive(Debug)]
struct Repair {
    contract: Address,
    /// Accounts that are queried first: they need not be known as holders.
    accounts: Vec<Address>,
    /// The last holder, in the order of addresses, whose balance was queried.
    after: Option<Address>,
    repaired: u64,
    /// The node did not answer the last chunk, so the next attempt waits for the next turn.
    stalled: bool,
}

impl Reconciler {
    /// True if the next step is due at once.
    pub(super) fn is_busy(&self) -> bool {
        match &self.repair {
            Some(repair) => !repair.stalled,
            None => self.queue.is_ready(),
        }
    }
}

/// A token's sample.
struct Sample {
    contract: Address,
    holders: Vec<Holder>,
}

impl RichList {
    /// Repairs the next chunk of a token, searches for its holders, or samples the next tokens.
    pub(super) fn reconcile(&self, reconciler: &mut Reconciler, lane: &RichLane) -> Result<(), End> {
        if reconciler.repair.is_none() {
            let next = reconciler.queue.next_repair();
            reconciler.repair = next.map(|Touched { contract, accounts }| Repair {
                contract,
                accounts,
                after: None,
                repaired: 0,
                stalled: false,
            });
        }
        let Some(repair) = reconciler.repair.take() else {
            let Reconciler { queue, searched, .. } = reconciler;
            return match queue.next_search() {
                Some(contract) => self.search((queue, searched), contract, lane),
                None => self.sample(queue, lane.height),
            };
        };
        reconciler.repair = self.repair(repair, lane.height)?;
        if reconciler.repair.as_ref().is_some_and(|repair| repair.stalled) {
            reconciler.queue.postpone();
        }
        Ok(())
    }

    /// Compares some balances of the next tokens with their contracts at `height`, the lane's height.
    fn sample(&self, queue: &mut Queue, height: u64) -> Result<(), End> {
        let snapshot = self.store.snapshot()?;
        let tokens = queue.take(&*snapshot, SAMPLED_AT_ONCE)?;
        drop(snapshot);
        let samples = tokens.iter().map(|touched| self.sample_of(touched)).collect::<Result<Vec<_>, _>>()?;
        let of = |sample: &Sample| {
            let contract = sample.contract;
            let balance = move |(account, _): &Holder| ContractCall {
                to: contract,
                data: chain::evm::abi::balance_of(*account),
            };
            let supply = ContractCall { to: contract, data: chain::evm::abi::total_supply() };
            sample.holders.iter().map(balance).chain([supply]).collect::<Vec<_>>()
        };
        let calls: Vec<_> = samples.iter().flat_map(of).collect();
        let answers = self.answers(&calls, height)?;
        if answers.len() < calls.len() {
            // Without these tokens: one of them may be the reason.
            queue.postpone();
            return Ok(());
        }
        let mut rest = answers.as_slice();
        for sample in samples {
            let (answers, after) = rest.split_at(sample.holders.len() + 1);
            rest = after;
            let Some((supply, balances)) = answers.split_last() else { continue };
            Event::Sample.count_many(balances.len() as u64);
            if let BalanceReply::AtHeight(supply) = supply {
                let token = Token::Erc20(sample.contract);
                store::commit_rows::<Error>(&*self.store, store::Durability::Buffered, |txn| {
                    Ok(put_supply(txn, &token, *supply, height)?)
                })?;
            }
            match sample.difference(balances) {
                Some((account, held)) => {
                    self.log_drift(&sample.contract, &account, held, height)?;
                    let accounts = sample.holders.iter().map(|(account, _)| *account).collect();
                    queue.repair(Touched { contract: sample.contract, accounts });
                }
                None => {
                    if let BalanceReply::AtHeight(supply) = supply
                        && supply::check(&*self.store, &sample.contract, *supply, height)?
                    {
                        queue.search(sample.contract);
                    }
                }
            }
        }
        Ok(())
    }

    /// Logs the first difference of a token. Those of a token that is known to drift are expected.
    fn log_drift(&self, contract: &Address, account: &Address, held: U256, height: u64) -> Result<(), Error> {
        let token = store::table::read::<Erc20s>(&*self.store.snapshot()?, contract)?;
        let (contract, account) = (hex(contract), hex(account));
        if token.is_some_and(|Message(token)| token.drifting) {
            tracing::debug!(contract, account, computed = %held, height, "balances of a drifting token have changed");
            return Ok(());
        }
        tracing::warn!(contract, account, computed = %held, height, "token drifts: all its holders are queried");
        Event::Drift.count();
        Ok(())
    }

    /// The greatest holders of a token, some others, and accounts that were touched.
    fn sample_of(&self, Touched { contract, accounts }: &Touched) -> Result<Sample, Error> {
        let snapshot = self.store.snapshot()?;
        let len = store::ranked::len::<Holders>(&*snapshot, contract)?;
        let mut ranks: Vec<u64> = (len.saturating_sub(GREATEST)..len).collect();
        if len > GREATEST {
            ranks.extend((0..OTHERS).map(|n| RandomState::new().hash_one(n) % (len - GREATEST)));
        }
        ranks.sort_unstable();
        ranks.dedup();
        let mut holders = Vec::new();
        for rank in ranks {
            let holder = store::ranked::slice::<Holders>(&*snapshot, contract, rank..rank + 1)?;
            holders.extend(
                holder.into_iter().map(|((amount, account), ())| (account, U256::from_be_bytes(amount))),
            );
        }
        drop(snapshot);
        holders.extend(self.holders(contract, accounts)?);
        Ok(Sample { contract: *contract, holders })
    }

    /// The stored balances of `accounts`.
    fn holders(&self, contract: &Address, accounts: &[Address]) -> Result<Vec<Holder>, Error> {
        let snapshot = self.store.snapshot()?;
        let holder = |account: &Address| {
            let held = rich::balance(&*snapshot, contract, account)?.map(U256::from_be_bytes);
            Ok((*account, held.unwrap_or_default()))
        };
        accounts.iter().map(holder).collect()
    }

    /// The amounts that `calls` return; fewer if they do not arrive in time.
    pub(super) fn answers(&self, calls: &[ContractCall], height: u64) -> Result<Vec<BalanceReply>, End> {
        let request = tokio::time::timeout(ANSWER_TIMEOUT, self.amounts(calls, height, Some(1)));
        self.wait_for(async { request.await.unwrap_or_else(|_| Ok(Vec::new())) })?.map_err(End::from)
    }

    /// Writes the contract's balances of the next holders, as of `height`, which is the lane's. Returns the rest of the
    /// repair.
    fn repair(&self, mut repair: Repair, height: u64) -> Result<Option<Repair>, End> {
        let contract = repair.contract;
        let is_first = !repair.accounts.is_empty();
        let holders = if is_first {
            self.holders(&contract, &repair.accounts)?
        } else {
            self.holders_after(&contract, repair.after)?
        };
        let call = |(account, _): &Holder| ContractCall {
            to: contract,
            data: chain::evm::abi::balance_of(*account),
        };
        let answers = self.answers(&holders.iter().map(call).collect::<Vec<_>>(), height)?;
        repair.stalled = answers.len() < holders.len();
        store::commit_rows::<Error>(&*self.store, store::Durability::Synced, |txn| {
            let mut before = UndoBuilder::default();
            let Some(Message(mut token)) = txn.get::<Erc20s>(&contract)? else { return Ok(()) };
            // Marked from the first chunk on: a repaired holder may be touched before the last one is repaired.
            token.drifting = true;
            put_token(&contract, &token, &mut before, txn)?;
            for ((account, held), answer) in holders.iter().zip(answers) {
                if let BalanceReply::AtHeight(amount) | BalanceReply::Latest(amount) = answer
                    && amount != *held
                {
                    put_balance(&contract, account, amount, token.complete, &mut before, txn)?;
                    repair.repaired += 1;
                    Event::Repaired.count();
                }
                if !is_first {
                    repair.after = Some(*account);
                }
            }
            Ok(rich::put_undo(txn, height..=height, before)?)
        })?;
        let (contract, repaired) = (hex(&contract), repair.repaired);
        if repair.stalled {
            tracing::warn!(contract, repaired, height, "repair of a token waits for the node");
        } else if is_first {
            repair.accounts.clear();
        } else if holders.len() < REPAIRED_AT_ONCE {
            tracing::info!(contract, repaired, height, "token repaired");
            return Ok(None);
        }
        Ok(Some(repair))
    }

    /// Some holders of a token, in the order of addresses, after `after`.
    fn holders_after(&self, contract: &Address, after: Option<Address>) -> Result<Vec<Holder>, Error> {
        let snapshot = self.store.snapshot()?;
        let rows = match after {
            Some(after) => {
                let after = (*contract, after);
                store::table::rows_after::<Balances>(
                    &*snapshot,
                    contract,
                    &after,
                    Order::Asc,
                    REPAIRED_AT_ONCE,
                )
            }
            None => store::table::rows::<Balances>(&*snapshot, contract, Order::Asc, REPAIRED_AT_ONCE),
        }?;
        let held = |row: Vec<u8>| rich::amount_of(&row).map(U256::from_be_bytes).unwrap_or_default();
        Ok(rows.into_iter().map(|((_, account), row)| (account, held(row))).collect())
    }
}

impl Sample {
    /// The first account whose balance differs from the contract's, with the stored balance.
    fn difference(&self, answers: &[BalanceReply]) -> Option<Holder> {
        let differs = |held: U256, answer: &BalanceReply| matches!(answer, BalanceReply::AtHeight(amount) if *amount != held);
        let mut wrong = self.holders.iter().zip(answers).filter(|((_, held), answer)| differs(*held, answer));
        wrong.next().map(|(holder, _)| *holder)
    }
}
