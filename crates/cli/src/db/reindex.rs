//! `cairn db reindex`: removes the last blocks and indexes them again.

use std::sync::Arc;

use store::Store;

use super::node::{node, require_endpoints};
use super::own;
use crate::settings::Settings;
use crate::{output, runtime, shutdown};

/// Indexes height `from` and all above it again.
pub(super) fn reindex(settings: &Settings, from: u64) -> anyhow::Result<()> {
    require_endpoints(settings)?;
    let store: Arc<dyn Store> = Arc::new(own(settings.data()?)?);
    let node = node(settings, &schema::open::existing(&*store)?)?;
    runtime::block_on(async {
        let stop = shutdown::watch()?;
        schema::rollback::finish_pending(&*store)?;
        let done = ingest::verify::reindex(&store, &node, from, stop).await?;
        Ok(output::print(&format!("indexed heights {} to {} again\n", done.from, done.to))?)
    })
}
