//! Rebuild of the tables that follow from other tables, and comparison with the stored ones.
//!
//! | source | derived tables |
//! |---|---|
//! | records of transactions | the tables by hash |
//! | records of call frames | the table by height |
//! | NFT log | all other tables of collections and tokens |
//! | balances, denoms | holders, tokens of accounts, denoms in lower case |
//! | records of the blocks that an optional index has | its tables |
//!
//! The comparison cannot tell whether the source or the derived row is wrong; [`write()`] assumes that the source is
//! correct.

use std::ops::Range;

use serde::Deserialize;
use store::key::Text;
use store::{
    Batch, Bounds, BulkWriter, COUNT, Counts, Durability, Key as _, Message, RANK, Snapshot, Store, Table,
    TableSpec, Txn, Value as _,
};

use super::compare::differences;
use super::report::{DERIVED_ROW, INDEX, NFT_LOG};
use super::{AuditContext, Check, Report};
use crate::evm_tx::EvmTxs;
use crate::index::{self, Index, Input, State};
use crate::index_writer::{Rest, Writer};
use crate::internal_tx::{BlockCalls, Calls, CallsByHeight};
use crate::keys::{HashPrefix, KEY_END, hash_prefix, record_hash};
use crate::meta::{self, CallLane, Meta};
use crate::nft::rebuild::{self, FOLDED};
use crate::nft::{NftLog, fold};
use crate::payload::Chunk;
use crate::postings::{Hashed, Rebuild};
use crate::records::Records;
use crate::rich::{
    AccountTokens, Address, Balances, Denoms, DenomsFolded, Holders, amount_of, has_account_tokens,
};
use crate::tx::Txs;
use crate::undo::UndoRecords;
use crate::{Error, INDEXES, evm_block};

/// Tables that are derived from records, balances and denoms.
const OF_RECORDS: [&TableSpec; 6] = [
    <Txs as Hashed>::ByHash::SPEC,
    <EvmTxs as Hashed>::ByHash::SPEC,
    CallsByHeight::SPEC,
    DenomsFolded::SPEC,
    AccountTokens::SPEC,
    Holders::SPEC,
];

/// True if `spec` is derived as a whole. Parts of [`RANK`] and [`COUNT`] are, too.
pub(super) fn is_derived(spec: &TableSpec) -> bool {
    all().any(|derived| derived == spec)
}

/// Every derived table.
fn all() -> impl Iterator<Item = &'static TableSpec> {
    // What traces and nodes say is stored nowhere else.
    let of_blocks =
        |index: &'static Index| index.tables.iter().filter(|table| !index.replies.contains(table));
    let of_indexes = INDEXES
        .iter()
        .filter(|index| !matches!(index.input, Input::Traces | Input::Lane))
        .flat_map(move |index| of_blocks(index));
    OF_RECORDS.iter().chain(&FOLDED).chain(of_indexes).copied()
}

/// Rebuilds of the derived tables in `copy`, a copy of the database; they write disjoint tables.
pub(super) fn rebuilds<'a>(
    context: &'a AuditContext<'_>,
    copy: &'a dyn Store,
) -> Result<Vec<Check<'a>>, Error> {
    let mut batch = Batch::new();
    for spec in OF_RECORDS {
        batch.delete_range(spec, Vec::new(), KEY_END.to_vec());
    }
    batch.delete_range(RANK, vec![Holders::SPEC.tag], vec![Holders::SPEC.tag + 1]);
    copy.commit(batch, Durability::Buffered)?;
    let mut checks: Vec<Check<'a>> = vec![
        Box::new(|report| nfts(copy, report)),
        Box::new(|report| calls(context, copy, report)),
        Box::new(|report| hashes::<EvmTxs>(context, copy, context.blocks.evm_txs, report)),
        Box::new(|report| hashes::<Txs>(context, copy, context.blocks.txs, report)),
        Box::new(|report| holders(context, copy, report)),
        Box::new(|_| denoms(context, copy)),
    ];
    for (index, state) in index::stored(context.snapshot)? {
        if index.input == Input::Traces {
            continue;
        }
        checks.push(Box::new(move |report| rebuild_index(context, copy, (index, state), report)));
    }
    Ok(checks)
}

