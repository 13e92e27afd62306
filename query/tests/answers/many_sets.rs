//! Filters by message types over thousands of message-type sets, which strangers can create.

use std::collections::BTreeSet;

use crate::hand_made::{BlockPlan, HandMade, Placed, TYPES, TxPlan, account};
use crate::streams::client::{Client, serve};
use proptest::prelude::*;
use serde_json::Value;

/// A chain in which each of `n` transactions has other types. Most are of account 0; account 1 has every 50th.
fn made(n: usize) -> HandMade {
    let mut made = HandMade::new("evm", 1);
    let tx = |i: usize| TxPlan {
        involved: BTreeSet::from([u8::from(i.is_multiple_of(50))]),
        signers: BTreeSet::from([0]),
        // A product with an odd number is another one for each number of 12 bits.
        types: (0..TYPES.len()).filter(|bit| ((i * 2731) >> bit) & 1 == 1).collect(),
    };
    let txs: Vec<TxPlan> = (0..n).map(tx).collect();
    for txs in txs.chunks(40) {
        made.add(&BlockPlan { txs: txs.to_vec(), evm_txs: Vec::new() });
    }
    made
}

/// The numbers of the transactions that a filter selects, one by one.
fn naive(made: &HandMade, types: &[usize], wanted: impl Fn(&Placed<TxPlan>) -> bool) -> Vec<u64> {
    let has = |tx: &Placed<TxPlan>| wanted(tx) && types.iter().any(|name| tx.plan.types.contains(name));
    (1..).zip(&made.txs).filter(|(_, tx)| has(tx)).map(|(seq, _)| seq).collect()
}

fn rows(body: &Value) -> Vec<u64> {
    body["txs"].as_array().unwrap().iter().map(|tx| tx["n"].as_u64().unwrap()).collect()
}

fn filter(types: &[usize]) -> String {
    types.iter().map(|name| TYPES[*name]).collect::<Vec<_>>().join(",")
}

#[test]
fn a_filter_finds_the_same_as_a_search_one_by_one_however_many_sets_there_are() {
    let made = made(3000);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(20));
    let types = prop::collection::btree_set(0..TYPES.len(), 1..4);
    let walk = (types, 0..3200_usize, 1..200_usize, any::<bool>());
    let checked = runner.run(&walk, |(types, offset, limit, reverse)| {
        let types: Vec<usize> = types.into_iter().collect();
        let of_one = format!("/by_account/{}", account(1).to_hex());
        let lists = [
            (String::new(), naive(&made, &types, |_| true)),
            ("/by_height/7".to_owned(), naive(&made, &types, |tx| tx.height == 7)),
            (of_one, naive(&made, &types, |tx| tx.plan.involved.contains(&1))),
            (
                format!("/by_account/{}?is_signer=true", account(0).to_hex()),
                naive(&made, &types, |tx| tx.plan.signers.contains(&0)),
            ),
            (format!("/by_account/{}", account(3).to_hex()), Vec::new()),
        ];
        for (path, mut expected) in lists {
            if reverse {
                expected.reverse();
            }
            let mark = if path.contains('?') { '&' } else { '?' };
            let paging = format!("pagination.limit={limit}&pagination.reverse={reverse}");
            let list = format!("/indexer/tx/v1/txs{path}{mark}msgs={}&{paging}", filter(&types));
            let (status, at) = made.get(&format!("{list}&pagination.offset={offset}"));
            prop_assert_eq!(status, 200, "{}: {}", list, at);
            let (start, end) = (offset.min(expected.len()), (offset + limit).min(expected.len()));
            prop_assert_eq!(rows(&at), &expected[start..end], "{}", list);
            prop_assert_eq!(&at["pagination"]["total"], &expected.len().to_string(), "{}", list);
            if let Some(key) = at["pagination"]["next_key"].as_str() {
                let (_, next) = made.get(&format!("{list}&pagination.key={key}"));
                let after = (end + limit).min(expected.len());
                prop_assert_eq!(rows(&next), &expected[end..after], "{}", list);
            }
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn a_stream_of_a_filter_sends_the_rows_of_its_list_however_many_sets_there_are() {
    let mut made = made(1200);
    let server = serve(crate::hand_made::indexer(&made.store));
    let start = Client::open(server.address(), "/indexer/stream/v1/blocks", None).unwrap().next().unwrap();
    assert_eq!(start.name, "start");
    let more = self::made(1000);
    for (types, of_account) in [(vec![0], false), (vec![3, 7], false), (vec![2], true)] {
        let account = if of_account { format!("&account={}", account(1).to_hex()) } else { String::new() };
        let target = format!("/indexer/stream/v1/txs?msgs={}{account}", filter(&types));
        let mut client = Client::open(server.address(), &target, None).unwrap();
        assert_eq!(client.next().unwrap().name, "start");
        let before = made.txs.len() as u64;
        for txs in more.txs.chunks(100) {
            made.add(&BlockPlan { txs: txs.iter().map(|tx| tx.plan.clone()).collect(), evm_txs: Vec::new() });
        }
        let expected: Vec<u64> = naive(&made, &types, |tx| !of_account || tx.plan.involved.contains(&1))
            .into_iter()
            .filter(|seq| *seq > before)
            .collect();
        let events = client.take(expected.len());
        let seqs: Vec<u64> = events.iter().map(|event| event.data["n"].as_u64().unwrap()).collect();
        assert_eq!(seqs, expected, "{target}");
        // From the middle, on another connection.
        let middle = events.len() / 2;
        let mut again = Client::open(server.address(), &target, Some(&events[middle].id)).unwrap();
        assert_eq!(again.take(events.len() - middle - 1), events[middle + 1..], "{target}");
    }
}
