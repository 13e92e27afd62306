//! Reconciliation: samples contracts' balances against the computed ones, and repairs a token whose balances changed
//! without a transfer event.
//!
//! One token at a time, its largest holders and some others. The sample is at the lane's height, so any difference is
//! an error. A token is repaired in chunks of its holders, between blocks: the lane does not wait for all of them, and
//! a chunk that the node does not answer in time is retried later.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use chain::U256;
use futures_util::StreamExt as _;
use schema::meta::RichLane;
use schema::rich::{self, Address, Balances, Before, Erc20, Erc20s, Holders};
use store::{Counts, Durability, Message, Order, Txn};

use super::ledger::{hex, put_balance, put_token};
use super::{AT_ONCE, BalanceAnswer, Worker};
use crate::Error;
use crate::meter::Event;

/// Greatest holders in a sample.
const GREATEST: u64 = 3;
/// Other holders in a sample, at random.
const OTHERS: u64 = 5;
/// Timeout of one chunk; blocks wait meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Holders per chunk of a repair.
const HEALED_AT_ONCE: usize = 32;

/// Cursor of the sampling.
#[derive(Debug, Default)]
pub(super) struct Reconciler {
    /// The token sampled last.
    last: Option<Address>,
    /// The token under repair.
    healing: Option<Healing>,
}

/// A token that is being healed.
#[derive(Debug)]
struct Healing {
    contract: Address,
    /// The last holder, in the order of addresses, whose balance was queried.
    after: Option<Address>,
    healed: u64,
    /// The node did not answer the last chunk, so the next attempt waits for the next sample.
    stalled: bool,
}

impl Reconciler {
    /// Whether the next chunk is due at once.
    pub(super) fn is_healing(&self) -> bool {
        self.healing.as_ref().is_some_and(|healing| !healing.stalled)
    }
}

impl Worker {
    /// Repairs the next chunk of a token, or samples the next token; `None` on stop.
    pub(super) fn sample(&self, reconciler: &mut Reconciler, lane: &RichLane) -> Result<Option<()>, Error> {
        if let Some(healing) = reconciler.healing.take() {
            return self.heal(healing, reconciler, lane.height);
        }
        let Some((contract, token)) = self.next_token(reconciler.last)? else { return Ok(Some(())) };
        reconciler.last = Some(contract);
        if token.silent {
            return Ok(Some(()));
        }
        let Some(answers) = self.ask_all(&contract, self.chosen(&contract)?, lane.height)? else {
            return Ok(None);
        };
        Event::Sample.count_many(answers.len() as u64);
        let wrong = answers
            .iter()
            .find(|(_, held, answer)| matches!(answer, BalanceAnswer::AtHeight(amount) if amount != held));
        let Some((account, held, _)) = wrong else { return Ok(Some(())) };
        let (token_name, account) = (hex(&contract), hex(account));
        tracing::warn!(
            contract = token_name, account, added_up = %held, height = lane.height,
            "balances of a token drift: all its holders are queried, and touched accounts from now on"
        );
        Event::Drift.count();
        let healing = Healing { contract, after: None, healed: 0, stalled: false };
        self.heal(healing, reconciler, lane.height)
    }

    /// The token after `last` in the order of addresses, from the first again after the end.
    fn next_token(&self, last: Option<Address>) -> Result<Option<(Address, Erc20)>, Error> {
        let snapshot = self.list.store.snapshot()?;
        let mut rows = match last {
            Some(last) => {
                store::table::rows_after::<Erc20s>(&*snapshot, &store::key::All, &last, Order::Asc, 1)?
            }
            None => Vec::new(),
        };
        if rows.is_empty() {
            rows = store::table::rows::<Erc20s>(&*snapshot, &store::key::All, Order::Asc, 1)?;
        }
        Ok(rows.pop().map(|(contract, Message(token))| (contract, token)))
    }

