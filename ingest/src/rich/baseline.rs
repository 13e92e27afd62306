//! Baseline of the rich list: the bank balances of every account at its first height.
//!
//! Fetched page by page, one commit per page, so that an interrupted baseline is resumed.

use std::collections::BTreeMap;
use std::time::Duration;

use chain::{Account, U256};
use futures_util::StreamExt as _;
use node::Rest;
use node::retry::{self, Backoff};
use schema::meta::{self, RichLane};
use schema::rich::{self, Address, Before, Denoms, Erc20};
use store::key::Text;
use store::{Counts, Durability, Txn};
use tokio::time::Instant;

use super::{AT_ONCE, Worker, ledger};
use crate::Error;

/// Pause before a later baseline is tried, if the node has pruned the state of this one.
const LATER: Duration = Duration::from_secs(5);

/// Minimum time between two log lines about a later baseline.
const REMINDER: Duration = Duration::from_mins(1);

/// The key of the page after the last one.
const DONE: &str = "";
/// The key of the first page; no page key of the node equals it.
const FIRST: &str = "first";

impl Worker {
    /// The lane after its baseline; `None` on stop.
    pub(super) fn baseline(&mut self) -> Result<Option<RichLane>, Error> {
        let stored = meta::read::<RichLane>(&*self.list.store.snapshot()?)?;
        if let Some(lane) = stored.clone().filter(|lane| lane.next_accounts == DONE) {
            return Ok(Some(lane));
        }
        let begun = RichLane { height: 0, baseline: self.list.start_height, next_accounts: FIRST.to_owned() };
        let mut lane = stored.unwrap_or(begun);
        let mut logged: Option<Instant> = None;
        loop {
            let mut blocks = self.list.blocks.clone();
            let (baseline, reached) = (lane.baseline, blocks.wait_for(|mark| mark.height >= lane.baseline));
            let reached = async { reached.await.is_ok() };
            if self.wait_for(reached) != Some(true) {
                return Ok(None);
            }
            let Some(page) = self.page(&lane) else { return Ok(None) };
            match page {
                Ok(page) => self.commit(&mut lane, page)?,
                Err(Error::Node { source, .. }) if matches!(*source, node::Error::Pruned { .. }) => {
                    // The index may be far behind the first height whose state the node still has.
                    if self.wait_for(tokio::time::sleep(LATER)).is_none() {
                        return Ok(None);
                    }
                    let latest = self.list.blocks.borrow().height;
                    if latest <= baseline {
                        return Err(Error::Setup(
                            "the node has no state even of its last height: the rich list has nothing to begin with",
                        ));
                    }
                    if logged.is_none_or(|at| at.elapsed() >= REMINDER) {
                        logged = Some(Instant::now());
                        tracing::warn!(
                            baseline,
                            latest,
                            "the node has pruned the state of the baseline: it is taken at a later height"
                        );
                    }
                    rich::clear(&*self.list.store)?;
                    lane = RichLane { height: 0, baseline: latest, next_accounts: FIRST.to_owned() };
                }
                Err(Error::Node { source, .. })
                    if matches!(*source, node::Error::Refused { .. } | node::Error::MethodMissing { .. }) =>
                {
                    // An empty baseline is never wrong, even if the failure passes: an account is then queried when it
                    // is touched. Earlier pages are dropped, because a token with some of its holders must not count as
                    // complete.
                    tracing::warn!(baseline, error = %source, "the node serves no account list: the rich list starts empty");
                    rich::clear(&*self.list.store)?;
                    self.commit(&mut lane, Page::default())?;
                }
                Err(error) => return Err(error),
            }
            if lane.next_accounts == DONE {
                tracing::info!(height = lane.height, "the rich list has its baseline");
                return Ok(Some(lane));
            }
        }
    }

    /// The next page of accounts with their balances, and the key of the page after it.
    fn page(&self, lane: &RichLane) -> Option<Result<Page, Error>> {
        let Some(rest) = &self.list.node.rest else {
            return Some(Err(Error::Setup("the rich list needs a REST address (`node.rest`) to begin with")));
        };
        let key = Some(lane.next_accounts.as_str()).filter(|key| *key != FIRST);
        self.wait_for(self.ask_page(rest, lane.baseline, key))
    }

