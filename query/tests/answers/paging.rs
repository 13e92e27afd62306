//! Every list of the API, page by page, against a plain model of the written rows.

use std::collections::BTreeSet;

use crate::hand_made::{BlockPlan, EvmTxPlan, HandMade, Placed, TYPES, TxPlan, account};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

/// Number of accounts in use; one more is requested.
const ACCOUNTS: u8 = 4;

/// A list of the API with its expected sequences, ascending.
struct Listing {
    path: String,
    /// Part of the query, with `&` in front, if any.
    filter: String,
    member: &'static str,
    rows: Vec<u64>,
    /// If it differs from the number of rows: the latest height.
    total: Option<u64>,
}

impl Listing {
    fn new(path: impl Into<String>, member: &'static str, rows: Vec<u64>) -> Self {
        Self { path: path.into(), filter: String::new(), member, rows, total: None }
    }

    fn filtered(mut self, filter: &str) -> Self {
        self.filter.push_str(filter);
        self
    }

    fn total(&self) -> u64 {
        self.total.unwrap_or(self.rows.len() as u64)
    }

    /// The rows in the order of a request.
    fn ordered(&self, reverse: bool) -> Vec<u64> {
        let mut rows = self.rows.clone();
        if reverse {
            rows.reverse();
        }
        rows
    }
}

/// A page as decoded by a client.
#[derive(Debug, PartialEq)]
struct Page {
    rows: Vec<u64>,
    next: Option<String>,
    previous: Option<String>,
    total: String,
}

fn page(made: &HandMade, list: &Listing, paging: &str) -> Page {
    let target = format!("{}?{paging}{}", list.path, list.filter);
    let (status, body) = made.get(&target);
    assert_eq!(status, 200, "{target}: {body}");
    let key = |name: &str| body["pagination"][name].as_str().map(str::to_owned);
    let rows = body[list.member].as_array().unwrap_or_else(|| panic!("{target}: {body}"));
    assert_eq!(body["pagination"].as_object().unwrap().len(), 3, "{target}");
    Page {
        rows: rows.iter().map(|row| row["n"].as_u64().unwrap()).collect(),
        next: key("next_key"),
        previous: key("previous_key"),
        total: body["pagination"]["total"].as_str().unwrap().to_owned(),
    }
}

/// Sequences of the `wanted` items.
fn seqs<T>(all: &[Placed<T>], wanted: impl Fn(&Placed<T>) -> bool) -> Vec<u64> {
    (1..).zip(all).filter(|(_, one)| wanted(one)).map(|(seq, _)| seq).collect()
}

/// Every list of the API, filters included.
fn listings(made: &HandMade) -> Vec<Listing> {
    let mut lists = vec![
        Listing {
            total: Some(made.height),
            ..Listing::new("/indexer/block/v1/blocks", "blocks", (made.start_height..=made.height).collect())
        },
        Listing::new("/indexer/tx/v1/txs", "txs", seqs(&made.txs, |_| true)),
        Listing::new("/indexer/tx/v1/evm-txs", "txs", seqs(&made.evm_txs, |_| true)),
        Listing::new("/indexer/tx/v1/evm-internal-txs", "internal_txs", seqs(&made.calls, |_| true)),
    ];
    for (filter, wanted) in filters() {
        let has = |tx: &Placed<TxPlan>| tx.plan.types.iter().any(|name| wanted.contains(name));
        lists.push(Listing::new("/indexer/tx/v1/txs", "txs", seqs(&made.txs, has)).filtered(filter));
        for n in 0..=ACCOUNTS {
            let path = format!("/indexer/tx/v1/txs/by_account/{}", account(n).to_bech32("init"));
            let involved = seqs(&made.txs, |tx| has(tx) && tx.plan.involved.contains(&n));
            let signed = seqs(&made.txs, |tx| has(tx) && tx.plan.signers.contains(&n));
            lists.push(Listing::new(&path, "txs", involved).filtered(filter));
            lists.push(Listing::new(&path, "txs", signed).filtered("&is_signer=true").filtered(filter));
        }
    }
    for n in 0..=ACCOUNTS {
        lists.extend(of_account(made, n));
    }
    for height in [made.start_height, made.height, made.height / 2 + 1, made.height + 1] {
        lists.extend(of_height(made, height));
    }
    for tx in &made.evm_txs {
        let rows = seqs(&made.calls, |call| call.hash == tx.hash);
        let path = format!("/indexer/tx/v1/evm-internal-txs/{}", chain::hash::to_hex(&tx.hash));
        lists.push(Listing::new(path, "internal_txs", rows));
    }
    lists
}

