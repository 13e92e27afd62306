//! Check of redundant lists: an account's transactions in total and by message-type set, and each transaction in
//! exactly one set.
//!
//! Memory: the longest list of an account, plus one bit per transaction.

use std::collections::BTreeSet;

use store::{Bounds, List as _, TableSpec, Value as _, prefix_end};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::tx::{AccountSetTxs, AccountTxs, SetTxs};

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    sets(ground, report)?;
    let mut of_accounts = 0;
    let mut current: Option<(Vec<u8>, BTreeSet<u64>)> = None;
    store::for_each_row(ground.snapshot, AccountTxs::SPEC, Bounds::all(), |key, value| {
        let (Some((owner, _)), Some(seq)) = (key.split_last_chunk::<8>(), u64::decode(value)) else {
            return Ok(());
        };
        match &mut current {
            Some((last, seqs)) if last == owner => {
                seqs.insert(seq);
            }
            _ => {
                if let Some((owner, seqs)) = current.replace((owner.to_vec(), BTreeSet::from([seq]))) {
                    of_accounts += account(ground, &owner, seqs, report)?;
                }
            }
        }
        Ok::<(), Error>(())
    })?;
    if let Some((owner, seqs)) = current {
        of_accounts += account(ground, &owner, seqs, report)?;
    }
    let mut by_set = 0;
    store::for_each_row(ground.snapshot, AccountSetTxs::SPEC, Bounds::all(), |_, _| {
        by_set += 1;
        Ok::<(), Error>(())
    })?;
    if by_set > of_accounts { orphans(ground, report) } else { Ok(()) }
}

/// Compares the two forms of one account's list; returns the number of entries by set.
fn account(
    ground: &Ground<'_>,
    owner: &[u8],
    mut seqs: BTreeSet<u64>,
    report: &mut Report,
) -> Result<u64, Error> {
    let end = prefix_end(owner);
    let mut n = 0;
    store::for_each_row(
        ground.snapshot,
        AccountSetTxs::SPEC,
        Bounds { start: owner, end: end.as_deref() },
        |key, value| {
            n += 1;
            if let Some(seq) = u64::decode(value)
                && !seqs.remove(&seq)
            {
                differs(ground, (AccountSetTxs::SPEC, key, Some(value)), seq, AccountTxs::SPEC, report);
            }
            Ok::<(), Error>(())
        },
    )?;
    for seq in seqs {
        differs(ground, (AccountTxs::SPEC, owner, None), seq, AccountSetTxs::SPEC, report);
    }
    Ok(n)
}

fn differs(
    ground: &Ground<'_>,
    row: (&'static TableSpec, &[u8], Option<&[u8]>),
    seq: u64,
    other: &TableSpec,
    report: &mut Report,
) {
    let expected = format!("{seq} here and in {}, or in neither", other.name);
    report.row("lists that differ", row, expected, Remedy::Index(ground.heights.of_tx(seq)));
}

/// Finds orphans: lists by set of accounts without a total list.
fn orphans(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    store::for_each_row(ground.snapshot, AccountSetTxs::SPEC, Bounds::all(), |key, value| {
        // The owner is followed by the set (4 bytes) and the ordinal (8 bytes).
        let Some(owner) = key.len().checked_sub(12).map(|len| &key[..len]) else { return Ok(()) };
        let end = prefix_end(owner);
        let bounds = Bounds { start: owner, end: end.as_deref() };
        let has_list = !ground.snapshot.scan(AccountTxs::SPEC, bounds, store::Order::Asc, 1)?.is_empty();
        if let Some(seq) = u64::decode(value).filter(|_| !has_list) {
            differs(ground, (AccountSetTxs::SPEC, key, Some(value)), seq, AccountTxs::SPEC, report);
        }
        Ok(())
    })
}

/// Checks that each transaction is in exactly one set.
fn sets(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let last = ground.blocks.txs;
    let words = usize::try_from(last / 64 + 1).unwrap_or(usize::MAX);
    let mut seen = vec![0_u64; words];
    let place = |seq: u64| (usize::try_from(seq / 64).unwrap_or(usize::MAX), 1_u64 << (seq % 64));
    store::for_each_row(ground.snapshot, SetTxs::SPEC, Bounds::all(), |key, value| {
        let Some(seq) = u64::decode(value).filter(|seq| *seq <= last) else { return Ok(()) };
        let (word, bit) = place(seq);
        if let Some(word) = seen.get_mut(word) {
            if *word & bit != 0 {
                let remedy = Remedy::Index(ground.heights.of_tx(seq));
                report.row("transaction in two sets", (SetTxs::SPEC, key, Some(value)), "one set", remedy);
            }
            *word |= bit;
        }
        Ok::<(), Error>(())
    })?;
    for seq in 1..=last {
        let (word, bit) = place(seq);
        if seen.get(word).is_some_and(|word| word & bit == 0) {
            let row = (SetTxs::SPEC, &[][..], None);
            let remedy = Remedy::Index(ground.heights.of_tx(seq));
            report.row("transaction in no set", row, format!("transaction {seq} in one"), remedy);
        }
    }
    report.checked("transactions in sets", last);
    Ok(())
}
