//! Filters by message types: the message-type sets that one selects, and a test of a single transaction.
//!
//! A set is the message types of a transaction ([`schema::msg_set`]), and a filter is the union of the lists of its sets:
//! totals are exact, and offsets arithmetic. Strangers can create any number of sets, each by a transaction, and a
//! filter costs in proportion to those that it selects. That of an account costs in proportion to the sets that the
//! account has, whatever others do. A stream tests each new transaction instead, if that costs less.

use std::borrow::Cow;

use schema::keys::{AccountKey, Role};
use schema::msg_set;
use schema::tx::{AccountSetTxs, Txs};
use serde::Deserialize;
use store::{Bounds, List, Order, Snapshot, Table, prefix_end};
use web::http_error::HttpError;
use web::limits::lane;

use crate::array::union::Union;

/// Work of reading the list of a set, as bytes ([`lane::spend`]).
const LIST_WORK: u64 = 1 << 10;

/// Maximum number of sets of a cheap filter. Of more, those that an account has are looked up, and a stream tests each
/// transaction.
const FEW: usize = 256;

/// The message-type sets that contain one of `types`, ascending.
pub(crate) fn containing_any(types: &[String], snapshot: &dyn Snapshot) -> Result<Vec<u32>, HttpError> {
    if let Some(few) = few_containing_any(types, snapshot)? {
        return Ok(few);
    }
    lane::heavy()?;
    let all = msg_set::containing_any(snapshot, types, usize::MAX).map_err(HttpError::internal)?;
    Ok(all.unwrap_or_default())
}

/// The same, or `None` if they are many.
pub(crate) fn few_containing_any(
    types: &[String],
    snapshot: &dyn Snapshot,
) -> Result<Option<Vec<u32>>, HttpError> {
    msg_set::containing_any(snapshot, types, FEW).map_err(HttpError::internal)
}

/// The union of the lists of `owners`, whose work is counted.
pub(crate) fn union<L: List>(
    snapshot: &dyn Snapshot,
    owners: Vec<L::Owner>,
) -> Result<Union<'_, L>, HttpError> {
    spend(owners.len())?;
    Union::new(snapshot, owners).map_err(HttpError::internal)
}

fn spend(lists: usize) -> Result<(), HttpError> {
    lane::spend(LIST_WORK.saturating_mul(lists as u64))
}

/// Those of `sets`, which are ascending, of which an account may have transactions: exactly, if there are many.
pub(crate) fn of_account(
    snapshot: &dyn Snapshot,
    (account, role): (AccountKey, Role),
    sets: Vec<u32>,
) -> Result<Vec<u32>, HttpError> {
    if sets.len() <= FEW {
        return Ok(sets);
    }
    let prefix = store::Key::to_bytes(&(account, role));
    let end = prefix_end(&prefix);
    let (mut found, mut rest) = (Vec::new(), sets.as_slice());
    // The next set that is wanted, then the next one that the account has from there on.
    while let Some(wanted) = rest.first() {
        spend(1)?;
        let start = [prefix.as_slice(), &wanted.to_be_bytes()].concat();
        let bounds = Bounds { start: &start, end: end.as_deref() };
        let row = snapshot.scan(AccountSetTxs::SPEC, bounds, Order::Asc, 1).map_err(HttpError::internal)?;
        let Some((key, _)) = row.first() else { break };
        let (set, _) = key[prefix.len()..].split_first_chunk().ok_or_else(|| {
            HttpError::internal(format!("table `{}`: a key without a set", AccountSetTxs::SPEC.name))
        })?;
        let set = u32::from_be_bytes(*set);
        rest = &rest[rest.partition_point(|wanted| *wanted < set)..];
        if let Some((first, after)) = rest.split_first()
            && *first == set
        {
            found.push(set);
            rest = after;
        }
    }
    Ok(found)
}