    /// Some holders and their computed balances.
    fn chosen(&self, contract: &Address) -> Result<Vec<(Address, U256)>, Error> {
        let snapshot = self.list.store.snapshot()?;
        let len = store::ranked::len::<Holders>(&*snapshot, contract)?;
        let mut ranks: Vec<u64> = (len.saturating_sub(GREATEST)..len).collect();
        if len > GREATEST {
            ranks.extend((0..OTHERS).map(|n| RandomState::new().hash_one(n) % (len - GREATEST)));
        }
        ranks.sort_unstable();
        ranks.dedup();
        let mut chosen = Vec::new();
        for rank in ranks {
            let holder = store::ranked::slice::<Holders>(&*snapshot, contract, rank..rank + 1)?;
            chosen.extend(
                holder.into_iter().map(|((amount, account), ())| (account, U256::from_be_bytes(amount))),
            );
        }
        Ok(chosen)
    }

    /// The contract's answers for `holders`, or for the first of them if the timeout passes; `None` on stop.
    #[expect(clippy::type_complexity, reason = "account, computed balance, answer")]
    fn ask_all(
        &self,
        contract: &Address,
        holders: Vec<(Address, U256)>,
        height: u64,
    ) -> Result<Option<Vec<(Address, U256, BalanceAnswer)>>, Error> {
        let asked = futures_util::stream::iter(holders).map(|(account, held)| async move {
            Ok::<_, Error>((account, held, self.balance(contract, &account, height).await?))
        });
        let in_time = async {
            asked.buffered(AT_ONCE).take_until(tokio::time::sleep(ANSWER_TIMEOUT)).collect::<Vec<_>>().await
        };
        self.wait_for(in_time).map(|answers| answers.into_iter().collect()).transpose()
    }

    /// Writes the contract's balances of the next holders, as of `height`, which is the lane's.
    fn heal(
        &self,
        mut healing: Healing,
        reconciler: &mut Reconciler,
        height: u64,
    ) -> Result<Option<()>, Error> {
        let contract = healing.contract;
        let holders = self.holders_after(&contract, healing.after)?;
        let asked = holders.len();
        let Some(answers) = self.ask_all(&contract, holders, height)? else { return Ok(None) };
        healing.stalled = answers.is_empty() && asked > 0;
        let done = answers.len() == asked && asked < HEALED_AT_ONCE;
        let snapshot = self.list.store.snapshot()?;
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let mut before = Before::default();
        let Some(Message(mut token)) = txn.get::<Erc20s>(&contract)? else { return Ok(Some(())) };
        // From the first chunk on: a repaired holder may be touched before the last one is repaired.
        token.drifting = true;
        put_token(&contract, &token, &mut before, &mut txn)?;
        for (account, held, answer) in answers {
            if let BalanceAnswer::AtHeight(amount) | BalanceAnswer::Latest(amount) = answer
                && amount != held
            {
                put_balance(&contract, &account, amount, token.complete, &mut before, &mut txn)?;
                healing.healed += 1;
                Event::Healed.count();
            }
            healing.after = Some(account);
        }
        rich::put_undo(&mut txn, height, before)?;
        let (batch, _pending) = txn.finish();
        drop(snapshot);
        self.list.store.commit(batch, Durability::Synced)?;
        let healed = healing.healed;
        if done {
            tracing::warn!(contract = hex(&contract), healed, height, "the token is healed");
        } else {
            if healing.stalled {
                tracing::warn!(
                    contract = hex(&contract),
                    healed,
                    height,
                    "balances for healing a token are not answered"
                );
            }
            reconciler.healing = Some(healing);
        }
        Ok(Some(()))
    }

    /// Some holders of a token with their balances, in the order of addresses, after `after`.
    fn holders_after(
        &self,
        contract: &Address,
        after: Option<Address>,
    ) -> Result<Vec<(Address, U256)>, Error> {
        let snapshot = self.list.store.snapshot()?;
        // Only the zero address comes before the first, and it holds nothing.
        let after = (*contract, after.unwrap_or_default());
        let rows =
            store::table::rows_after::<Balances>(&*snapshot, contract, &after, Order::Asc, HEALED_AT_ONCE)?;
        let held = |row: Vec<u8>| rich::amount_of(&row).map(U256::from_be_bytes).unwrap_or_default();
        Ok(rows.into_iter().map(|((_, account), row)| (account, held(row))).collect())
    }
}
