//! `cairn db reindex`: removes the last blocks, or all, and indexes them again.

use std::sync::Arc;

use anyhow::Context as _;
use ingest::verify::Reindex;
use schema::meta::Meta;
use store::{RocksOptions, RocksStore, Store, Table as _};

use super::node::{node, require_endpoints};
use super::own;
use crate::settings::Settings;
use crate::{output, runtime, shutdown};

/// Indexes height `from` and all above it again; without it everything, also if files cannot be read.
pub(super) fn reindex(settings: &Settings, from: Option<u64>) -> anyhow::Result<()> {
    require_endpoints(settings)?;
    let data = settings.data()?;
    let mut store = match from {
        Some(_) => own(data)?,
        None => RocksStore::open_damaged(data, schema::TABLES, RocksOptions::default())?,
    };
    if from.is_some() {
        schema::rollback::finish_pending(&store)?;
    }
    let identity = schema::open::existing(&store).context(
        "the identity of the database cannot be read: restore a backup, or index into a new directory",
    )?;
    let node = node(settings, &identity)?;
    runtime::block_on(async {
        let stop = shutdown::watch()?;
        let plan = Reindex::plan(&store, &node, from).await?;
        plan.begin(&store)?;
        if from.is_none() {
            // The rows of `meta` stay, so that the next start can resume an interrupted run.
            store.recreate_tables(&[Meta::SPEC])?;
            schema::open::initialize(&store, &identity)?;
            drop(store);
            store = own(data)?;
        }
        let store: Arc<dyn Store> = Arc::new(store);
        let done = plan.run(&store, stop).await?;
        Ok(output::print(&format!("indexed heights {} to {} again\n", done.from, done.to))?)
    })
}
