//! Baseline of the rich list: the bank balances of every account at its first height.
//!
//! Fetched page by page, one commit per page, so that an interrupted baseline is resumed.

use std::collections::BTreeMap;
use std::time::Duration;

use chain::evm::coin;
use chain::{Account, U256, Vm};
use futures_util::StreamExt as _;
use node::Rest;
use schema::meta::{self, RichLane};
use schema::rich::{self, Address, Denoms, Erc20, UndoBuilder};
use store::key::Text;
use tokio::time::Instant;

use super::lane::{CONCURRENT_REQUESTS, End, RichList};
use super::ledger;
use crate::Error;
use crate::retry::retry_until;

/// Pause before a later baseline is attempted, if the node has pruned the state of this one.
const LATER: Duration = Duration::from_secs(5);

/// Minimum time between two log lines about a later baseline.
const REMINDER: Duration = Duration::from_mins(1);

/// The key of the page after the last one.
const DONE: &str = "";
/// The key of the first page; no page key of the node equals it.
const FIRST: &str = "first";

impl RichList {
    /// The lane after its baseline.
    pub(super) fn baseline(&self) -> Result<RichLane, End> {
        let begun = |baseline| RichLane { height: 0, baseline, next_accounts: FIRST.to_owned() };
        let stored = meta::read::<RichLane>(&*self.store.snapshot()?)?;
        let mut lane = match stored {
            Some(lane) if lane.next_accounts == DONE => return Ok(lane),
            Some(lane) => lane,
            None => begun(self.start_height),
        };
        let Some(rest) = &self.node.rest else {
            return Err(Error::Setup("the rich list needs a REST address (`node.rest`) to begin with").into());
        };
        let mut logged: Option<Instant> = None;
        while lane.next_accounts != DONE {
            let (baseline, mut blocks) = (lane.baseline, self.blocks.clone());
            let reached = blocks.wait_for(|progress| progress.height >= baseline);
            self.wait_for(async { reached.await.map(drop) })?.map_err(|_| End::Stopped)?;
            if self.vm == Vm::Evm
                && self.coins.is_none()
                && !self.workers.rules().flavour.denoms_are_contracts()
            {
                // No balance of the bank is one of a contract, and a contract that is older is asked.
                self.commit(&mut lane, ContractsPage::default())?;
                break;
            }
            if self.vm != Vm::Evm {
                self.next_of_ledger(baseline.saturating_sub(1), None)?;
            }
            let key = Some(lane.next_accounts.as_str()).filter(|key| *key != FIRST);
            match self.wait_for(self.page(rest, baseline, key))? {
                Ok(Page::Contracts(page)) => self.commit(&mut lane, page)?,
                Ok(Page::Bank(held, next)) => self.commit_bases(&mut lane, &held, next)?,
                Err(Error::Node { source, .. }) if matches!(*source, node::Error::Pruned { .. }) => {
                    // The index may be far below the first height whose state the node still has.
                    self.wait_for(tokio::time::sleep(LATER))?;
                    let latest = self.blocks.borrow().height;
                    if latest <= baseline {
                        let reason =
                            "the node has no state even of its last height, so the rich list cannot begin";
                        return Err(Error::Setup(reason).into());
                    }
                    if logged.is_none_or(|at| at.elapsed() >= REMINDER) {
                        logged = Some(Instant::now());
                        tracing::warn!(baseline, latest, "baseline state pruned, trying a later height");
                    }
                    if self.vm == Vm::Evm {
                        rich::clear(&*self.store)?;
                        lane = begun(latest);
                    } else {
                        // What an account held before the first block follows from any height.
                        lane.baseline = latest;
                    }
                }
                Err(Error::Node { source, .. })
                    if matches!(*source, node::Error::Refused { .. } | node::Error::MethodMissing { .. }) =>
                {
                    // An empty baseline is never wrong, even if the failure is transient: an account is then queried
                    // when it is touched. Earlier pages are dropped, because a token with some of its holders must not
                    // count as complete.
                    tracing::warn!(baseline, error = %source, "no account list, the rich list starts empty");
                    if self.vm == Vm::Evm {
                        rich::clear(&*self.store)?;
                        self.commit(&mut lane, ContractsPage::default())?;
                    } else {
                        return Err(Error::node(baseline, "accounts", *source).into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        tracing::info!(height = lane.height, "rich list baseline complete");
        Ok(lane)
    }

    /// The page of accounts with `key`, with their balances, and the key of the page after it.
    async fn page(&self, rest: &Rest, height: u64, key: Option<&str>) -> Result<Page, Error> {
        let finality = &self.finality;
        let probe = finality.probe(height)?;
        let state = || finality.state(height, probe.as_ref());
        let request = || async { rest.accounts(state()?, key).await };
        let accounts = retry_until(height, "accounts", request).await?;
        let requests = futures_util::stream::iter(&accounts.addresses).map(|address| async move {
            let request = || async { rest.balances(address, state()?).await };
            Ok::<_, Error>((address, retry_until(height, "balances", request).await?))
        });
        let answers: Vec<_> = requests.buffered(CONCURRENT_REQUESTS).collect().await;
        let next = accounts.next.unwrap_or_else(|| DONE.to_owned());
        let mut held = Vec::new();
        for answer in answers {
            let (address, balances) = answer?;
            let Some(account) = Account::from_bech32(address, &self.prefix) else { continue };
            let number =
                |(denom, amount): (String, String)| Some((denom, U256::from_str_radix(&amount, 10).ok()?));
            held.push((account, balances.into_iter().filter_map(number).collect()));
        }
        if self.vm == Vm::Evm {
            return Ok(Page::Contracts(self.page_of_contracts(rest, height, held, next).await?));
        }
        Ok(Page::Bank(held, next))
    }

    async fn page_of_contracts(
        &self,
        rest: &Rest,
        height: u64,
        held: Vec<(Account, Vec<(String, U256)>)>,
        next: String,
    ) -> Result<ContractsPage, Error> {
        let mut page = ContractsPage { next, ..ContractsPage::default() };
        for (account, balances) in held {
            // A longer address holds its balance under a short one, which is also an account.
            let Ok(account) = Address::try_from(account.as_bytes()) else { continue };
            for (denom, amount) in balances {
                // Checked here and not while writing, so that a stop leaves no partial page.
                let unknown = match page.contracts.get(&denom) {
                    Some(_) => None,
                    None => Some((denom.clone(), self.contract(rest, height, &denom).await?)),
                };
                page.contracts.extend(unknown);
                page.held.push((denom, account, amount));
            }
        }
        Ok(page)
    }

    fn commit(&self, lane: &mut RichLane, page: ContractsPage) -> Result<(), Error> {
        lane.next_accounts = page.next;
        if lane.next_accounts == DONE {
            lane.height = lane.baseline;
        }
        store::commit_rows::<Error>(&*self.store, store::Durability::Synced, |txn| {
            // No undo: a rewind never goes below the baseline.
            let before = &mut UndoBuilder::default();
            for (denom, contract) in &page.contracts {
                let Some(contract) = contract else { continue };
                ledger::put_token(
                    contract,
                    &Erc20 { complete: true, coin: self.coins.is_some(), ..Erc20::default() },
                    before,
                    txn,
                )?;
                ledger::put_denom(denom, contract, before, txn)?;
            }
            for (denom, account, amount) in &page.held {
                let Some(Some(contract)) = page.contracts.get(denom) else { continue };
                ledger::put_balance(contract, account, *amount, true, before, txn)?;
            }
            meta::put(txn, lane);
            Ok(())
        })
    }

    /// The contract of a bank denom, queried if no earlier page had it; `None` if the denom has no contract.
    async fn contract(&self, rest: &Rest, height: u64, denom: &str) -> Result<Option<Address>, Error> {
        if let Some(native) = self.native() {
            return Ok(coin::contract_of(denom, native));
        }
        if let Some(contract) = evm_denom(denom) {
            return Ok(Some(contract));
        }
        let key = Text(denom.to_owned());
        if let Some(contract) = store::table::read::<Denoms>(&*self.store.snapshot()?, &key)? {
            return Ok(Address::try_from(contract).ok());
        }
        retry_until(height, "contract of a denom", || rest.erc20_of_denom(denom)).await
    }
}

/// A page of balances, and the key of the next one.
enum Page {
    Contracts(ContractsPage),
    Bank(Vec<(Account, Vec<(String, U256)>)>, String),
}

/// Balances in contracts.
#[derive(Default)]
struct ContractsPage {
    held: Vec<(String, Address, U256)>,
    /// The contracts of the denoms; `None` for a denom without one.
    contracts: BTreeMap<String, Option<Address>>,
    next: String,
}

/// The contract in `evm/<40 hex digits>`.
fn evm_denom(denom: &str) -> Option<Address> {
    let digits = denom.strip_prefix("evm/").filter(|digits| digits.len() == 40)?;
    Address::try_from(Account::from_hex_literal(&format!("0x{digits}"))?.as_bytes()).ok()
}
