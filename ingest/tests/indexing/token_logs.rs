//! Balances of tokens whose logs have another form than the standard's.

use std::collections::BTreeMap;
use std::sync::Arc;

use chain::U256;
use replay::Recording;
use schema::rich::Address;
use testkit::recording;

use crate::planted::{
    ContractCall, ContractReply, Events, TRANSFER, balances, created, hex_of, index, log, node, token,
    transfer, word, word_of,
};

const DEPOSIT: &str = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";
const WITHDRAWAL: &str = "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65";
const MINT: &str = "0x0f6798a560793a54c3bcfe86a93cde1e73087d944c0ea20544137d4121396885";
const BURN: &str = "0xcc16f5dbb4873280815c1ee09dbd06736cffcc184412cf7a71a0fdb75d397ca5";
/// Of ERC-777.
const MINTED: &str = "0x2fe5be0146f74c5bce36c0b80911af6c7d86ff27e89d5cfa61fc681327954e5d";
const BURNED: &str = "0xa78a9be3a7b862d26933ad85fb11d80ef66b8f972d7cbba06621d583943a4098";
const SENT: &str = "0x06b541ddaa720db2b10a4d0cdac39b8d360425fc073085fac19bc82614677987";
const APPROVAL: &str = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";

const A: Address = [0x11; 20];
const B: Address = [0x22; 20];
const OPERATOR: Address = [0x33; 20];
const ZERO: Address = [0; 20];

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

/// A kind of event, its values, the number of those in topics, and the accounts to ask.
type Case<'a> = (&'a str, Vec<[u8; 32]>, usize, &'a [Address]);

