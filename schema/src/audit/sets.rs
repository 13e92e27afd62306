//! Check of the message-type sets against their transaction lists, and against the record of the first transaction.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use store::key::Text;
use store::{Bounds, COUNT, Key as _, List as _, Message, Table, Value as _, prefix_end};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::msg_set::{MsgSet, MsgSetByNames, MsgSetByType, MsgSets, joined};
use crate::tx::{SetTxs, Txs};

#[derive(Deserialize)]
struct Record {
    tx: Tx,
}

#[derive(Deserialize)]
struct Tx {
    body: Body,
}

#[derive(Deserialize)]
struct Body {
    messages: Vec<Typed>,
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "@type")]
    name: String,
}

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let (mut sets, mut by_names, mut by_type) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (number, set) in expected(ground, report)? {
        by_names.insert(Text(joined(&set.names)).to_bytes(), encoded(&u64::from(number)));
        for name in &set.names {
            by_type.insert((Text(name.clone()), number).to_bytes(), Vec::new());
        }
        sets.insert(number.to_bytes(), encoded(&Message(set)));
    }
    report.checked("message-type sets", sets.len() as u64);
    compare::<MsgSets>(ground, sets, report)?;
    compare::<MsgSetByNames>(ground, by_names, report)?;
    compare::<MsgSetByType>(ground, by_type, report)
}

/// The sets that transactions use, ordered by number.
fn expected(ground: &Ground<'_>, report: &mut Report) -> Result<Vec<(u32, MsgSet)>, Error> {
    let (start, end) = ([SetTxs::SPEC.tag], prefix_end(&[SetTxs::SPEC.tag]));
    let mut numbers = BTreeSet::new();
    let add = |key: &[u8], numbers: &mut BTreeSet<u32>| numbers.extend(u32::from_bytes(key));
    store::for_each_row(ground.snapshot, COUNT, Bounds { start: &start, end: end.as_deref() }, |key, _| {
        add(key.get(1..).unwrap_or_default(), &mut numbers);
        Ok::<(), Error>(())
    })?;
    // A set whose length is lost still has its first entry.
    store::for_each_row(ground.snapshot, MsgSets::SPEC, Bounds::all(), |key, _| {
        add(key, &mut numbers);
        Ok::<(), Error>(())
    })?;
    let mut sets = Vec::new();
    for number in numbers {
        let entry = [&number.to_bytes()[..], &0_u64.to_be_bytes()].concat();
        let first = ground.snapshot.get(SetTxs::SPEC, &entry)?;
        let Some(first_tx) = first.as_deref().and_then(u64::decode) else { continue };
        let stored = ground.snapshot.get(MsgSets::SPEC, &number.to_bytes())?;
        let stored = stored.as_deref().and_then(Message::<MsgSet>::decode).map(|Message(set)| set.names);
        let names = match names(ground, first_tx)? {
            Some(names) => names,
            None => stored.clone().unwrap_or_default(),
        };
        if stored.as_ref() != Some(&names) {
            // The record may be the damaged one.
            report.suspect(ground.heights.of_tx(first_tx));
        }
        sets.push((number, MsgSet { names, first_tx }));
    }
    Ok(sets)
}

/// The message types in the record of a transaction; `None` if the record has none or does not decode.
fn names(ground: &Ground<'_>, seq: u64) -> Result<Option<Vec<String>>, Error> {
    let Some(payload) = ground.snapshot.get(Txs::SPEC, &seq.to_be_bytes())? else { return Ok(None) };
    let mut json = Vec::new();
    // The check of records reports this.
    if ground.codec.decode_into(Txs::SPEC, seq, &payload, &mut json).is_err() {
        return Ok(None);
    }
    let Ok(Record { tx: Tx { body } }) = serde_json::from_slice(&json) else { return Ok(None) };
    let name = |Typed { name }: &Typed| name.strip_prefix('/').unwrap_or(name).to_owned();
    let names: BTreeSet<String> = body.messages.iter().map(name).collect();
    Ok((!names.is_empty()).then(|| names.into_iter().collect()))
}

fn encoded(value: &impl store::Value) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Compares the rows of a small table with the expected ones.
fn compare<T: Table>(
    ground: &Ground<'_>,
    mut expected: BTreeMap<Vec<u8>, Vec<u8>>,
    report: &mut Report,
) -> Result<(), Error> {
    store::for_each_row(ground.snapshot, T::SPEC, Bounds::all(), |key, value| {
        let wanted = expected.remove(key);
        if wanted.as_deref() != Some(value) {
            let words = wanted.as_deref().map_or_else(|| "nothing".to_owned(), super::report::bytes);
            report.row("message-type set", (T::SPEC, key, Some(value)), words, Remedy::Row(wanted));
        }
        Ok::<(), Error>(())
    })?;
    for (key, value) in expected {
        let words = super::report::bytes(&value);
        report.row("message-type set", (T::SPEC, &key, None), words, Remedy::Row(Some(value)));
    }
    Ok(())
}