/// `msgs` in its spellings, with the numbers of the types that match.
fn filters() -> Vec<(&'static str, Vec<usize>)> {
    assert_eq!(TYPES[..4], ["a.v1.MsgOne", "a.v1.MsgTwo", "b.v1.MsgOne", "c.v1.MsgOne"]);
    vec![
        ("&msgs=a.v1.MsgOne", vec![0]),
        ("&msgs=a.v1.MsgOne,c.v1.MsgOne", vec![0, 3]),
        ("&msgs=b.v1.MsgOne&msgs=a.v1.MsgTwo&msgs=a.v1.MsgOne&msgs=b.v1.MsgOne", vec![0, 1, 2]),
        ("&msgs=%2Fa.v1.MsgTwo,no.such.Msg", vec![1]),
        ("&msgs=no.such.Msg", vec![]),
        ("&msgs=*", vec![0, 1, 2, 3]),
        ("&msgs=a.v1.MsgOne,*", vec![0, 1, 2, 3]),
    ]
}

fn of_account(made: &HandMade, n: u8) -> Vec<Listing> {
    let (hex, bech32) = (account(n).to_hex(), account(n).to_bech32("init"));
    let evm = format!("/indexer/tx/v1/evm-txs/by_account/{hex}");
    vec![
        Listing::new(
            format!("/indexer/tx/v1/txs/by_account/{hex}"),
            "txs",
            seqs(&made.txs, |tx| tx.plan.involved.contains(&n)),
        ),
        Listing::new(
            format!("/indexer/tx/v1/txs/by_account/{bech32}"),
            "txs",
            seqs(&made.txs, |tx| tx.plan.signers.contains(&n)),
        )
        .filtered("&is_signer=true"),
        Listing::new(&evm, "txs", seqs(&made.evm_txs, |tx| tx.plan.involved.contains(&n))),
        Listing::new(&evm, "txs", seqs(&made.evm_txs, |tx| tx.plan.from == n)).filtered("&is_signer=true"),
        Listing::new(
            format!("/indexer/tx/v1/evm-internal-txs/by_account/{bech32}"),
            "internal_txs",
            seqs(&made.calls, |call| call.plan.0 == n || call.plan.1 == n),
        ),
    ]
}

fn of_height(made: &HandMade, height: u64) -> Vec<Listing> {
    let txs = format!("/indexer/tx/v1/txs/by_height/{height}");
    let mut lists = vec![
        Listing::new(&txs, "txs", seqs(&made.txs, |tx| tx.height == height)),
        Listing::new(
            format!("/indexer/tx/v1/evm-txs/by_height/{height}"),
            "txs",
            seqs(&made.evm_txs, |tx| tx.height == height),
        ),
        Listing::new(
            format!("/indexer/tx/v1/evm-internal-txs/by_height/{height}"),
            "internal_txs",
            seqs(&made.calls, |call| call.height == height),
        ),
    ];
    for (filter, wanted) in filters() {
        let has = |tx: &Placed<TxPlan>| {
            tx.height == height && tx.plan.types.iter().any(|name| wanted.contains(name))
        };
        lists.push(Listing::new(&txs, "txs", seqs(&made.txs, has)).filtered(filter));
    }
    lists
}

/// Walks a whole list by `next_key`, and back by `previous_key`.
fn walk(made: &HandMade, list: &Listing, limit: usize, reverse: bool) {
    let wanted = list.ordered(reverse);
    let paging = format!("pagination.limit={limit}&pagination.reverse={reverse}");
    let (mut pages, mut seen) = (vec![page(made, list, &paging)], Vec::new());
    while let Some(key) = &pages[pages.len() - 1].next {
        assert!(pages.len() <= wanted.len(), "{}{}: pages without end", list.path, list.filter);
        pages.push(page(made, list, &format!("{paging}&pagination.key={key}")));
    }
    for (i, one) in pages.iter().enumerate() {
        seen.extend_from_slice(&one.rows);
        assert_eq!(one.total, list.total().to_string());
        assert!(i + 1 == pages.len() || one.rows.len() == limit, "a page before the last is full");
        let Some(key) = &one.previous else {
            assert_eq!(i, 0, "only the first page has none before it");
            continue;
        };
        assert_eq!(page(made, list, &format!("{paging}&pagination.key={key}")), pages[i - 1]);
    }
    assert_eq!(seen, wanted, "{}{} {paging}", list.path, list.filter);
}

