//! `cairn db export`: NDJSON export for other programs.
//!
//! | module | purpose |
//! |---|---|
//! | `tables` | a file for each table, a line for each row |
//! | `heights` | one file, a line for each height |
//! | `holders` | one file, a line for each holder of a token after a block |
//!
//! # Invariants
//! * All files are of one snapshot, also while another process writes.
//! * Memory does not grow with the database.
//! * A directory with `export.json` and without `export.unfinished` is complete. An interrupted export begins anew.

mod heights;
mod holders;
mod tables;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use schema::meta::Identity;
use serde_json::json;
use store::Store as _;

use super::{Viewed, lanes, refuse_inside, view};
use crate::output;
use crate::settings::{Settings, path};

/// Favours speed over the last 10 % of size.
const LEVEL: i32 = 3;

/// The summary, written last.
const SUMMARY: &str = "export.json";

/// A file that is there until the export is complete.
const UNFINISHED: &str = "export.unfinished";

/// End of the names of the other files.
const LINES: &str = ".ndjson.zst";

/// What is exported.
#[derive(Debug, clap::Args)]
pub(crate) struct What {
    /// The directory to write to, which must be new or empty
    #[arg(long, value_name = "DIR", value_parser = path)]
    to: PathBuf,
    /// Only this table; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    table: Vec<String>,
    /// `tables`: a file for each table, a line for each row. `heights`: a line for each block with its transactions as
    /// they are served, in the files of a recording; the node's own answers are not stored, so no node can be played
    /// from it. `holders`: a line for each holder of the token `--token`, of any number of them; for the optional index
    /// `ledger`
    #[arg(long, value_name = "FORM", default_value = "tables", conflicts_with = "table")]
    form: Form,
    /// With `--form holders`: a denom, or the address of a contract or of a metadata object
    #[arg(long, value_name = "TOKEN", required_if_eq("form", "holders"))]
    token: Option<String>,
    /// With `--form holders`: the block after which they are wanted [default: the last]
    #[arg(long, value_name = "HEIGHT", requires = "token")]
    height: Option<u64>,
}

/// How it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Tables,
    Heights,
    Holders,
}

/// Writes the export.
pub(super) fn export(settings: &Settings, what: &What) -> anyhow::Result<()> {
    for name in &what.table {
        let tables: Vec<&str> = schema::TABLES.iter().map(|spec| spec.name).collect();
        ensure!(
            tables.contains(&&**name),
            "there is no table `{name}`; the tables are {}",
            tables.join(", ")
        );
    }
    let data = settings.data()?;
    let Viewed { store, own: _own } = view(data)?;
    refuse_inside(&what.to, data, "the export")?;
    let identity = schema::open::existing(&store)?;
    let snapshot = store.snapshot()?;
    let holders = match (&what.token, what.form) {
        (Some(token), Form::Holders) => {
            Some(holders::Holders::of(&*snapshot, &identity, token, what.height)?)
        }
        (Some(_), _) => bail!("--token goes with --form holders"),
        (None, _) => None,
    };
    fs::create_dir_all(&what.to).with_context(|| format!("creating {}", what.to.display()))?;
    let unfinished = what.to.join(UNFINISHED);
    if fs::exists(&unfinished)? {
        remove_interrupted(&what.to).with_context(|| format!("emptying {}", what.to.display()))?;
    }
    let is_empty = fs::read_dir(&what.to).is_ok_and(|mut entries| entries.next().is_none());
    ensure!(is_empty, "{} is not empty: name another directory, or empty it", what.to.display());
    File::create_new(&unfinished).with_context(|| format!("creating {}", unfinished.display()))?;
    let files = match holders {
        Some(holders) => holders.write(&what.to)?,
        None if what.form == Form::Heights => heights::write(&*snapshot, &what.to)?,
        None => tables::write(&*snapshot, &what.to, &what.table)?,
    };
    let (blocks, calls) = lanes(&*snapshot)?;
    drop(snapshot);
    let Identity { chain_id, vm, prefix, start_height, format } = identity;
    let summary = json!({
        "chain_id": chain_id,
        "vm": vm,
        "prefix": prefix,
        "database_format": format,
        "first_height": start_height,
        "last_height": blocks.height,
        "txs": blocks.txs,
        "evm_txs": blocks.evm_txs,
        "internal_txs": calls.calls,
        "internal_txs_to_height": calls.height,
        "replayable": false,
        "files": files.iter().map(|(name, lines)| json!({ "name": name, "lines": lines })).collect::<Vec<_>>(),
    });
    let path = what.to.join(SUMMARY);
    fs::write(&path, format!("{summary:#}\n")).with_context(|| format!("writing {}", path.display()))?;
    fs::remove_file(&unfinished).with_context(|| format!("removing {}", unfinished.display()))?;
    let lines: u64 = files.iter().map(|(_, lines)| lines).sum();
    Ok(output::print(&format!("exported {lines} lines in {} files to {}\n", files.len(), what.to.display()))?)
}

/// Removes the files of an interrupted export, and nothing else; the mark last.
fn remove_interrupted(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == SUMMARY || name.to_string_lossy().ends_with(LINES) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(directory.join(UNFINISHED))
}

/// An NDJSON file that is being written.
struct Lines {
    name: String,
    count: u64,
    out: zstd::Encoder<'static, BufWriter<File>>,
}

impl Lines {
    fn create(directory: &Path, name: &str) -> anyhow::Result<Self> {
        let name = format!("{name}{LINES}");
        let path = directory.join(&name);
        let file = File::create_new(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self { name, count: 0, out: zstd::Encoder::new(BufWriter::new(file), LEVEL)? })
    }

    fn put(&mut self, line: &str) -> anyhow::Result<()> {
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.count += 1;
        Ok(())
    }

    /// Completes the file; returns its name and number of lines.
    fn finish(self) -> anyhow::Result<(String, u64)> {
        self.out.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        Ok((self.name, self.count))
    }
}
