//! Full comparison with a second index of the same chain: complete, and as slow as indexing.

use std::sync::Arc;

use node::Node;
use schema::audit::report::{Write, bytes};
use schema::audit::{Ground, Plan, Remedy, Report, diff};
use schema::meta::{self, CallLane, Meta, Named, RichLane};
use schema::payload::Codec;
use schema::{TABLES, digest, evm_tx, internal_tx, rich, rollback, tx};
use store::{Key as _, List as _, RANK, Snapshot, Store, Table as _, TableSpec};
use tokio::sync::watch;

use super::reindex::{config, run_to};
use crate::{Error, Ingest};

/// Tables whose values are compressed records.
const RECORDS: [&TableSpec; 3] = [tx::Txs::SPEC, evm_tx::EvmTxs::SPEC, internal_tx::Calls::SPEC];

const OF_CALLS: [&TableSpec; 4] = [
    internal_tx::Calls::SPEC,
    internal_tx::CallsByHash::SPEC,
    internal_tx::CallsByHeight::SPEC,
    internal_tx::AccountCalls::SPEC,
];

const OF_RICH_LIST: [&TableSpec; 6] = [
    rich::Erc20s::SPEC,
    rich::NewContracts::SPEC,
    rich::Balances::SPEC,
    rich::Holders::SPEC,
    rich::Denoms::SPEC,
    rich::DenomsFolded::SPEC,
];

/// Indexes the chain into `scratch`, up to the height of the database, and compares every row. Its findings replace all
/// other repair plans: the correct rows are known.
pub(super) async fn compare(
    node: &Arc<Node>,
    ground: &Ground<'_>,
    scratch: Arc<dyn Store>,
    report: &mut Report,
) -> Result<(), Error> {
    let height = ground.blocks.height;
    if height == 0 {
        return Ok(());
    }
    let (earlier, mut left_out) = (report.plan.clone(), digest::EXCLUDED.to_vec());
    left_out.push(Meta::SPEC);
    let ingest =
        Ingest::prepare(config(ground.snapshot, &ground.identity)?, Arc::clone(node), Arc::clone(&scratch));
    let ingest = ingest.await?;
    let (_nobody, stop) = watch::channel(false);
    let reached = run_to(&ingest, height, stop).await?;
    if reached < height {
        let remedy = "wait for the node, or add an endpoint that has come further";
        return Err(Error::NothingToCompare {
            earliest: ground.identity.start_height,
            latest: reached,
            last: height,
            remedy,
        });
    }
    rollback::rollback(&*scratch, height)?;

    let made = scratch.snapshot()?;
    let again: Option<CallLane> = meta::read(&*made)?;
    let begins_at = |lane: &Option<CallLane>| lane.as_ref().map_or(0, |lane| lane.complete_from);
    if ground.calls.as_ref().is_some_and(|lane| lane.height < height) {
        report.unchecked("internal transactions, whose lane is behind", 1);
        left_out.extend(OF_CALLS);
    } else if begins_at(&ground.calls) != begins_at(&again) {
        report.unchecked("internal transactions, of which some were pruned in one of the two indexes", 1);
        left_out.extend(OF_CALLS);
    } else {
        lane::<CallLane>(ground, &*made, report)?;
    }
    lane::<meta::BlockLane>(ground, &*made, report)?;
    let remade: Option<RichLane> = meta::read(&*made)?;
    if ground.rich != remade {
        // A later baseline, taken because the node has pruned the first, gives another history.
        report.unchecked("the rich list, which is at another height or began at another", 1);
        left_out.extend(OF_RICH_LIST);
    }
    let codec = Codec::load(&*made)?;
    for spec in TABLES.iter().filter(|spec| !has(&left_out, spec)) {
        let lists_left_out = |key: &[u8]| {
            let tag = key.first().copied().unwrap_or_default();
            (spec.tag == store::COUNT.tag || spec.tag == RANK.tag)
                && left_out.iter().any(|left| left.tag == tag)
        };
        let mut rows = 0;
        diff::compare((ground.snapshot, &*made), spec, &[], |key, stored, expected| {
            rows += 1;
            let same = stored == expected
                || has(&RECORDS, spec) && same_record(ground, &codec, spec, stored, expected);
            if !same && !lists_left_out(key) {
                let words = expected.map_or_else(|| "nothing".to_owned(), bytes);
                report.row(
                    "row unlike a new index's",
                    (spec, key, stored),
                    words,
                    Remedy::Row(owned(expected)),
                );
            }
            Ok(())
        })?;
        report.checked("rows with a new index", rows);
    }
    let of_rich_list = if has(&left_out, rich::Balances::SPEC) { earlier } else { Plan::default() };
    let known = earlier_rows(&report.plan, &of_rich_list);
    report.plan = Plan {
        rows: known,
        rich_list: of_rich_list.rich_list,
        balances: of_rich_list.balances,
        ..Plan::default()
    };
    Ok(())
}

/// The rows from the comparison; all others were found by other means.
fn earlier_rows(plan: &Plan, earlier: &Plan) -> Vec<Write> {
    let of_rich_list = |spec: &TableSpec| has(&OF_RICH_LIST, spec) || spec.tag == RANK.tag;
    let old = earlier.rows.iter().filter(|(spec, ..)| of_rich_list(spec)).cloned();
    old.chain(plan.rows.iter().cloned()).collect()
}

fn has(specs: &[&'static TableSpec], spec: &TableSpec) -> bool {
    specs.iter().any(|other| other.tag == spec.tag)
}

fn owned(value: Option<&[u8]>) -> Option<Vec<u8>> {
    value.map(<[u8]>::to_vec)
}

/// Whether two payloads are equal after decompression.
fn same_record(
    ground: &Ground<'_>,
    codec: &Codec,
    spec: &'static TableSpec,
    stored: Option<&[u8]>,
    made: Option<&[u8]>,
) -> bool {
    let (Some(stored), Some(made)) = (stored, made) else { return false };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let stored = ground.codec.decode_into(spec, 0, stored, &mut a);
    let made = codec.decode_into(spec, 0, made, &mut b);
    stored.is_ok() && made.is_ok() && a == b
}

fn lane<M: Named + PartialEq>(
    ground: &Ground<'_>,
    made: &dyn Snapshot,
    report: &mut Report,
) -> Result<(), Error> {
    let key = meta::key::<M>().to_bytes();
    let (stored, made) = (ground.snapshot.get(Meta::SPEC, &key)?, made.get(Meta::SPEC, &key)?);
    if stored != made {
        let words = made.as_deref().map_or_else(|| "nothing".to_owned(), bytes);
        report.row(
            "lane unlike a new index's",
            (Meta::SPEC, &key, stored.as_deref()),
            words,
            Remedy::Row(made),
        );
    }
    Ok(())
}
