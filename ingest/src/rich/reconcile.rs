//! Reconciliation: samples contracts' balances against the computed ones, and repairs a token whose balances changed
//! without a transfer event.
//!
//! One token at a time, its largest holders and some others. The sample is at the lane's height, so any difference is
//! an error. A token is repaired in chunks of its holders, between blocks: the lane does not wait for all of them, and
//! a chunk that the node does not answer in time is requested again with the next sample.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use chain::U256;
use schema::meta::RichLane;
use schema::rich::{self, Address, Balances, Erc20, Erc20s, Holders, UndoBuilder};
use store::{Message, Order};

use super::lane::{BalanceAnswer, End, RichList};
use super::ledger::{hex, put_balance, put_token};
use crate::Error;
use crate::meter::Event;

/// Greatest holders in a sample.
const GREATEST: u64 = 3;
/// Other holders in a sample, at random.
const OTHERS: u64 = 5;
/// Timeout of one chunk; blocks wait meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Holders per chunk of a repair.
const REPAIRED_AT_ONCE: usize = 32;

/// An account and its computed balance.
type Holder = (Address, U256);

/// Cursor of the sampling.
#[derive(Debug, Default)]
pub(super) struct Reconciler {
    /// The token sampled last.
    last: Option<Address>,
    repair: Option<Repair>,
}

/// The repair of a token.
#[derive(Clone, Copy, Debug)]
struct Repair {
    contract: Address,
    /// The last holder, in the order of addresses, whose balance was queried.
    after: Address,
    repaired: u64,
    /// The node did not answer the last chunk, so the next attempt waits for the next sample.
    stalled: bool,
}

impl Reconciler {
    /// True if the next chunk is due at once.
    pub(super) fn is_repairing(&self) -> bool {
        self.repair.is_some_and(|repair| !repair.stalled)
    }
}

impl RichList {
    /// Repairs the next chunk of a token, or samples the next token.
    pub(super) fn reconcile(&self, reconciler: &mut Reconciler, lane: &RichLane) -> Result<(), End> {
        if reconciler.repair.is_none() {
            let Some((contract, token)) = self.next_token(reconciler.last)? else { return Ok(()) };
            reconciler.last = Some(contract);
            if token.silent || !self.drifts(&contract, lane.height)? {
                return Ok(());
            }
            // Only the zero address precedes the first holder, and it has no balance.
            let after = Address::default();
            reconciler.repair = Some(Repair { contract, after, repaired: 0, stalled: false });
        }
        if let Some(repair) = reconciler.repair.take() {
            reconciler.repair = self.repair(repair, lane.height)?;
        }
        Ok(())
    }

    /// Compares some balances of a token with its contract at `height`, the lane's height; true if one differs.
    fn drifts(&self, contract: &Address, height: u64) -> Result<bool, End> {
        let holders = self.sample(contract)?;
        let answers = self.answers(contract, &holders, height)?;
        Event::Sample.count_many(answers.len() as u64);
        let differs =
            |held: U256, answer| matches!(answer, BalanceAnswer::AtHeight(amount) if amount != held);
        let wrong = holders.iter().zip(answers).find(|((_, held), answer)| differs(*held, *answer));
        let Some(((account, computed), _)) = wrong else { return Ok(false) };
        let (contract, account) = (hex(contract), hex(account));
        tracing::warn!(contract, account, %computed, height, "token drifts: all its holders are queried");
        Event::Drift.count();
        Ok(true)
    }

    /// The token after `last` in the order of addresses, from the first again after the end.
    fn next_token(&self, last: Option<Address>) -> Result<Option<(Address, Erc20)>, Error> {
        let snapshot = self.store.snapshot()?;
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

    /// The greatest holders of a token, and some others.
    fn sample(&self, contract: &Address) -> Result<Vec<Holder>, Error> {
        let snapshot = self.store.snapshot()?;
        let len = store::ranked::len::<Holders>(&*snapshot, contract)?;
        let mut ranks: Vec<u64> = (len.saturating_sub(GREATEST)..len).collect();
        if len > GREATEST {
            ranks.extend((0..OTHERS).map(|n| RandomState::new().hash_one(n) % (len - GREATEST)));
        }
        ranks.sort_unstable();
        ranks.dedup();
        let mut sample = Vec::new();
        for rank in ranks {
            let holder = store::ranked::slice::<Holders>(&*snapshot, contract, rank..rank + 1)?;
            sample.extend(
                holder.into_iter().map(|((amount, account), ())| (account, U256::from_be_bytes(amount))),
            );
        }
        Ok(sample)
    }

    /// The contract's answers for `holders`; `None` if they do not arrive in time.
    fn answers(
        &self,
        contract: &Address,
        holders: &[Holder],
        height: u64,
    ) -> Result<Vec<BalanceAnswer>, End> {
        let accounts: Vec<_> = holders.iter().map(|(account, _)| (*contract, *account)).collect();
        let request = tokio::time::timeout(ANSWER_TIMEOUT, self.balances(&accounts, height));
        self.wait_for(async { request.await.unwrap_or_else(|_| Ok(Vec::new())) })?.map_err(End::from)
    }

    /// Writes the contract's balances of the next holders, as of `height`, which is the lane's. Returns the rest of the
    /// repair.
    fn repair(&self, mut repair: Repair, height: u64) -> Result<Option<Repair>, End> {
        let contract = repair.contract;
        let holders = self.holders_after(&contract, repair.after)?;
        let answers = self.answers(&contract, &holders, height)?;
        repair.stalled = answers.len() < holders.len();
        store::commit_rows::<Error>(&*self.store, store::Durability::Synced, |txn| {
            let mut before = UndoBuilder::default();
            let Some(Message(mut token)) = txn.get::<Erc20s>(&contract)? else { return Ok(()) };
            // Marked from the first chunk on: a repaired holder may be touched before the last one is repaired.
            token.drifting = true;
            put_token(&contract, &token, &mut before, txn)?;
            for ((account, held), answer) in holders.iter().zip(answers) {
                if let BalanceAnswer::AtHeight(amount) | BalanceAnswer::Latest(amount) = answer
                    && amount != *held
                {
                    put_balance(&contract, account, amount, token.complete, &mut before, txn)?;
                    repair.repaired += 1;
                    Event::Repaired.count();
                }
                repair.after = *account;
            }
            Ok(rich::put_undo(txn, height..=height, before)?)
        })?;
        let (contract, repaired) = (hex(&contract), repair.repaired);
        if repair.stalled {
            tracing::warn!(contract, repaired, height, "repair of a token waits for the node");
        } else if holders.len() < REPAIRED_AT_ONCE {
            tracing::warn!(contract, repaired, height, "token repaired");
            return Ok(None);
        }
        Ok(Some(repair))
    }

    /// Some holders of a token, in the order of addresses, after `after`.
    fn holders_after(&self, contract: &Address, after: Address) -> Result<Vec<Holder>, Error> {
        let snapshot = self.store.snapshot()?;
        let after = (*contract, after);
        let rows =
            store::table::rows_after::<Balances>(&*snapshot, contract, &after, Order::Asc, REPAIRED_AT_ONCE)?;
        let held = |row: Vec<u8>| rich::amount_of(&row).map(U256::from_be_bytes).unwrap_or_default();
        Ok(rows.into_iter().map(|((_, account), row)| (account, held(row))).collect())
    }
}