/// True if the transaction of a record has a top-level message of one of `types`, which are sorted.
pub(crate) fn has_any(record: &[u8], types: &[String]) -> Result<bool, HttpError> {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        tx: Option<Tx<'a>>,
    }
    #[derive(Deserialize)]
    struct Tx<'a> {
        #[serde(borrow)]
        body: Option<Body<'a>>,
    }
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow, default)]
        messages: Vec<Message<'a>>,
    }
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow, rename = "@type")]
        url: Cow<'a, str>,
    }
    let record: Record<'_> = serde_json::from_slice(record)
        .map_err(|error| HttpError::internal(format!("table `{}`: {error}", Txs::SPEC.name)))?;
    let messages = record.tx.and_then(|tx| tx.body).map(|body| body.messages).unwrap_or_default();
    let is_one = |message: &Message<'_>| {
        let name = message.url.strip_prefix('/').unwrap_or(&message.url);
        types.binary_search_by(|one| one.as_str().cmp(name)).is_ok()
    };
    let is_any = types.iter().any(|name| name == msg_set::ANY);
    Ok(if is_any { !messages.is_empty() } else { messages.iter().any(is_one) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chain::Account;
    use proptest::prelude::*;
    use store::{Counts, Durability, MemStore, Store, Txn};

    use super::*;

    proptest! {
        #[test]
        fn the_sets_of_an_account_are_those_of_its_lists(
            has in prop::collection::btree_set(0_u32..2000, 0..60),
            others in prop::collection::btree_set(0_u32..2000, 0..60),
            wanted in prop::collection::btree_set(0_u32..2000, FEW + 1..1000),
        ) {
            let store = MemStore::new();
            let snapshot = store.snapshot().unwrap();
            let mut counts = Counts::new(8);
            let mut txn = Txn::new(&*snapshot, &mut counts);
            let account = |n| AccountKey(Account::from_bytes(&[n; 20]).unwrap());
            for (owner, role, sets) in [
                (account(1), Role::Involved, &others),
                (account(2), Role::Involved, &has),
                (account(2), Role::Signer, &others),
                (account(3), Role::Involved, &others),
            ] {
                for set in sets {
                    txn.push::<AccountSetTxs>(&(owner, role, *set), 7).unwrap();
                }
            }
            let (batch, _) = txn.finish();
            drop(snapshot);
            store.commit(batch, Durability::Buffered).unwrap();
            let all: Vec<u32> = wanted.iter().copied().collect();
            let found = of_account(&*store.snapshot().unwrap(), (account(2), Role::Involved), all).unwrap();
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), &has & &wanted);
        }
    }

    #[test]
    fn the_messages_of_a_record_are_its_top_level_ones() {
        let types = ["a.MsgA", "b.MsgB"].map(str::to_owned);
        for (record, expected) in [
            (r#"{"tx":{"@type":"/x","body":{"messages":[{"@type":"/c.MsgC"},{"@type":"/b.MsgB"}]}}}"#, true),
            (r#"{"tx":{"body":{"messages":[{"@type":"/c.MsgC","msgs":[{"@type":"/a.MsgA"}]}]}}}"#, false),
            (r#"{"tx":{"body":{"messages":[]}}}"#, false),
            (r#"{"tx":{}}"#, false),
            (r#"{"tx":null,"code":2}"#, false),
        ] {
            assert_eq!(has_any(record.as_bytes(), &types).unwrap(), expected, "{record}");
        }
        assert!(has_any(b"{", &types).is_err());
        let any = [msg_set::ANY.to_owned()];
        for (record, expected) in [
            (r#"{"tx":{"body":{"messages":[{"@type":"/c.MsgC"}]}}}"#, true),
            (r#"{"tx":{"body":{"messages":[]}}}"#, false),
            (r#"{"tx":null,"code":2}"#, false),
        ] {
            assert_eq!(has_any(record.as_bytes(), &any).unwrap(), expected, "{record}");
        }
    }
}
