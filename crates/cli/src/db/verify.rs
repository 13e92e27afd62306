//! `cairn db verify`: detects damage, and repairs it with `--repair`.
//!
//! # Invariants
//! * Without `--repair`, only temporary directories are written, and another process may write the database.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use ingest::verify::{Scope, Scratch};
use schema::audit::Report;
use store::{CorruptRange, RocksOptions, RocksStore, Store};
use tempfile::TempDir;

use super::node::{node, require_endpoints};
use super::{Viewed, own, view};
use crate::settings::Settings;
use crate::{output, runtime, shutdown};

/// How it is verified.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// About so many heights, tokens and balances are compared with the node, the first and the last height among them
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "all")]
    sample: usize,
    /// Indexes the whole chain a second time, into a temporary directory (TMPDIR), and compares every row
    #[arg(long, conflicts_with = "offline")]
    all: bool,
    /// Asks no node: the database against itself only
    #[arg(long)]
    offline: bool,
    /// Repairs what is found and verifies again; the indexer must not be running. Rows that follow from others are
    /// written from them; what only the chain knows is indexed again, from the lowest height that is wrong
    #[arg(long)]
    repair: bool,
}

/// The database could not be checked: neither sound nor damaged.
#[derive(Debug, thiserror::Error)]
#[error("the database could not be checked")]
pub(crate) struct NotChecked(#[source] anyhow::Error);

/// Verifies the database, and fails if something is wrong with it.
pub(super) fn verify(settings: &Settings, how: How) -> anyhow::Result<()> {
    if !how.offline {
        require_endpoints(settings).context("the node to compare with; `--offline` needs none")?;
    }
    let sound = runtime::block_on(check(settings, how)).map_err(NotChecked)?;
    anyhow::ensure!(sound, "the database is damaged");
    Ok(())
}

/// Whether it is sound in the end.
async fn check(settings: &Settings, how: How) -> anyhow::Result<bool> {
    let stop = shutdown::watch()?;
    let data = settings.data()?;
    let (store, _directory): (Arc<dyn Store>, Option<TempDir>) = if how.repair {
        let found = salvage(data)?;
        output::print(&lines(&found))?;
        let store = own(data)?;
        // Compact the files again; damage that appears later is left to the next repair.
        output::print(&lines(&store.recheck()?))?;
        (Arc::new(store), None)
    } else {
        let found = RocksStore::find_corruption(data, schema::TABLES, RocksOptions::default())?;
        if !found.is_empty() {
            output::print(&lines(&found))?;
            let what = "what cannot be read cannot be compared; --repair goes on without it";
            output::print(&format!("damaged: {} stretches of rows are unreadable; {what}\n", found.len()))?;
            return Ok(false);
        }
        let Viewed { store, own } = view(data)?;
        (Arc::new(store), Some(own))
    };
    let identity = schema::open::existing(&*store)?;
    let node = if how.offline { None } else { Some(node(settings, &identity)?) };
    let scope = if how.all { Scope::All } else { Scope::Sample(how.sample) };
    let dir =
        tempfile::Builder::new().prefix("cairn-verify-").tempdir().context("making a temporary directory")?;
    let scratch = scratch(&dir);
    if how.repair {
        let done = ingest::verify::repair(&store, node.as_ref(), scope, &scratch, stop).await?;
        let mut text = report(&done.found);
        if !done.found.is_sound() || !done.steps.is_empty() {
            for step in &done.steps {
                writeln!(text, "repair: {step}")?;
            }
            text.push_str("after the repair\n");
            text.push_str(&report(&done.left));
        }
        output::print(&text)?;
        return Ok(done.left.is_sound());
    }
    let found = tokio::select! {
        found = ingest::verify::verify(&store, node.as_ref(), scope, &scratch) => found?,
        () = shutdown::stopped(&stop) => anyhow::bail!("it was stopped before the end"),
    };
    output::print(&report(&found))?;
    Ok(found.is_sound())
}

/// Removes unreadable rows from their tables, so that the repair treats them as missing.
fn salvage(data: &Path) -> anyhow::Result<Vec<CorruptRange>> {
    let found = RocksStore::find_corruption(data, schema::TABLES, RocksOptions::default())?;
    // Salvage opens the database without checks, so skip it if everything is readable.
    if found.is_empty() {
        return Ok(found);
    }
    let done = RocksStore::salvage(data, schema::TABLES, RocksOptions::default())?;
    tracing::warn!(stretches = done.len(), "took unreadable rows out of their tables");
    Ok(done)
}

fn lines(found: &[CorruptRange]) -> String {
    found.iter().fold(String::new(), |text, damage| format!("{text}{damage}\n"))
}

/// Makes stores in directories of their own below `dir`.
fn scratch(dir: &TempDir) -> Box<Scratch> {
    let (path, made) = (dir.path().to_owned(), AtomicUsize::new(0));
    Box::new(move || {
        let path = path.join(made.fetch_add(1, Ordering::Relaxed).to_string());
        Ok(Arc::new(RocksStore::open(&path, schema::TABLES, RocksOptions::default())?))
    })
}

/// One line per finding, the numbers of checked items, and a summary.
fn report(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&finding.to_string());
        text.push('\n');
    }
    for (kind, count) in &report.counts {
        let shown = report.findings.iter().filter(|finding| finding.kind == *kind).count() as u64;
        if *count > shown {
            text += &line(kind, std::iter::once((&"more", &(count - shown))));
        }
    }
    text.push_str(&line("checked", report.checked.iter()));
    text.push_str(&line("not told by the node", report.unchecked.iter()));
    let summary = match report.total() {
        0 => "sound: nothing is wrong\n".to_owned(),
        n => format!("damaged: {n} findings{}", line("", report.counts.iter())),
    };
    text + &summary
}

/// `title: what n, what n`; nothing where there is none.
fn line<'a>(title: &str, counts: impl Iterator<Item = (&'a &'static str, &'a u64)>) -> String {
    let counts: Vec<String> =
        counts.filter(|(_, n)| **n > 0).map(|(what, n)| format!("{what} {n}")).collect();
    if counts.is_empty() { String::new() } else { format!("{title}: {}\n", counts.join(", ")) }
}
