//! Second index: heights indexed again into a scratch store, and every row compared with the database.

use std::sync::Arc;

use chain::rendering::differ_in_defaults_only;
use node::Node;
use schema::audit::{AuditContext, Report, compare};
use schema::descriptors::Descriptors;
use schema::meta::{self, BlockLane, CallLane, Identity, Meta, RichLane};
use schema::payload::{Chunk, Codec, Dictionary};
use schema::rewind::{self, RewindError};
use schema::{INDEXES, RECORDS, TABLES, digest, evm_tx, internal_tx, rich, tx};
use store::{
    Bounds, BulkWriter, COUNT, CopyOnWrite, Durability, Key as _, RANK, Snapshot, Store, Table as _,
    TableSpec,
};
use tokio::sync::watch;

use super::balances::{Settled, token_row};
use super::reindex::{config, run_to, status};
use crate::config::Config;
use crate::{Error, Ingest};

/// Heights that are indexed again for the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This many of the last heights. A row below them is compared if they change it.
    Last(u64),
    /// All heights.
    All,
}

/// Creates empty scratch stores.
pub type Scratch = dyn Fn() -> Result<Arc<dyn Store>, store::Error> + Send + Sync;

const OF_RICH_LIST: [&TableSpec; 7] = [
    rich::Erc20s::SPEC,
    rich::NewContracts::SPEC,
    rich::Balances::SPEC,
    rich::AccountTokens::SPEC,
    rich::Holders::SPEC,
    rich::Denoms::SPEC,
    rich::DenomsFolded::SPEC,
];

/// True if the table holds balances or data derived from them.
pub(super) fn is_of_rich_list(spec: &TableSpec) -> bool {
    OF_RICH_LIST.contains(&spec)
}

/// A second index, up to the height of the database.
pub(super) struct SecondIndex {
    rows: Arc<dyn Store>,
    /// Tables that are not comparable.
    left_out: Vec<&'static TableSpec>,
    /// Named rows of `meta` that are comparable.
    lanes: Vec<Vec<u8>>,
    /// Balances that differ.
    settled: Settled,
}

/// Copies the identity, the dictionaries and the descriptors: a row of the second index is valid in the database, and a
/// node need not serve descriptors.
fn copy_codec(snapshot: &dyn Snapshot, rows: &dyn Store) -> Result<(), Error> {
    let mut writer = BulkWriter::new(rows);
    let identity = meta::key::<Identity>().to_bytes();
    if let Some(row) = snapshot.get(Meta::SPEC, &identity)? {
        writer.put(Meta::SPEC, identity, row)?;
    }
    for spec in [Dictionary::SPEC, Descriptors::SPEC] {
        store::for_each_row(snapshot, spec, Bounds::all(), |key, value| {
            writer.put(spec, key.to_vec(), value.to_vec())
        })?;
    }
    Ok(writer.finish(Durability::Buffered)?)
}