/// Compares the derived tables with those that [`rebuilds`] has written to `copy`.
pub(super) fn compare(
    context: &AuditContext<'_>,
    copy: &dyn Store,
    report: &mut Report,
) -> Result<(), Error> {
    let snapshot = copy.snapshot()?;
    let has_account_tokens = has_account_tokens(context.snapshot)?;
    if !has_account_tokens {
        report.unchecked("tokens of accounts, which the next start of the rich list lists", 1);
    }
    // A log of NFTs that cannot be applied is a finding already.
    let is_left_out = |spec: &&TableSpec| {
        **spec == *AccountTokens::SPEC && !has_account_tokens
            || report.has(NFT_LOG) && FOLDED.contains(spec)
            || report.has(INDEX) && INDEXES.iter().any(|index| index.tables.contains(spec))
    };
    let check = |derived: &'static TableSpec| -> Check<'_> {
        let expected = &*snapshot;
        Box::new(move |report| {
            differences_of(context.snapshot, expected, derived, |spec, key, stored, expected| {
                report.difference(
                    DERIVED_ROW,
                    (spec, key),
                    ((&context.codec, stored), (&context.codec, expected)),
                );
                Ok(())
            })
        })
    };
    let checks = all().filter(|spec| !is_left_out(spec)).map(check).collect();
    super::run(checks, report)
}

/// Writes the derived rows of `copy`, which an audit has rebuilt, where those of `store` differ. Returns their number.
pub fn write(store: &dyn Store, copy: &dyn Store) -> Result<u64, Error> {
    let (snapshot, mut writer, mut n) = (store.snapshot()?, BulkWriter::new(store), 0);
    let expected = copy.snapshot()?;
    for derived in all() {
        differences_of(&*snapshot, &*expected, derived, |spec, key, _, expected| {
            n += 1;
            match expected {
                Some(value) => Ok(writer.put(spec, key.to_vec(), value.to_vec())?),
                None => Ok(writer.delete(spec, key.to_vec())?),
            }
        })?;
    }
    writer.finish(Durability::Synced)?;
    Ok(n)
}

/// Completes a repair: deletes undo records, which are invalid after it, and invalidates the caches of running
/// processes.
pub fn finish_repair(store: &dyn Store) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    fold::invalidate_all_names(&mut txn)?;
    let height = meta::read::<meta::BlockLane>(&txn)?.unwrap_or_default().height;
    meta::count_rewind(&mut txn, height)?;
    let (mut batch, _) = txn.finish();
    batch.delete_range(UndoRecords::SPEC, Vec::new(), KEY_END.to_vec());
    Ok(store.commit(batch, Durability::Synced)?)
}

