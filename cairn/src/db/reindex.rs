//! `cairn db reindex`: removes the last blocks, or all, and indexes them again.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use ingest::verify::Reindex;
use schema::meta::Meta;
use store::{RocksOptions, RocksStore, Store, Table as _};

use super::node::{node, require_endpoints};
use super::own;
use crate::database::check_format;
use crate::settings::Settings;
use crate::{output, runtime, shutdown};

/// Indexes height `from` and all above it again; without it everything, also if files cannot be read. An interrupted
/// reindex continues.
pub(super) fn reindex(settings: &Settings, from: Option<u64>) -> anyhow::Result<()> {
    require_endpoints(settings)?;
    let data = settings.data()?;
    let mut store = match from {
        Some(_) => own(data)?,
        None => open_damaged(data)?,
    };
    let identity = match schema::open::existing(&store) {
        Err(error @ schema::Error::Refused(_)) => return Err(error.into()),
        read => read.context(
            "the identity of the database cannot be read: restore a backup, or index into a new directory",
        )?,
    };
    let node = node(settings, &identity)?;
    runtime::block_on(async {
        let stop = shutdown::watch()?;
        let mut plan = Reindex::plan(&store, &node, from).await?;
        let mut continued = plan.continues();
        if continued.is_some() && from.is_none() {
            drop(store);
            // Files of the tables that were made anew may be damaged since.
            let damaged = RocksStore::find_corruption(data, schema::TABLES, RocksOptions::default())?;
            continued = continued.filter(|_| damaged.is_empty());
            store = if damaged.is_empty() { own(data)? } else { open_damaged(data)? };
        }
        if let Some((from, to, done)) = continued {
            output::print(&format!(
                "an interrupted reindex of heights {from} to {to} continues after height {done}\n"
            ))?;
        } else {
            plan.begin(&store)?;
            if from.is_none() {
                // Also files that cannot be read. The rows of `meta` stay: what is to be indexed again.
                store = store.recreate_tables(&[Meta::SPEC], RocksOptions::default())?;
                schema::open::initialize(&store, &identity)?;
            }
        }
        let store: Arc<dyn Store> = Arc::new(store);
        let done = plan.run(&store, stop).await?;
        let mut text = format!("indexed heights {} to {} again\n", done.from, done.to);
        if done.to < done.last {
            text = format!(
                "heights {} to {} are still missing: the same command continues with them\n",
                done.to + 1,
                done.last
            );
        }
        Ok(output::print(&text)?)
    })
}

fn open_damaged(data: &Path) -> anyhow::Result<RocksStore> {
    check_format(data)?;
    Ok(RocksStore::open_damaged(data, schema::TABLES, RocksOptions::default())?)
}