/// Rewinds a copy of the database to `to`, or as far as the undo log reaches; returns the height. `None` if nothing can be
/// compared then.
fn rewind_copy(copy: &dyn Store, to: u64, last: u64, report: &mut Report) -> Result<Option<u64>, Error> {
    let reached = match rewind::rewind_unchecked(copy, to) {
        Err(RewindError::BeyondUndoLog { lowest, .. }) => {
            report.unchecked("heights beyond the undo log (--all compares them)", lowest - to);
            if lowest == last {
                return Ok(None);
            }
            rewind::rewind_unchecked(copy, lowest)
        }
        reached => reached,
    };
    match reached {
        Ok(rewound) => Ok(Some(rewound.to)),
        // Rows of these heights are unreadable, and the audit has reported them.
        Err(
            RewindError::Mismatch { .. }
            | RewindError::Database(
                schema::Error::Record { .. } | schema::Error::Store(store::Error::Corrupt { .. }),
            ),
        ) => {
            report.unchecked("heights behind a row that does not decode", last - to);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

impl SecondIndex {
    /// Indexes the heights of `scope` into a scratch store; `None` if there is nothing to compare with.
    pub(super) async fn make(
        store: &Arc<dyn Store>,
        node: &Arc<Node>,
        scope: Scope,
        scratch: &Scratch,
        stop: watch::Receiver<bool>,
        report: &mut Report,
    ) -> Result<Option<Self>, Error> {
        let snapshot = store.snapshot()?;
        let context = AuditContext::new(&*snapshot)?;
        let (first, last) = (context.identity.start_height, context.blocks.height);
        if last == 0 {
            return Ok(None);
        }
        let there = status(node, &context.identity.chain_id).await?;
        let from = match scope {
            Scope::All => first,
            Scope::Last(n) => {
                let from = (last + 1).saturating_sub(n).max(first);
                report.unchecked(
                    "heights that the node does not have",
                    there.earliest_height.min(last + 1).saturating_sub(from),
                );
                from.max(there.earliest_height)
            }
        };
        let (earliest, latest) = (there.earliest_height, there.latest_height);
        let nothing = |latest, remedy| Error::NothingToCompare { earliest, latest, last, remedy };
        if earliest > from || from > last {
            let remedy = "add an endpoint that has the database's heights, or verify with --offline";
            return Err(nothing(latest, remedy));
        }
        let (mut rows, mut from) = (scratch()?, from);
        if from > first {
            rows = Arc::new(CopyOnWrite::new(Arc::clone(store), rows));
            let Some(to) = rewind_copy(&*rows, from - 1, last, report)? else { return Ok(None) };
            from = to + 1;
        } else {
            copy_codec(&*snapshot, &*rows)?;
        }
        let config = Config { indexes: Vec::new(), ..config(&**store)? };
        let ingest = Ingest::prepare(config, Arc::clone(node), Arc::clone(&rows)).await?;
        let reached = run_to(&ingest, last, stop.clone()).await?;
        if *stop.borrow() {
            return Err(Error::Setup("it was stopped before the end"));
        }
        if reached < last {
            return Err(nothing(reached, "wait for the node, or add an endpoint that has come further"));
        }
        // The node may have gone on.
        rewind::rewind(&*rows, last)?;
        report.checked("heights with the node", last + 1 - from);
        let mut index = Self::new(&context, rows, report)?;
        if !index.left_out.contains(&rich::Balances::SPEC) {
            let indexed = index.rows.snapshot()?;
            index.settled = Settled::read((&*snapshot, &*indexed), node.evm.as_ref(), last, report).await?;
            drop(indexed);
            if index.settled.keeps_rows {
                // The undo log of the new index would restore its own balances.
                index.left_out.push(rich::RichUndo::SPEC);
            }
        }
        Ok(Some(index))
    }

    /// Decides which tables are comparable.
    fn new(context: &AuditContext<'_>, rows: Arc<dyn Store>, report: &mut Report) -> Result<Self, Error> {
        let expected = rows.snapshot()?;
        let (mut left_out, mut lanes) =
            (digest::EXCLUDED.to_vec(), vec![meta::key::<BlockLane>().to_bytes()]);
        // Derived from balances or records, as the audit checks.
        left_out.push(rich::Holders::SPEC);
        left_out.extend(INDEXES.iter().flat_map(|index| index.tables));
        let again: Option<CallLane> = meta::read(&*expected)?;
        let begins_at = |lane: &Option<CallLane>| lane.as_ref().map_or(0, |lane| lane.complete_from);
        if context.calls.as_ref().is_some_and(|lane| lane.height < context.blocks.height) {
            report.unchecked("internal transactions, whose lane is behind", 1);
            left_out.extend(internal_tx::TABLES);
        } else if begins_at(&context.calls) != begins_at(&again) {
            report.unchecked("internal transactions, of which some were pruned in one of the two indexes", 1);
            left_out.extend(internal_tx::TABLES);
        } else {
            lanes.push(meta::key::<CallLane>().to_bytes());
        }
        if context.rich == meta::read::<RichLane>(&*expected)? {
            // The undo log of the same balances.
            left_out.retain(|spec| *spec != rich::RichUndo::SPEC);
        } else {
            // A later baseline, taken because the node has pruned the first, gives another history.
            report.unchecked("the rich list, which is at another height or began at another", 1);
            left_out.extend(OF_RICH_LIST);
        }
        drop(expected);
        Ok(Self { rows, left_out, lanes, settled: Settled::default() })
    }

    /// Reports every row of `store` that differs.
    pub(super) fn compare(&self, store: &Arc<dyn Store>, report: &mut Report) -> Result<(), Error> {
        let (snapshot, indexed) = (store.snapshot()?, self.rows.snapshot()?);
        let (codec, codec_again) = (Codec::load(&*snapshot)?, Codec::load(&*indexed)?);
        let (compared, hashes) = self.each_difference(store, |spec, key, stored, expected| {
            // The undo log also depends on earlier rewinds.
            if *spec != *rich::RichUndo::SPEC {
                let values = ((&codec, stored), (&codec_again, expected));
                report.difference("row unlike a new index's", (spec, key), values);
            }
            Ok(())
        })?;
        report.checked("rows with a new index", compared);
        if hashes > 0 {
            report.note(format!(
                "{hashes} rows of evm_tx have other EVM block hashes than the node: it has rebuilt its EVM index"
            ));
        }
        Ok(())
    }

    /// Calls `visit` for each row that differs: table, key, stored and expected value. Returns the numbers of compared
    /// rows, and of those that differ in EVM block hashes only.
    pub(super) fn each_difference(
        &self,
        store: &Arc<dyn Store>,
        mut visit: impl FnMut(&'static TableSpec, &[u8], Option<&[u8]>, Option<&[u8]>) -> Result<(), store::Error>,
    ) -> Result<(u64, u64), Error> {
        let (stored, expected) = (store.snapshot()?, self.rows.snapshot()?);
        let codecs = (Codec::load(&*stored)?, Codec::load(&*expected)?);
        let (mut compared, mut hashes) = (0, 0);
        for spec in TABLES.iter().filter(|spec| !self.left_out.contains(spec)) {
            compared += compare::differences((&*stored, &*expected), spec, &[], |key, stored, expected| {
                // Lengths and skip-list nodes begin with the tag of their table.
                let is_left_out = match *spec {
                    spec if spec == Meta::SPEC => !self.lanes.iter().any(|lane| lane == key),
                    spec if spec == COUNT || spec == RANK => {
                        self.left_out.iter().any(|left| key.first() == Some(&left.tag))
                    }
                    spec if spec == rich::Balances::SPEC => {
                        let expected = self.settled.expected(key, stored, expected);
                        return if stored == expected { Ok(()) } else { visit(spec, key, stored, expected) };
                    }
                    spec if spec == rich::Erc20s::SPEC => {
                        let expected = token_row(stored, expected);
                        let expected = expected.as_deref();
                        return if stored == expected { Ok(()) } else { visit(spec, key, stored, expected) };
                    }
                    spec => match same_records(spec, (&codecs.0, stored), (&codecs.1, expected)) {
                        Some(Sameness::Whole) => true,
                        Some(Sameness::ButBlockHashes) => {
                            hashes += 1;
                            true
                        }
                        None => false,
                    },
                };
                if is_left_out { Ok(()) } else { visit(spec, key, stored, expected) }
            })?;
        }
        Ok((compared, hashes))
    }
}

/// How two rows of records are the same.
enum Sameness {
    /// They are compressed differently, or rendered by descriptors of another version of the chain, at most.
    Whole,
    /// The EVM's block hashes differ, which a node changes when it rebuilds its EVM index.
    ButBlockHashes,
}

/// Whether two rows of the table `spec` have the same records; `None` if they do not, or have none.
fn same_records(
    spec: &'static TableSpec,
    one: (&Codec, Option<&[u8]>),
    other: (&Codec, Option<&[u8]>),
) -> Option<Sameness> {
    if !RECORDS.contains(&spec) {
        return None;
    }
    let decoded = |(codec, value): (&Codec, Option<&[u8]>)| {
        let mut records = Vec::new();
        codec.decode_into(spec, 0, value?, &mut records).ok().map(|()| records)
    };
    let (mut one, mut other) = (decoded(one)?, decoded(other)?);
    if one == other {
        return Some(Sameness::Whole);
    }
    if spec == tx::Txs::SPEC {
        return is_same_but_for_descriptors(&one, &other).then_some(Sameness::Whole);
    }
    if spec != evm_tx::EvmTxs::SPEC {
        return None;
    }
    evm_tx::blank_block_hashes(&mut one);
    evm_tx::blank_block_hashes(&mut other);
    (one == other).then_some(Sameness::ButBlockHashes)
}

/// Whether two chunks have the same transactions, rendered before and after an upgrade of the chain.
fn is_same_but_for_descriptors(one: &[u8], other: &[u8]) -> bool {
    let (Some(ours), Some(others)) = (Chunk::ranges(one), Chunk::ranges(other)) else { return false };
    let mut pairs = ours.iter().zip(&others).map(|(a, b)| (&one[a.clone()], &other[b.clone()]));
    ours.len() == others.len() && pairs.all(|(a, b)| a == b || differ_in_defaults_only(a, b))
}