/// Compares a derived table, with the lengths and skip-list nodes that begin with its tag.
fn differences_of(
    stored: &dyn Snapshot,
    expected: &dyn Snapshot,
    derived: &'static TableSpec,
    mut visit: impl FnMut(&'static TableSpec, &[u8], Option<&[u8]>, Option<&[u8]>) -> Result<(), Error>,
) -> Result<(), Error> {
    for (spec, prefix) in [(derived, &[][..]), (COUNT, &[derived.tag]), (RANK, &[derived.tag])] {
        differences((stored, expected), spec, prefix, |key, stored, expected| {
            visit(spec, key, stored, expected)
        })?;
    }
    Ok(())
}

fn nfts(copy: &dyn Store, report: &mut Report) -> Result<(), Error> {
    match rebuild::rebuild(copy) {
        Err(error @ (Error::Record { .. } | Error::Store(store::Error::Corrupt { .. }))) => {
            report.row(NFT_LOG, (NftLog::SPEC, &[], None), format!("a log of NFTs: {error}"));
            Ok(())
        }
        outcome => outcome,
    }
}

/// Writes the rows of an index again. Its tables are as stored if its rows are of another version.
/// Headers that are in memory at once.
const HEADERS_AT_ONCE: u64 = 1_000;

fn rebuild_index(
    context: &AuditContext<'_>,
    copy: &dyn Store,
    (index, state): (&'static Index, State),
    report: &mut Report,
) -> Result<(), Error> {
    if index.input == Input::Lane {
        report.unchecked("indexes of a node's replies", 1);
        return Ok(());
    }
    if state.version != index.version {
        report.unchecked("indexes of another version, which the next start builds again", 1);
        return Ok(());
    }
    let mut writer = Writer::anew(copy, index, state.from)?;
    // Headers are checked by their own hash; what finds them follows from them.
    let mut next = state.from;
    let mut advance = || match index.input {
        Input::Records => writer.advance(copy, state.height),
        Input::Lane | Input::Traces => Ok(Rest::None),
        Input::Headers if next > state.height => Ok(Rest::None),
        Input::Headers => {
            let to = state.height.min(next + HEADERS_AT_ONCE);
            let headers = evm_block::stored(context.snapshot, &context.codec, next, to)?;
            next = to + 1;
            writer.advance_headers(copy, &headers)
        }
    };
    let built = loop {
        match advance() {
            Ok(Rest::After(_) | Rest::Completed) => {}
            built => break built,
        }
    };
    match built {
        Err(error @ (Error::Record { .. } | Error::Store(store::Error::Corrupt { .. }))) => {
            let row = (Meta::SPEC, &*index.key().to_bytes(), None);
            report.row(INDEX, row, format!("records that the index {} follows from: {error}", index.name));
            Ok(())
        }
        built => built.map(|_| report.checked("optional indexes", 1)),
    }
}

fn denoms(context: &AuditContext<'_>, copy: &dyn Store) -> Result<(), Error> {
    let mut writer = BulkWriter::new(copy);
    store::for_each_row(context.snapshot, Denoms::SPEC, Bounds::all(), |key, _| {
        let Some(Text(denom)) = Text::from_bytes(key) else { return Ok(()) };
        let folded = (Text(denom.to_lowercase()), Text(denom)).to_bytes();
        writer.put(DenomsFolded::SPEC, folded, Vec::new())
    })?;
    Ok(writer.finish(Durability::Buffered)?)
}

/// Writes the hash index of the records of `R`, and checks that these are 1 to `last`.
fn hashes<R: Hashed>(
    context: &AuditContext<'_>,
    copy: &dyn Store,
    last: u64,
    report: &mut Report,
) -> Result<(), Error> {
    let mut by_hash = Rebuild::<R::ByHash>::new(copy);
    let (mut n, mut chunk) = (0, Vec::new());
    // Unknown after a row that does not decode.
    let mut next = Some(1);
    let missing = |seq: u64, report: &mut Report| {
        report.row("missing record", (R::SPEC, &seq.to_be_bytes(), None), "a record");
    };
    store::for_each_row(context.snapshot, R::SPEC, Bounds::all(), |key, value| {
        let Some(first) = u64::from_bytes(key) else { return Ok(()) };
        let row = (R::SPEC, key, Some(value));
        if let Some(next) = next.filter(|next| *next != first && *next <= last) {
            missing(next, report);
        }
        let records = match records::<R>(context, first, value, &mut chunk) {
            Ok(records) => records,
            Err(reason) => {
                report.row("record", row, reason);
                next = None;
                return Ok(());
            }
        };
        let after = first.saturating_add(records.len() as u64);
        next = Some(after);
        n += records.len() as u64;
        if after > last + 1 {
            report.row("stray record", row, format!("none above {last}"));
        }
        for (place, record) in (0..).zip(records) {
            match record_hash(&chunk[record]) {
                Ok(prefix) => by_hash.add((prefix, first.saturating_add(place), place))?,
                Err(reason) => report.row("record", row, reason),
            }
        }
        Ok::<(), Error>(())
    })?;
    if let Some(next) = next.filter(|next| *next <= last) {
        missing(next, report);
    }
    report.checked("records", n);
    by_hash.finish()
}

/// Decompresses a row to `chunk` and returns the places of its records.
fn records<R: Records>(
    context: &AuditContext<'_>,
    first: u64,
    payload: &[u8],
    chunk: &mut Vec<u8>,
) -> Result<Vec<Range<usize>>, String> {
    chunk.clear();
    context.codec.decode_into(R::SPEC, first, payload, chunk).map_err(|error| error.to_string())?;
    let records = Chunk::ranges(chunk).filter(|records| !records.is_empty());
    records.ok_or_else(|| "records with their lengths".to_owned())
}

/// The members of a call frame that follow from its place.
#[derive(Deserialize)]
struct Frame {
    height: u64,
    hash: String,
}

/// Writes the rows of call frames by height, and checks their sequence.
fn calls(context: &AuditContext<'_>, copy: &dyn Store, report: &mut Report) -> Result<(), Error> {
    let mut writer = BulkWriter::new(copy);
    let mut next = 1;
    let mut block: Option<(u64, BlockCalls)> = None;
    let mut tx = HashPrefix::default();
    let by_height = |writer: &mut BulkWriter<'_>, (height, calls): (u64, BlockCalls)| {
        writer.put(CallsByHeight::SPEC, height.to_bytes(), Message(calls).encoded())
    };
    store::for_each_row(context.snapshot, Calls::SPEC, Bounds::all(), |key, value| {
        let Some(seq) = u64::from_bytes(key) else { return Ok(()) };
        let row = (Calls::SPEC, key, Some(value));
        if seq != next {
            report.row("sequence of call frames", row, format!("frames from {next} on"));
        }
        next = seq;
        let frames = frames(context, seq, value).unwrap_or_else(|reason| {
            report.row("record of call frames", row, reason);
            Vec::new()
        });
        for (height, hash) in frames {
            match &mut block {
                Some((known, calls)) if *known == height => match calls.counts.last_mut() {
                    Some(count) if tx == hash => *count += 1,
                    _ => calls.counts.push(1),
                },
                _ => {
                    let calls = BlockCalls { first: next, counts: vec![1] };
                    if let Some(done) = block.replace((height, calls)) {
                        by_height(&mut writer, done)?;
                    }
                }
            }
            tx = hash;
            next += 1;
        }
        Ok::<(), Error>(())
    })?;
    block.map_or(Ok(()), |last| by_height(&mut writer, last))?;
    writer.finish(Durability::Buffered)?;
    report.checked("call frames", next - 1);
    if next != context.last_call() + 1 {
        let (key, stored) = (meta::key::<CallLane>().to_bytes(), format!("{:?}", context.calls));
        let row = (Meta::SPEC, key.as_slice(), Some(stored.as_bytes()));
        report.row("lane of internal transactions", row, format!("{} frames", next - 1));
    }
    Ok(())
}

/// Height and hash of each frame of a chunk.
fn frames(context: &AuditContext<'_>, seq: u64, payload: &[u8]) -> Result<Vec<(u64, HashPrefix)>, String> {
    let mut chunk = Vec::new();
    let ranges = records::<Calls>(context, seq, payload, &mut chunk)?;
    let frame = |range: Range<usize>| {
        let frame: Frame =
            serde_json::from_slice(&chunk[range]).map_err(|error| format!("a frame: {error}"))?;
        let digits = frame.hash.strip_prefix("0x").unwrap_or_default();
        let hash = hex::decode(digits).ok().and_then(|hash| <[u8; 32]>::try_from(hash).ok());
        Ok((frame.height, hash_prefix(&hash.ok_or("a frame with the hash of its transaction")?)))
    };
    ranges.into_iter().map(frame).collect()
}

/// Writes the token of the account for each balance, and a holder if it is not zero.
fn holders(context: &AuditContext<'_>, copy: &dyn Store, report: &mut Report) -> Result<(), Error> {
    let (mut writer, mut n) = (BulkWriter::new(copy), 0);
    store::for_each_row(context.snapshot, Balances::SPEC, Bounds::all(), |key, value| {
        n += 1;
        let Some((contract, account)) = <(Address, Address)>::from_bytes(key) else { return Ok(()) };
        writer.put(AccountTokens::SPEC, (account, contract).to_bytes(), Vec::new())?;
        match amount_of(value) {
            Some(amount) if amount == [0; 32] => {}
            Some(amount) => {
                writer.put(Holders::SPEC, (contract, (amount, account)).to_bytes(), Vec::new())?;
            }
            None => report.row("balance", (Balances::SPEC, key, Some(value)), "at most 256 bits"),
        }
        Ok::<(), Error>(())
    })?;
    writer.finish(Durability::Buffered)?;
    report.checked("balances", n);
    let mut writer = BulkWriter::new(copy);
    store::ranked::index_items::<Holders>(&*copy.snapshot()?, &mut writer)?;
    Ok(writer.finish(Durability::Buffered)?)
}
