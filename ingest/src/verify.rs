//! Verification: compares a database with itself and with a second index of the chain, and repairs it.
//!
//! ```text
//! database ──▶ schema::audit ──▶ report ◀── every row compared ◀── second index ◀── node
//!                                                │
//! database ◀── rows that differ ◀────────────────┘ repair
//! ```
//!
//! | module | one job |
//! |---|---|
//! | `second_index` | indexes heights again into a scratch store, and compares |
//! | `balances` | settles balances that differ by the contracts' replies |
//! | `held` | compares balances after random blocks with the state of a node |
//! | `owners` | compares owners of tokens with the state of their contracts |
//! | [`reindex`] | removes heights from the database and indexes them again |
//!
//! # Invariants
//! * Verification writes to scratch stores only.
//! * A repair takes rows of the chain from an index of the whole chain, never from a part that rests on stored rows.

mod balances;
mod held;
mod owners;
pub mod reindex;
mod second_index;

use std::sync::Arc;

use node::Node;
use schema::audit::{self, AuditContext, Report, derived};
use schema::meta::{self, BlockLane};
use schema::rich;
use store::{BulkWriter, CopyOnWrite, Durability, Store};
use tokio::sync::watch;

pub use self::reindex::{Reindex, Reindexed};
pub use self::second_index::{Scope, Scratch};

use self::second_index::{SecondIndex, is_of_rich_list};
use crate::Error;

/// Verifies `store` by itself, and if there is a node, against the chain.
pub async fn verify(
    store: &Arc<dyn Store>,
    node: Option<&Arc<Node>>,
    scope: Scope,
    scratch: &Scratch,
) -> Result<Report, Error> {
    let (mut report, _copy) = check(store, scratch)?;
    let Some(node) = node else { return Ok(report) };
    let (_sender, stop) = watch::channel(false);
    if let Some(index) = SecondIndex::make(store, node, scope, scratch, stop, &mut report).await? {
        index.compare(store, &mut report)?;
        owners::compare(store, node, &mut report).await?;
        held::compare(store, node, &mut report).await?;
    }
    Ok(report)
}

/// The checks that need no node, and the copy in which they have rebuilt the derived tables.
fn check(store: &Arc<dyn Store>, scratch: &Scratch) -> Result<(Report, CopyOnWrite), Error> {
    let (snapshot, copy) = (store.snapshot()?, CopyOnWrite::new(Arc::clone(store), scratch()?));
    let mut report = Report::default();
    audit::audit(&AuditContext::new(&*snapshot)?, &copy, &mut report)?;
    Ok((report, copy))
}

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

/// Repairs `store`, to which nothing else may write meanwhile: with a node by the rows of a second index of the whole
/// chain, without by rows that follow from others, if nothing else is wrong.
pub async fn repair(
    store: &Arc<dyn Store>,
    node: Option<&Arc<Node>>,
    scratch: &Scratch,
    stop: watch::Receiver<bool>,
) -> Result<Repaired, Error> {
    let mut steps = Vec::new();
    let (mut found, mut copy) = check(store, scratch)?;
    let mut index = None;
    if let Some(node) = node {
        index = SecondIndex::make(store, node, Scope::All, scratch, stop.clone(), &mut found).await?;
    }
    if let Some(index) = &index {
        index.compare(store, &mut found)?;
    }
    let mut left = found.clone();
    if found.is_sound() {
        return Ok(Repaired { found, steps, left });
    }
    if let Some(index) = &index {
        let mut writer = BulkWriter::new(&**store);
        let mut rows = 0;
        index.each_difference(store, |spec, key, _, expected| {
            rows += 1;
            match expected {
                Some(value) => writer.put(spec, key.to_vec(), value.to_vec()),
                None => writer.delete(spec, key.to_vec()),
            }
        })?;
        writer.finish(Durability::Synced)?;
        if rows > 0 {
            steps.push(format!("wrote {rows} rows of a new index"));
        }
        (left, copy) = check(store, scratch)?;
    }
    if !left.is_sound() && left.is_derivable() {
        let rows = derived::write(&**store, &copy)?;
        steps.push(format!("wrote {rows} rows that follow from others"));
    }
    if let Some(node) = node.filter(|_| left.findings.iter().any(|finding| is_of_rich_list(finding.table))) {
        rebuild_rich_list(store, node, stop).await?;
        steps.push("rebuilt the rich list".to_owned());
    }
    if !steps.is_empty() {
        derived::finish_repair(&**store)?;
        left = check(store, scratch)?.0;
        if let Some(index) = &index {
            index.compare(store, &mut left)?;
        }
    }
    Ok(Repaired { found, steps, left })
}

async fn rebuild_rich_list(
    store: &Arc<dyn Store>,
    node: &Arc<Node>,
    stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    let config = reindex::config(&**store)?;
    let last = meta::read::<BlockLane>(&*store.snapshot()?)?.unwrap_or_default().height;
    reindex::mark_rich_list(&**store, &config, last)?;
    rich::clear(&**store)?;
    let to = reindex::catch_up(store, node, config, last, stop).await?;
    if to >= last {
        reindex::end(&**store)?;
    }
    Ok(())
}