/// A page at an offset, past the end too.
fn offset(made: &HandMade, list: &Listing, offset: usize, limit: usize, reverse: bool) {
    let wanted = list.ordered(reverse);
    let paging = format!("pagination.limit={limit}&pagination.reverse={reverse}");
    let at = page(made, list, &format!("{paging}&pagination.offset={offset}"));
    let rows: Vec<u64> = wanted.iter().skip(offset).take(limit).copied().collect();
    assert_eq!(at.rows, rows, "{}{} {paging} {offset}", list.path, list.filter);
    assert_eq!(
        (at.previous.is_some(), at.next.is_some()),
        (offset > 0 && !wanted.is_empty(), offset + limit < wanted.len())
    );
    // The deployed servers' cursor of the same position.
    let key = ["MA", "MQ", "Mg", "Mw", "NA"].get(offset);
    if let Some(key) = key {
        assert_eq!(page(made, list, &format!("{paging}&pagination.key={key}")), at);
    }
    if let Some(key) = &at.previous {
        let before = page(made, list, &format!("{paging}&pagination.key={key}"));
        let end = offset.min(wanted.len());
        assert_eq!(before.rows, wanted[end.saturating_sub(limit)..end]);
    }
    let uncounted =
        page(made, list, &format!("{paging}&pagination.offset={offset}&pagination.count_total=false"));
    let total = list.total.unwrap_or(0).to_string();
    assert_eq!(uncounted, Page { total, ..at });
}

/// A cursor of one direction, used in the other: it gives the rows on its other side.
fn flip(made: &HandMade, list: &Listing, limit: usize, reverse: bool) {
    let wanted = list.ordered(reverse);
    let first = page(made, list, &format!("pagination.limit={limit}&pagination.reverse={reverse}"));
    let Some(key) = first.next else { return };
    let flipped = format!("pagination.limit=1000&pagination.reverse={}&pagination.key={key}", !reverse);
    let mut before = wanted[..limit - 1].to_vec();
    before.reverse();
    assert_eq!(page(made, list, &flipped).rows, before);
}

fn plans() -> impl Strategy<Value = Vec<BlockPlan>> {
    let accounts = || prop::collection::btree_set(0..ACCOUNTS, 0..3);
    let types = prop::collection::btree_set(0..4_usize, 0..3);
    let tx = (accounts(), accounts(), types).prop_map(|(involved, signers, types)| TxPlan {
        involved,
        signers,
        types,
    });
    let frames = prop_oneof![
        4 => prop::collection::vec((0..ACCOUNTS, 0..ACCOUNTS), 0..4),
        1 => prop::collection::vec((0..ACCOUNTS, 0..ACCOUNTS), 30..70),
    ];
    let evm_tx = (accounts(), 0..ACCOUNTS, frames).prop_map(|(involved, from, frames)| EvmTxPlan {
        involved,
        from,
        frames,
    });
    let block = (prop::collection::vec(tx, 0..6), prop::collection::vec(evm_tx, 0..6))
        .prop_map(|(txs, evm_txs)| BlockPlan { txs, evm_txs });
    prop::collection::vec(block, 1..8)
}

