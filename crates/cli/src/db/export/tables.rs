//! NDJSON with a file for each table and a line for each row: `{"key":[…],"value":…}`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use schema::payload::{Chunk, Codec};
use schema::records::Records;
use schema::undo::{RecordKey, UndoRecords};
use schema::{block, descriptors, evm_tx, internal_tx, meta, msg_set, nft, payload, rich, tx};
use serde_json::Value;
use serde_json::value::RawValue;
use store::{Bounds, Key as _, List, Snapshot, Table, TableSpec, Value as _};

use super::Lines;
use super::value::{Shown, components};

/// Writes the `wanted` tables, all if none is named; returns the files and their numbers of lines.
pub(super) fn write(
    snapshot: &dyn Snapshot,
    directory: &Path,
    wanted: &[String],
) -> anyhow::Result<Vec<(String, u64)>> {
    let mut export = Export { snapshot, directory, wanted, files: Vec::new() };
    export.structures()?;
    export.records()?;
    export.tables()?;
    Ok(export.files)
}

/// Calls a method of the export for each type.
macro_rules! each {
    ($self:ident.$method:ident: $($table:ty),*) => {
        $($self.$method::<$table>()?;)*
    };
}

struct Export<'a> {
    snapshot: &'a dyn Snapshot,
    directory: &'a Path,
    wanted: &'a [String],
    files: Vec<(String, u64)>,
}

impl Export<'_> {
    /// Metadata of lists and ranked sets, and undo records.
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
        self.lines(UndoRecords::SPEC, |key, value| {
            let key = RecordKey::from_bytes(key).context("a key that does not decode")?;
            let (lane, height, part) = key;
            Ok((vec![lane.into(), height.into(), part.into()], quoted(&hex::encode(value))))
        })
    }

    /// Records, as they are served; a row has the consecutive ones of a chunk.
    fn records(&mut self) -> anyhow::Result<()> {
        each!(self.chunks: tx::Txs, evm_tx::EvmTxs, internal_tx::Calls);
        Ok(())
    }

    fn tables(&mut self) -> anyhow::Result<()> {
        each!(self.table: meta::Meta, payload::Dictionary, descriptors::Descriptors);
        each!(self.table: block::Blocks, tx::TxByHash, evm_tx::EvmTxByHash);
        each!(self.table: internal_tx::CallsByHeight);
        each!(self.table: msg_set::MsgSets, msg_set::MsgSetByNames, msg_set::MsgSetByType);
        each!(self.table: nft::Collections, nft::CollectionsByHeight, nft::CollectionsByName, nft::OwnedCollections);
        each!(self.table: nft::Tokens, nft::TokensByHeight, nft::OwnedTokens, nft::OwnedTokensByHeight);
        each!(self.table: nft::Holdings, nft::HoldingsByHeight, nft::TokenObjects, nft::ObjectTokens);
        each!(self.table: nft::OriginNames, nft::NameChanges, nft::NftLog, nft::NonCollections);
        each!(self.table: nft::Questions, nft::PendingEvents, nft::Renewals);
        each!(self.table: rich::Erc20s, rich::NewContracts, rich::Balances, rich::Holders);
        each!(self.table: rich::Denoms, rich::DenomsFolded, rich::RichUndo);
        each!(self.list: tx::AccountTxs, tx::AccountSetTxs, tx::SetTxs, evm_tx::AccountEvmTxs);
        each!(self.list: internal_tx::AccountCalls, nft::TokenTxs);
        Ok(())
    }

    fn table<T: Table<Key: Shown, Value: Shown>>(&mut self) -> anyhow::Result<()> {
        self.lines(T::SPEC, |key, value| {
            let (key, value) = store::table::decode_row::<T>(key, value)?;
            Ok((components(&key), value.shown().to_string()))
        })
    }

    fn list<L: List<Owner: Shown>>(&mut self) -> anyhow::Result<()> {
        self.lines(L::SPEC, |key, value| {
            let key = <(L::Owner, u64)>::from_bytes(key).context("a key that does not decode")?;
            let entries = store::list::values(value).context("entries that do not decode")?;
            Ok((components(&key), Value::from(entries).to_string()))
        })
    }

    fn chunks<T: Records>(&mut self) -> anyhow::Result<()> {
        let codec = Codec::load(self.snapshot)?;
        let mut chunk = Vec::new();
        self.lines(T::SPEC, |key, value| {
            let seq = u64::from_bytes(key).context("a key that does not decode")?;
            chunk.clear();
            codec.decode_into(T::SPEC, seq, value, &mut chunk)?;
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
