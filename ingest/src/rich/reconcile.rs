//! Samples what contracts say against what was added up, and heals a token whose balances changed without a transfer.
//!
//! One token at a time, its greatest holders and some others; the sample is at the lane's height, so a difference is a
//! difference.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use chain::U256;
use futures_util::StreamExt as _;
use schema::meta::RichLane;
use schema::rich::{self, Address, Before, Erc20, Erc20s, Holders};
use store::{Counts, Durability, Message, Order, Txn};

use super::ledger::{hex, put_balance, put_token};
use super::{AT_ONCE, Told, Worker};
use crate::Error;
use crate::meter::Event;

/// Greatest holders in a sample.
const GREATEST: u64 = 3;
/// Other holders in a sample, at random.
const OTHERS: u64 = 5;
/// The node gets this long for some balances; blocks wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// Holders that are asked about and written together while a token is healed.
const HEALED_AT_ONCE: u64 = 256;

/// Where the sampling is.
#[derive(Debug, Default)]
pub(super) struct Reconciler {
    /// The token sampled last.
    last: Option<Address>,
}

impl Worker {
    /// Samples the next token, and heals it if it drifts; `None` if the lane is to stop.
    pub(super) fn sample(&self, reconciler: &mut Reconciler, lane: &RichLane) -> Result<Option<()>, Error> {
        let Some((contract, mut token)) = self.next_token(reconciler.last)? else { return Ok(Some(())) };
        reconciler.last = Some(contract);
        if token.silent {
            return Ok(Some(()));
        }
        let Some(told) = self.ask_all(&contract, self.chosen(&contract)?, lane.height)? else {
            return Ok(None);
        };
        Event::Sample.count_many(told.len() as u64);
        let wrong = told.iter().find(|(_, held, told)| matches!(told, Told::Exactly(told) if told != held));
        let Some((account, held, _)) = wrong else { return Ok(Some(())) };
        let (token_name, account) = (hex(&contract), hex(account));
        tracing::warn!(
            contract = token_name, account, added_up = %held, height = lane.height,
            "balances of a token drift: all its holders are asked about, and from now on whoever is touched"
        );
        Event::Drift.count();
        token.drifting = true;
        self.heal(&contract, &token, lane.height)
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

    /// Some holders and what they hold.
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

    /// What the contract says about each of `holders`, or nothing if that takes too long; `None` if the lane is to stop.
    #[expect(clippy::type_complexity, reason = "account, what was added up, what is said")]
    fn ask_all(
        &self,
        contract: &Address,
        holders: Vec<(Address, U256)>,
        height: u64,
    ) -> Result<Option<Vec<(Address, U256, Told)>>, Error> {
        let asked = futures_util::stream::iter(holders).map(|(account, held)| async move {
            Ok::<_, Error>((account, held, self.balance(contract, &account, height).await?))
        });
        let told = tokio::time::timeout(PATIENCE, asked.buffered(AT_ONCE).collect::<Vec<_>>());
        match self.wait_for(told) {
            None => Ok(None),
            Some(Ok(told)) => told.into_iter().collect::<Result<_, _>>().map(Some),
            Some(Err(_)) => {
                tracing::debug!(contract = hex(contract), height, "the node does not say what is held");
                Ok(Some(Vec::new()))
            }
        }
    }

    /// Writes what the contract says about every holder, as of `height`, which is the lane's.
    fn heal(&self, contract: &Address, token: &Erc20, height: u64) -> Result<Option<()>, Error> {
        let holders = self.holders(contract)?;
        let mut healed: u64 = 0;
        for some in holders.chunks(usize::try_from(HEALED_AT_ONCE).unwrap_or(usize::MAX)) {
            let Some(told) = self.ask_all(contract, some.to_vec(), height)? else { return Ok(None) };
            if told.is_empty() {
                tracing::warn!(
                    contract = hex(contract),
                    healed,
                    height,
                    "the token is not healed: it is sampled again"
                );
                return Ok(Some(()));
            }
            let snapshot = self.list.store.snapshot()?;
            let mut counts = Counts::new(1);
            let mut txn = Txn::new(&*snapshot, &mut counts);
            let mut before = Before::default();
            put_token(contract, token, &mut before, &mut txn)?;
            for (account, held, told) in told {
                if let Told::Exactly(amount) | Told::Latest(amount) = told
                    && amount != held
                {
                    put_balance(contract, &account, amount, token.complete, &mut before, &mut txn)?;
                    healed += 1;
                }
            }
            rich::put_undo(&mut txn, height, before)?;
            let (batch, _pending) = txn.finish();
            drop(snapshot);
            self.list.store.commit(batch, Durability::Synced)?;
        }
        Event::Healed.count_many(healed);
        tracing::warn!(contract = hex(contract), healed, height, "the token is healed");
        Ok(Some(()))
    }

    /// Every holder of a token with what he holds. Memory grows with them: 52 bytes each.
    fn holders(&self, contract: &Address) -> Result<Vec<(Address, U256)>, Error> {
        let snapshot = self.list.store.snapshot()?;
        let len = store::ranked::len::<Holders>(&*snapshot, contract)?;
        let mut holders = Vec::new();
        let mut start = 0;
        while start < len {
            let end = (start + HEALED_AT_ONCE).min(len);
            let some = store::ranked::slice::<Holders>(&*snapshot, contract, start..end)?;
            holders.extend(
                some.into_iter().map(|((amount, account), ())| (account, U256::from_be_bytes(amount))),
            );
            start = end;
        }
        Ok(holders)
    }
}