fn made(plans: &[BlockPlan], start_height: u64) -> HandMade {
    let mut made = HandMade::new("evm", start_height);
    for plan in plans {
        made.add(plan);
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_walk_returns_every_row_once_in_order_in_both_directions(
        plans in plans(), start in 1_u64..6, picks in prop::collection::vec(any::<Index>(), 40)
    ) {
        let made = made(&plans, start);
        for (list, pick) in listings(&made).iter().zip(picks.iter().cycle()) {
            let limit = 1 + pick.index(list.rows.len() + 2);
            walk(&made, list, limit, pick.index(2) == 0);
            flip(&made, list, limit, pick.index(2) == 1);
        }
    }

    #[test]
    fn an_offset_is_a_position_in_the_list_at_any_depth(
        plans in plans(), start in 1_u64..6, picks in prop::collection::vec(any::<Index>(), 40)
    ) {
        let made = made(&plans, start);
        for (list, pick) in listings(&made).iter().zip(picks.iter().cycle()) {
            offset(&made, list, pick.index(list.rows.len() + 3), 1 + pick.index(5), pick.index(2) == 0);
        }
    }

    #[test]
    fn new_rows_do_not_affect_a_descending_walk(plans in plans(), limit in 1_usize..5) {
        for i in (0..listings(&made(&plans, 1)).len()).step_by(5) {
            // Anew for each list: every page of a walk adds rows to the lists of the next one.
            let mut made = made(&plans, 1);
            let list = listings(&made).swap_remove(i);
            let paging = format!("pagination.limit={limit}");
            let mut one = page(&made, &list, &paging);
            let mut seen = one.rows.clone();
            while let Some(key) = one.next {
                made.add(&plans[i % plans.len()]);
                one = page(&made, &list, &format!("{paging}&pagination.key={key}"));
                seen.extend_from_slice(&one.rows);
            }
            prop_assert_eq!(seen, list.ordered(true), "{}{}", list.path, list.filter);
        }
    }
}

/// Pages that are cut by bytes: the rows of a list in both directions, from both ends, from offsets and from cursors.
#[test]
fn a_page_is_cut_by_bytes_with_cursors_to_the_rest() {
    let tx = |n: u8| TxPlan {
        involved: BTreeSet::from([n % 3]),
        signers: BTreeSet::from([0]),
        types: (0..usize::from(n % 7)).collect(),
    };
    let evm_tx = |n: u8| EvmTxPlan { involved: BTreeSet::from([0]), from: n % 2, frames: vec![(0, 1); 5] };
    let block = |n: u8| BlockPlan {
        txs: (0..6).map(|i| tx(n + i)).collect(),
        evm_txs: (0..4).map(|i| evm_tx(n + i)).collect(),
    };
    let mut made = made(&(0..5).map(block).collect::<Vec<_>>(), 1);
    for max in [1, 700, 1500] {
        let indexer = crate::hand_made::indexer(&made.store).with_page_bytes(max);
        made.app = web::app::App::new(indexer, query::ENDPOINTS).unwrap();
        let (mut cut, mut whole) = (0, 0);
        for list in listings(&made) {
            for (limit, reverse) in [(7, false), (7, true), (1000, true)] {
                let (wanted, about) = (list.ordered(reverse), format!("{}{} {max}", list.path, list.filter));
                let paging = format!("pagination.limit={limit}&pagination.reverse={reverse}");
                let (mut seen, mut at) = (Vec::new(), page(&made, &list, &paging));
                loop {
                    assert_eq!(at.total, list.total().to_string(), "{about}");
                    assert!(!at.rows.is_empty() || wanted.is_empty(), "{about}");
                    let skipped = page(&made, &list, &format!("{paging}&pagination.offset={}", seen.len()));
                    assert_eq!(skipped, at, "{about}: by offset");
                    seen.extend_from_slice(&at.rows);
                    if at.rows.len() < limit && at.next.is_some() {
                        cut += 1;
                    } else {
                        whole += 1;
                    }
                    let Some(key) = &at.next else { break };
                    at = page(&made, &list, &format!("{paging}&pagination.key={key}"));
                }
                assert_eq!(seen, wanted, "{about}");
                // Back from the last page: nothing is missing between two pages.
                let mut back = at.rows.clone();
                while let Some(key) = &at.previous {
                    at = page(&made, &list, &format!("{paging}&pagination.key={key}"));
                    assert!(!at.rows.is_empty(), "{about}");
                    back.splice(..0, at.rows.iter().copied());
                    if let Some(key) = &at.next {
                        let next = page(&made, &list, &format!("{paging}&pagination.key={key}"));
                        assert_eq!(next.rows.first(), back.get(at.rows.len()), "{about}");
                    }
                }
                assert_eq!(back, wanted, "{about}");
            }
        }
        assert!(cut > 50 && whole > 50, "{max}: {cut} {whole}");
    }
}

#[test]
fn a_page_without_a_limit_has_100_rows_newest_first() {
    let tx = TxPlan { involved: BTreeSet::new(), signers: BTreeSet::new(), types: BTreeSet::from([0]) };
    let made = made(&vec![BlockPlan { txs: vec![tx; 50], evm_txs: Vec::new() }; 3], 1);
    let (_, body) = made.get("/indexer/tx/v1/txs");
    let rows: Vec<u64> = body["txs"].as_array().unwrap().iter().map(|tx| tx["n"].as_u64().unwrap()).collect();
    assert_eq!(rows, (51..=150).rev().collect::<Vec<_>>());
    // The deployed server treats a value that is not a number of 64 bits as absent.
    for limit in ["abc", "10.5", "", "1e3", "null", "0x10", "18446744073709551616", "-9223372036854775809"] {
        assert_eq!(made.get(&format!("/indexer/tx/v1/txs?pagination.limit={limit}")).1, body, "{limit}");
        assert_eq!(made.get(&format!("/indexer/tx/v1/txs?pagination.offset={limit}")).1, body, "{limit}");
    }
    for (limit, rows) in [("%2B7", Some(7)), ("007", Some(7)), ("-1", None), ("9223372036854775807", None)] {
        let (status, body) = made.get(&format!("/indexer/tx/v1/txs?pagination.limit={limit}"));
        assert_eq!(status, if rows.is_some() { 200 } else { 400 }, "{limit}");
        assert_eq!(body["txs"].as_array().map(Vec::len), rows, "{limit}");
    }
    let (_, all) = made.get("/indexer/tx/v1/txs?pagination.limit=1000&pagination.offset=");
    assert_eq!((all["txs"].as_array().unwrap().len(), &all["pagination"]["next_key"]), (150, &Value::Null));
}
