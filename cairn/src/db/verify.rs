//! `cairn db verify`: detects damage, and repairs it with `--repair`.
//!
//! # Invariants
//! * Without `--repair`, only temporary directories are written, and another process may write the database.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use ingest::verify::{Scope, Scratch};
use schema::audit::Report;
use store::{RocksOptions, RocksStore, Store};

use super::node::{node, require_endpoints};
use super::{Viewed, own, view};
use crate::database::check_format;
use crate::settings::Settings;
use crate::temporary::Temporary;
use crate::{output, runtime, shutdown};

/// How it is verified.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// The last N heights are indexed a second time, into a temporary directory (TMPDIR), and every row is compared
    #[arg(long, value_name = "N", alias = "sample", default_value_t = 100, conflicts_with_all = ["all", "repair"])]
    last: u64,
    /// The whole chain is indexed a second time
    #[arg(long, conflicts_with = "offline")]
    all: bool,
    /// Asks no node: the database against itself only
    #[arg(long)]
    offline: bool,
    /// Repairs what is found and verifies again; the indexer must not be running. Indexes the whole chain a second
    /// time, and writes the rows that differ. With --offline, rows that follow from others are written from them
    #[arg(long)]
    repair: bool,
}

/// The database could not be checked: neither sound nor damaged.
#[derive(Debug, thiserror::Error)]
#[error("the database could not be checked")]
pub(crate) struct NotChecked(#[source] anyhow::Error);

/// Verifies the database, and fails if it is damaged.
pub(super) fn verify(settings: &Settings, how: How) -> anyhow::Result<()> {
    if !how.offline {
        require_endpoints(settings).context("the node to compare with; `--offline` needs none")?;
    }
    let sound = runtime::block_on(check(settings, how)).map_err(NotChecked)?;
    anyhow::ensure!(sound, "the database is damaged");
    Ok(())
}

/// Verifies or repairs; returns true if the database is sound at the end.
async fn check(settings: &Settings, how: How) -> anyhow::Result<bool> {
    let stop = shutdown::watch()?;
    let data = settings.data()?;
    check_format(data)?;
    let corrupt = RocksStore::find_corruption(data, schema::TABLES, RocksOptions::default())?;
    if !corrupt.is_empty() {
        let files = corrupt.iter().fold(String::new(), |text, file| format!("{text}{file}\n"));
        let remedy = "`cairn db reindex` makes the database anew from the node; or restore a backup";
        let n = corrupt.len();
        output::print(&format!(
            "{files}damaged: {n} files cannot be read, so nothing else was checked; {remedy}\n"
        ))?;
        return Ok(false);
    }
    let (store, _directory): (Arc<dyn Store>, Option<Temporary>) = if how.repair {
        let store = own(data)?;
        // All files are readable (again).
        store.resume_compaction()?;
        (Arc::new(store), None)
    } else {
        let Viewed { store, own } = view(data)?;
        (Arc::new(store), Some(own))
    };
    let identity = schema::open::existing(&*store)?;
    let node = if how.offline { None } else { Some(node(settings, &identity)?) };
    let scope = if how.all { Scope::All } else { Scope::Last(how.last) };
    let dir = Temporary::new("verify")?;
    let scratch = scratch(&dir);
    if how.repair {
        let done = ingest::verify::repair(&store, node.as_ref(), &scratch, stop).await?;
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

/// Makes stores in temporary directories below `dir`.
fn scratch(dir: &Temporary) -> Box<Scratch> {
    let (path, made) = (dir.path().to_owned(), AtomicUsize::new(0));
    Box::new(move || {
        let path = path.join(made.fetch_add(1, Ordering::Relaxed).to_string());
        Ok(Arc::new(RocksStore::open(&path, schema::TABLES, RocksOptions::default())?))
    })
}

/// One line per finding and note, the numbers of checked items, and a summary.
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
    for note in &report.notes {
        text.extend(["note: ", note, "\n"]);
    }
    text.push_str(&line("checked", report.checked.iter()));
    text.push_str(&line("not compared", report.unchecked.iter()));
    let summary = match report.total() {
        0 => "sound: nothing is wrong\n".to_owned(),
        n => format!("damaged: {n} findings{}", line("", report.counts.iter())),
    };
    text + &summary
}

/// `title: name n, name n`; empty without counts.
fn line<'a>(title: &str, counts: impl Iterator<Item = (&'a &'static str, &'a u64)>) -> String {
    let counts: Vec<String> =
        counts.filter(|(_, n)| **n > 0).map(|(what, n)| format!("{what} {n}")).collect();
    if counts.is_empty() { String::new() } else { format!("{title}: {}\n", counts.join(", ")) }
}