    async fn ask_page(&self, rest: &Rest, height: u64, key: Option<&str>) -> Result<Page, Error> {
        let node_error = |what| move |error| Error::node(height, what, error);
        let settled = &self.list.settled;
        let probe = settled.probe(height)?;
        let state = || settled.state(height, probe.as_ref());
        let ask = || async { rest.accounts(state()?, key).await };
        let accounts = retry::until(Backoff::default(), "accounts", ask);
        let accounts = accounts.await.map_err(node_error("accounts"))?;
        let asked = futures_util::stream::iter(&accounts.addresses).map(|address| async move {
            let ask = || async { rest.balances(address, state()?).await };
            let held = retry::until(Backoff::default(), "balances", ask).await;
            Ok::<_, Error>((address, held.map_err(node_error("balances"))?))
        });
        let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
        let mut page = Page { next: accounts.next.unwrap_or_else(|| DONE.to_owned()), ..Page::default() };
        for answer in answers {
            let (address, balances) = answer?;
            // A longer address holds its balance under a short one, which is an account too (indexing.md §10.2).
            let account = Account::from_bech32(address, &self.list.prefix);
            let account = account.and_then(|account| Address::try_from(account.as_bytes()).ok());
            for (denom, amount) in balances {
                let amount = U256::from_str_radix(&amount, 10);
                let (Some(account), Ok(amount)) = (account, amount) else { continue };
                // Here and not while writing, so that a stop leaves no half page.
                let unknown = match page.contracts.get(&denom) {
                    Some(_) => None,
                    None => Some((denom.clone(), self.contract(rest, &denom).await?)),
                };
                page.contracts.extend(unknown);
                page.held.push((denom, account, amount));
            }
        }
        Ok(page)
    }

    fn commit(&self, lane: &mut RichLane, page: Page) -> Result<(), Error> {
        let snapshot = self.list.store.snapshot()?;
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        // No undo: a rewind never goes below the baseline.
        let mut before = Before::default();
        for (denom, contract) in &page.contracts {
            let Some(contract) = contract else { continue };
            ledger::put_token(
                contract,
                &Erc20 { complete: true, ..Erc20::default() },
                &mut before,
                &mut txn,
            )?;
            ledger::register_denom(denom, contract, &mut before, &mut txn)?;
        }
        for (denom, account, amount) in &page.held {
            let Some(Some(contract)) = page.contracts.get(denom) else { continue };
            ledger::put_balance(contract, account, *amount, true, &mut before, &mut txn)?;
        }
        lane.next_accounts = page.next;
        if lane.next_accounts == DONE {
            lane.height = lane.baseline;
        }
        meta::put(&mut txn, lane);
        let (batch, _pending) = txn.finish();
        drop(snapshot);
        Ok(self.list.store.commit(batch, Durability::Synced)?)
    }

    /// The contract of a bank denom, queried if no earlier page had it; `None` if it has none.
    async fn contract(&self, rest: &Rest, denom: &str) -> Result<Option<Address>, Error> {
        if let Some(contract) = evm_denom(denom) {
            return Ok(Some(contract));
        }
        let key = Text(denom.to_owned());
        if let Some(known) = store::table::read::<Denoms>(&*self.list.store.snapshot()?, &key)? {
            return Ok(Address::try_from(known).ok());
        }
        let asked =
            retry::until(Backoff::default(), "contract of a denom", || rest.erc20_of_denom(denom)).await;
        asked.map_err(|error| Error::node(0, "contract of a denom", error))
    }
}

/// A page of balances.
#[derive(Default)]
struct Page {
    held: Vec<(String, Address, U256)>,
    /// The contracts of the denoms; none where a denom has none.
    contracts: BTreeMap<String, Option<Address>>,
    next: String,
}

/// The contract in `evm/<40 hex digits>`.
fn evm_denom(denom: &str) -> Option<Address> {
    let digits = denom.strip_prefix("evm/").filter(|digits| digits.len() == 40)?;
    Address::try_from(Account::from_hex_literal(&format!("0x{digits}"))?.as_bytes()).ok()
}
