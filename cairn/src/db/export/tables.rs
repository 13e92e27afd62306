//! NDJSON with a file for each table and a line for each row: `{"key":[…],"value":…}`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use schema::RECORDS;
use schema::payload::{Chunk, Codec};
use schema::undo::UndoRecords;
use serde_json::Value;
use serde_json::value::RawValue;
use store::{Bounds, Key, List, Snapshot, Table, TableSpec, Value as _};

use super::Lines;

/// Writes the `wanted` tables, all if none is named; returns the files and their numbers of lines.
pub(super) fn write(
    snapshot: &dyn Snapshot,
    directory: &Path,
    wanted: &[String],
) -> anyhow::Result<Vec<(String, u64)>> {
    let mut export = Export { snapshot, directory, wanted, files: Vec::new(), outcome: Ok(()) };
    export.outcome = export.structures();
    schema::visit(&mut export);
    export.outcome.map(|()| export.files)
}

struct Export<'a> {
    snapshot: &'a dyn Snapshot,
    directory: &'a Path,
    wanted: &'a [String],
    files: Vec<(String, u64)>,
    /// The first error, after which no table is written.
    outcome: anyhow::Result<()>,
}

impl schema::Visitor for Export<'_> {
    fn table<T: Table>(&mut self) {
        if self.outcome.is_ok() {
            self.outcome = if RECORDS.contains(&T::SPEC) {
                self.chunks(T::SPEC)
            } else if T::SPEC == UndoRecords::SPEC {
                self.lines(T::SPEC, |key, value| {
                    Ok((components::<T::Key>(key)?, quoted(&hex::encode(value))))
                })
            } else {
                self.lines(T::SPEC, |key, value| {
                    let value = T::Value::decode(value).context("a value that does not decode")?;
                    Ok((components::<T::Key>(key)?, value.json().to_string()))
                })
            };
        }
    }

    fn list<L: List>(&mut self) {
        if self.outcome.is_ok() {
            self.outcome = self.lines(L::SPEC, |key, value| {
                let entries = store::list::values(value).context("entries that do not decode")?;
                Ok((components::<(L::Owner, u64)>(key)?, Value::from(entries).to_string()))
            });
        }
    }
}

impl Export<'_> {
    /// Lengths of lists, and nodes of ranked sets.
    fn structures(&mut self) -> anyhow::Result<()> {
        for spec in [store::COUNT, store::RANK] {
            self.lines(spec, |key, value| {
                let (tag, owner) = key.split_first().context("a key without a tag")?;
                let table = schema::TABLES.iter().find(|spec| spec.tag == *tag).map(|spec| spec.name);
                let value = match (spec.tag == store::COUNT.tag, u64::decode(value)) {
                    (true, Some(length)) => length.to_string(),
                    _ => quoted(&hex::encode(value)),
                };
                let key = vec![table.into(), hex::encode(owner).into()];
                Ok((key, value))
            })?;
        }
        Ok(())
    }

    /// Records, as they are served; a row has the consecutive ones of a chunk.
    fn chunks(&mut self, spec: &'static TableSpec) -> anyhow::Result<()> {
        let codec = Codec::load(self.snapshot)?;
        let mut chunk = Vec::new();
        self.lines(spec, |key, value| {
            let seq = u64::from_bytes(key).context("a key that does not decode")?;
            chunk.clear();
            codec.decode_into(spec, seq, value, &mut chunk)?;
            Ok((vec![seq.into()], format!("[{}]", records(&chunk)?.join(","))))
        })
    }

    fn lines(
        &mut self,
        spec: &'static TableSpec,
        mut show: impl FnMut(&[u8], &[u8]) -> anyhow::Result<(Vec<Value>, String)>,
    ) -> anyhow::Result<()> {
        if !self.wanted.is_empty() && !self.wanted.iter().any(|name| name == spec.name) {
            return Ok(());
        }
        let mut out = Lines::create(self.directory, spec.name)?;
        let mut line = String::new();
        store::for_each_row(self.snapshot, spec, Bounds::all(), |key, value| -> anyhow::Result<()> {
            let (shown, value) = show(key, value)
                .with_context(|| format!("table `{}`, key {}", spec.name, hex::encode(key)))?;
            line.clear();
            write!(line, "{{\"key\":{},\"value\":{value}}}", Value::Array(shown))?;
            out.put(&line)
        })?;
        self.files.push(out.finish()?);
        Ok(())
    }
}

/// The components of a key.
fn components<K: Key>(key: &[u8]) -> anyhow::Result<Vec<Value>> {
    let mut components = Vec::new();
    K::from_bytes(key).context("a key that does not decode")?.put_json(&mut components);
    Ok(components)
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A stored JSON text as is: it has no line break outside of its strings.
pub(super) fn raw(bytes: &[u8]) -> anyhow::Result<&str> {
    Ok(serde_json::from_slice::<&RawValue>(bytes).context("a record that is no JSON")?.get())
}

/// The records of a chunk, each a JSON text.
pub(super) fn records(chunk: &[u8]) -> anyhow::Result<Vec<&str>> {
    let ranges = Chunk::ranges(chunk).context("a chunk of records that does not decode")?;
    ranges.into_iter().map(|range| raw(chunk.get(range).unwrap_or_default())).collect()
}
