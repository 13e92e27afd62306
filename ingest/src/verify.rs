//! Verification: compares a database with itself and with the chain, and repairs it.
//!
//! ```text
//! database ──▶ schema::audit ──▶ report ◀── sampled: heights, owners, balances ◀── node
//!                                  │        full: everything, indexed again
//!                                  ▼
//!                                repair ──▶ rows, NFT tables, reindex
//! ```
//!
//! | module | one job |
//! |---|---|
//! | `sample` | the choice of heights and rows |
//! | `chain` | the node's side: a height derived again |
//! | `expected_rows` | the rows that a derived height makes |
//! | `sampled` | compares them with the stored rows |
//! | `list_membership` | compares the lists that contain the sampled sequences |
//! | `names` | compares names of collections and URIs of tokens with the node |
//! | `state` | compares owners of tokens, balances and denoms with the node |
//! | `full` | compares everything with a second index |
//! | [`repair()`], [`reindex()`] | repair |
//!
//! # Invariants
//! * Verification writes to scratch stores only.
//! * A question that the node does not answer is counted, and never a finding.

mod chain;
mod expected_rows;
mod full;
mod list_membership;
mod names;
pub mod reindex;
pub mod repair;
mod sample;
mod sampled;
mod state;

use std::sync::Arc;

use node::Node;
use schema::audit::{self, Ground, Remedy, Report};
use schema::meta::{self, Meta, PendingRollback};
use schema::rollback;
use store::{Key as _, Store, Table as _};

pub use self::reindex::{Reindexed, reindex};
pub use self::repair::{Repaired, repair};

use self::chain::Chain;
use crate::Error;

/// Scope of the comparison with the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This many heights, the first and the last among them, and as many tokens and balances.
    Sample(usize),
    /// Everything: the chain is indexed a second time, and every row compared.
    All,
}

/// Creates empty scratch stores.
pub type Scratch = dyn Fn() -> Result<Arc<dyn Store>, store::Error> + Send + Sync;

/// Verifies `store` by itself, and if there is a node, against the chain.
pub async fn verify(
    store: &Arc<dyn Store>,
    node: Option<&Arc<Node>>,
    scope: Scope,
    scratch: &Scratch,
) -> Result<Report, Error> {
    let snapshot = store.snapshot()?;
    let ground = Ground::new(&*snapshot)?;
    let mut report = Report::default();
    if rollback::is_pending(&**store)? {
        let (key, row) = (meta::key::<PendingRollback>().to_bytes(), Remedy::None);
        let stored: &[u8] = b"a rollback or a rebuild that was begun";
        report.row(
            "interrupted work",
            (Meta::SPEC, &key, Some(stored)),
            "its end, which the next start brings",
            row,
        );
    }
    audit::audit(&ground, &*scratch()?, &mut report)?;
    let Some(node) = node else { return Ok(report) };
    match scope {
        Scope::Sample(n) => {
            let chain = Chain::open(node, &ground, store, scratch()?).await?;
            sampled::heights(&chain, &ground, n, &mut report).await?;
            state::compare(&chain, &ground, n, &mut report).await?;
            names::compare(&chain, &ground, n as u64, &mut report).await?;
        }
        Scope::All => full::compare(node, &ground, scratch()?, &mut report).await?,
    }
    Ok(report)
}