/// A log of the event `kind` with `indexed` of its values in topics.
fn logged(contract: Address, kind: &str, values: &[[u8; 32]], indexed: usize) -> serde_json::Value {
    let (topics, data) = values.split_at(indexed);
    let topics: Vec<_> = std::iter::once(kind.to_owned()).chain(topics.iter().map(|it| hex_of(it))).collect();
    log(contract, &topics, data)
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_logs_in_any_form_are_asked_for_their_balances() {
    let [a, b, operator, zero, amount] =
        [word_of(A), word_of(B), word_of(OPERATOR), word_of(ZERO), word(500)];
    // The offsets and lengths of two empty texts.
    let of_777 = [word(0x60), word(0x80), word(0), word(0)];
    let with_texts = |values: &[[u8; 32]]| [values, &of_777].concat();
    let cases: Vec<Case<'_>> = vec![
        (DEPOSIT, vec![a, amount], 1, &[A]),
        (DEPOSIT, vec![a, amount], 0, &[A]),
        (DEPOSIT, vec![a, amount], 2, &[A]),
        (WITHDRAWAL, vec![a, amount], 1, &[A]),
        (TRANSFER, vec![zero, a, amount], 0, &[A]),
        (TRANSFER, vec![b, a, amount], 1, &[A, B]),
        (TRANSFER, vec![b, a, amount], 3, &[A, B]),
        (TRANSFER, vec![b, a, amount, word(1)], 2, &[A, B]),
        (TRANSFER, vec![a, zero, amount], 0, &[A, ZERO]),
        (MINT, vec![a, amount], 1, &[A]),
        (BURN, vec![a, amount], 1, &[A]),
        (MINTED, with_texts(&[operator, a, amount]), 2, &[A]),
        (BURNED, with_texts(&[operator, a, amount]), 2, &[A]),
        (SENT, with_texts(&[operator, a, b, amount]), 3, &[A, B]),
    ];
    let contract = |n: usize| [0xc0 + u8::try_from(n).unwrap(); 20];
    let mut planted = Vec::new();
    for (n, (kind, values, indexed, _)) in cases.iter().enumerate() {
        planted.extend([created(contract(n)), logged(contract(n), kind, values, *indexed)]);
    }
    // No token, an approval, and addresses that are none.
    let [silent, approving, malformed] = [[0xb0; 20], [0xb1; 20], [0xb2; 20]];
    planted.extend([
        logged(silent, DEPOSIT, &[a, amount], 1),
        logged(approving, APPROVAL, &[a, b, amount], 2),
        logged(malformed, DEPOSIT, &[[0x11; 32], amount], 1),
    ]);
    let reply = move |call: &ContractCall| match call.account() {
        _ if call.to[0] < 0xb0 || call.to != [call.to[0]; 20] => ContractReply::Recorded,
        Some(account) if call.to != silent => Some(1000 + u64::from(account[0])).into(),
        // None is an ERC-721.
        _ => ContractReply::Reverted,
    };
    let recording = evm();
    let node = node(Arc::clone(&recording), Events::from([(200, planted)]), reply).await;
    let store = index(&recording, &node, None, |_| true).await;
    for (n, (kind, _, indexed, accounts)) in cases.iter().enumerate() {
        let held = accounts.iter().map(|account| (*account, U256::from(1000 + u64::from(account[0]))));
        let what = format!("{kind} with {indexed} indexed values");
        assert_eq!(balances(&*store, contract(n)), held.collect::<BTreeMap<_, _>>(), "{what}");
        let token = token(&*store, contract(n)).unwrap();
        assert!(token.complete && !token.drifting && !token.silent, "{what}: {token:?}");
    }
    for other in [silent, approving, malformed] {
        assert_eq!(token(&*store, other), None, "{other:?}");
    }
    // A collection of NFTs, whose logs have the form of the third case.
    let apes: Address = hex::decode("a3c1690099b8db2b564fdcc3b79ffe9c4252d6bb").unwrap().try_into().unwrap();
    assert_eq!(token(&*store, apes), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrapped_ether_has_its_holders_before_any_reconciliation() {
    let weth: Address = [0xee; 20];
    let events = Events::from([
        (200, vec![created(weth)]),
        (
            201,
            vec![
                logged(weth, DEPOSIT, &[word_of(A), word(100)], 1),
                logged(weth, DEPOSIT, &[word_of(B), word(7)], 1),
            ],
        ),
        (202, vec![transfer(weth, A, OPERATOR, 30)]),
        (204, vec![logged(weth, WITHDRAWAL, &[word_of(A), word(60)], 1)]),
        (206, vec![logged(weth, DEPOSIT, &[word_of(B), word(5)], 1), transfer(weth, B, A, 2)]),
        (207, vec![transfer(weth, B, A, 1)]),
    ]);
    let reply = move |call: &ContractCall| match call.account().filter(|_| call.to == weth) {
        Some(A) => Some(match call.height {
            201 => 100,
            202..204 => 70,
            204..206 => 10,
            206 => 12,
            _ => 13,
        })
        .into(),
        Some(B) => Some(match call.height {
            ..206 => 7,
            206 => 10,
            _ => 9,
        })
        .into(),
        Some(_) => Some(30).into(),
        None => ContractReply::Recorded,
    };
    let recording = evm();
    let node = node(Arc::clone(&recording), events, reply).await;
    let store = index(&recording, &node, None, |_| true).await;
    let held = BTreeMap::from([(A, 13), (B, 9), (OPERATOR, 30)].map(|(account, n)| (account, U256::from(n))));
    assert_eq!(balances(&*store, weth), held);
    let token = token(&*store, weth).unwrap();
    assert!(token.complete && !token.drifting, "{token:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erc20_that_was_taken_for_no_collection_is_asked_at_transfers_with_an_indexed_amount() {
    let fungible: Address = [0xf1; 20];
    let events = Events::from([(
        200,
        vec![created(fungible), logged(fungible, TRANSFER, &[word_of(ZERO), word_of(A), word(9)], 3)],
    )]);
    let reply = move |call: &ContractCall| match (call.to == fungible, call.account()) {
        (true, Some(A)) => Some(9).into(),
        // It is no ERC-721.
        (true, None) => ContractReply::Reverted,
        _ => ContractReply::Recorded,
    };
    let recording = evm();
    let node = node(Arc::clone(&recording), events, reply).await;
    let store = index(&recording, &node, None, |_| true).await;
    assert_eq!(balances(&*store, fungible), BTreeMap::from([(A, U256::from(9))]));
}
