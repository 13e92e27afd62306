//! `cairn db build-index` and `cairn db drop-index`: optional indexes of a database that no process writes.

use std::time::{Duration, Instant};

use anyhow::ensure;
use chain::Vm;
use schema::index::{Index, Input};
use schema::index_writer::{Rest, Writer};
use store::Store as _;

use super::{lanes, own};
use crate::output;
use crate::settings::Settings;

/// Interval between log lines about the progress.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Builds `index` from the stored blocks.
pub(super) fn build(settings: &Settings, index: &'static Index) -> anyhow::Result<()> {
    ensure!(
        index.input == Input::Records,
        "the index {0} follows from what only a node has (EVM headers, call traces): set `index = [\"{0}\"]` for `cairn run`, which \
         builds it",
        index.name
    );
    let store = own(settings.data()?)?;
    let identity = schema::open::existing(&store)?;
    ensure!(
        !index.needs_evm || identity.vm == Vm::Evm.name(),
        "the index {} needs a chain with an EVM, and the VM of this one is {}",
        index.name,
        identity.vm
    );
    let height = lanes(&*store.snapshot()?)?.0.height;
    let mut writer = Writer::new(&store, index, settings.undo())?;
    let mut logged = Instant::now();
    loop {
        match writer.advance(&store, height)? {
            Rest::After(at) if logged.elapsed() >= LOG_EVERY => {
                tracing::info!(index = index.name, at, to = height, "building an index");
                logged = Instant::now();
            }
            Rest::After(_) => {}
            Rest::Completed | Rest::None => break,
        }
    }
    store.sync()?;
    Ok(output::print(&format!("index {}: complete up to height {height}\n", index.name))?)
}

/// Removes `index`.
pub(super) fn remove(settings: &Settings, index: &'static Index) -> anyhow::Result<()> {
    let store = own(settings.data()?)?;
    let text = match index.state(&*store.snapshot()?)? {
        Some(state) => {
            format!("index {}: removed, it had heights {} to {}\n", index.name, state.from, state.height)
        }
        None => format!("index {}: not stored\n", index.name),
    };
    index.remove(&store)?;
    Ok(output::print(&text)?)
}
