//! Repair: corrects the findings of [`verify`] and verifies again, until nothing more can be repaired.
//!
//! Derived rows are rewritten from their sources. Rows that only the chain can supply are reindexed from the lowest
//! affected height. First the stored rows of a suspected height are compared with the chain, which decides which of two
//! contradicting rows is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use node::Node;
use schema::audit::repair;
use schema::audit::{Ground, Plan, Report};
use schema::meta::{self, BlockLane, RichLane};
use schema::nft::NftLog;
use schema::open;
use schema::rich::{self, Address, Erc20, Erc20s, Holders};
use store::{Counts, Durability, Message, Store, Table as _, Txn};
use tokio::sync::watch;

use super::chain::Chain;
use super::reindex::{self, catch_up, config};
use super::{Scope, Scratch, state, verify};
use crate::Error;

/// Nested damage takes one round per level: damage behind a row that does not decode becomes visible when the row is
/// gone.
const MAX_ROUNDS: usize = 8;

/// Result of a repair.
#[derive(Debug)]
pub struct Repaired {
    /// The first report.
    pub found: Report,
    /// The steps, in order.
    pub steps: Vec<String>,
    /// The last report.
    pub left: Report,
}

/// Repairs `store`, to which nothing else may write meanwhile. Without a node only derived rows are repaired.
pub async fn repair(
    store: &Arc<dyn Store>,
    node: Option<&Arc<Node>>,
    scope: Scope,
    scratch: &Scratch,
    stop: watch::Receiver<bool>,
) -> Result<Repaired, Error> {
    let mut steps = Vec::new();
    if schema::rollback::is_pending(&**store)? {
        schema::rollback::finish_pending(&**store)?;
        steps.push("finished what was begun and interrupted".to_owned());
    }
    let found = verify(store, node, scope, scratch).await?;
    let mut left = found.clone();
    for _ in 0..MAX_ROUNDS {
        if left.is_sound() || *stop.borrow() {
            break;
        }
        let before = steps.len();
        let round = Repair { store, node, scratch, stop: stop.clone(), steps: &mut steps };
        round.heal(&left.plan).await?;
        if steps.len() == before {
            break;
        }
        left = verify(store, node, scope, scratch).await?;
    }
    Ok(Repaired { found, steps, left })
}

struct Repair<'a> {
    store: &'a Arc<dyn Store>,
    node: Option<&'a Arc<Node>>,
    scratch: &'a Scratch,
    stop: watch::Receiver<bool>,
    steps: &'a mut Vec<String>,
}

impl Repair<'_> {
    async fn heal(self, plan: &Plan) -> Result<(), Error> {
        let names = plan.rows.iter().any(|(table, ..)| table.tag == NftLog::SPEC.tag);
        // A reindex folds the log itself; folding a log that is known to be wrong may not even end.
        let nfts = plan.nfts && (plan.from.is_none() || names);
        repair::apply(&**self.store, &Plan { nfts, ..plan.clone() })?;
        if !plan.rows.is_empty() {
            self.steps.push(format!("wrote {} rows that follow from others", plan.rows.len()));
        }
        if nfts {
            self.steps.push("made the tables of NFTs from their log".to_owned());
        }
        let Some(node) = self.node else { return Ok(()) };
        let remade = !plan.balances.is_empty() && !self.balances(node, &plan.balances).await?;
        if remade || plan.rich_list {
            self.rich_list(node).await?;
            self.steps.push("made the rich list anew".to_owned());
        } else if !plan.balances.is_empty() {
            self.steps.push(format!("asked for {} balances", plan.balances.len()));
        }
        // The log may have been the only damage: verify that first.
        if let Some(from) = plan.from.filter(|_| !names) {
            let done = reindex::reindex(self.store, node, from, self.stop).await?;
            self.steps.push(format!("indexed heights {} to {} again", done.from, done.to));
        }
        Ok(())
    }

    /// Writes the contracts' balances; false if one of them is missing.
    async fn balances(
        &self,
        node: &Arc<Node>,
        balances: &BTreeSet<(Address, Address)>,
    ) -> Result<bool, Error> {
        let mut by_account: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        for (contract, account) in balances {
            by_account.entry(*account).or_default().insert(*contract);
        }
        let snapshot = self.store.snapshot()?;
        let ground = Ground::new(&*snapshot)?;
        let chain = Chain::open(node, &ground, self.store, (self.scratch)()?).await?;
        let height = ground.rich.as_ref().map_or(0, |lane| lane.height);
        let mut answered = Vec::new();
        for (account, contracts) in by_account {
            let answers = state::held(&chain, &ground, &account, &contracts, height).await;
            if answers.len() < contracts.len() {
                return Ok(false);
            }
            answered.extend(answers.into_iter().map(|(contract, amount)| (contract, account, amount)));
        }
        drop(ground);
        drop(snapshot);
        // Holders are counted as they are now, so that each can go and come.
        store::ranked::repair::<Holders>(&**self.store)?;
        let snapshot = self.store.snapshot()?;
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for (contract, account, amount) in answered {
            let token = txn.get::<Erc20s>(&contract)?.map_or_else(Erc20::default, |Message(token)| token);
            let row = Some(amount.to_be_bytes()).filter(|_| !(token.complete && amount.is_zero()));
            rich::set_balance(&mut txn, &contract, &account, row)?;
        }
        let (batch, _pending) = txn.finish();
        self.store.commit(batch, Durability::Synced)?;
        Ok(true)
    }

    async fn rich_list(&self, node: &Arc<Node>) -> Result<(), Error> {
        let identity = open::existing(&**self.store)?;
        let (config, last) = {
            let snapshot = self.store.snapshot()?;
            let lane: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
            let known = meta::read::<RichLane>(&*snapshot)?.is_some();
            (crate::Config { rich_list: known, ..config(&*snapshot, &identity)? }, lane.height)
        };
        rich::clear(&**self.store)?;
        catch_up(self.store, node, config, last, self.stop.clone()).await?;
        Ok(())
    }
}
