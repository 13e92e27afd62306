//! `cairn db train-dictionary`: trains the compression of later records on the stored ones.

use std::fmt::Write as _;

use schema::payload::Kind;
use schema::payload::training::{self, Trained};
use store::{Durability, RocksStore, Store};

use super::{own, view};
use crate::output;
use crate::settings::Settings;

/// A dictionary is added if it saves at least one byte in so many.
const WORTH: usize = 50;

/// Trains a dictionary for each kind of record, and adds those that save enough, unless it is a dry run.
pub(super) fn train(settings: &Settings, dry_run: bool) -> anyhow::Result<()> {
    let data = settings.data()?;
    if dry_run {
        let viewed = view(data)?;
        let (text, _) = trained(&viewed.store)?;
        return Ok(output::print(&text)?);
    }
    let store = own(data)?;
    let (mut text, added) = trained(&store)?;
    let snapshot = store.snapshot()?;
    store::commit_rows(&store, Durability::Synced, |txn| training::add(txn, &*snapshot, &added))?;
    writeln!(
        text,
        "dictionaries added: {}; records are compressed with them from the next start on",
        added.len()
    )?;
    Ok(output::print(&text)?)
}

/// A line for each table of records, and the dictionaries that save enough.
fn trained(store: &RocksStore) -> anyhow::Result<(String, Vec<Trained>)> {
    let (mut text, mut worth) = (String::new(), Vec::new());
    let snapshot = store.snapshot()?;
    for kind in Kind::ALL {
        let table = kind.table().name;
        let Some(trained) = training::train_on(&*snapshot, kind)? else {
            let fewest = kind.fewest();
            writeln!(text, "{table:<12} fewer than {fewest} rows, too few to train on")?;
            continue;
        };
        let Trained { chunks, measured, json, before, after, .. } = trained;
        let each = |bytes: usize| bytes / measured.max(1);
        writeln!(
            text,
            "{table:<12} {chunks} rows; others of {} bytes are stored in {}, and with the new dictionary in {}",
            each(json),
            each(before),
            each(after),
        )?;
        if before.saturating_sub(after) * WORTH >= before {
            worth.push(trained);
        }
    }
    Ok((text, worth))
}
