//! Reconciliation with contracts: many tokens, and holders that no log names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chain::U256;
use replay::Recording;
use schema::rich::Address;
use serde_json::Value;
use testkit::{indexed, recording};
use web::app::App;

use crate::planted::{
    ContractCall, ContractReply, Events, balances, called, created, hex_of, index, log, node, node_with,
    token, transfer, word,
};

const ZERO: Address = [0; 20];

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

/// The token number `n`.
fn contract(n: u64) -> Address {
    let mut contract = [0xdd; 20];
    contract[12..].copy_from_slice(&n.to_be_bytes());
    contract
}

fn number(contract: Address) -> Option<u64> {
    contract.starts_with(&[0xdd; 12]).then(|| u64::from_be_bytes(contract[12..].try_into().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn with_many_tokens_a_change_is_repaired_soon_after_the_block_that_shows_it() {
    const TOKENS: u64 = 300;
    const HOLDERS: u8 = 12;
    let (recording, mut events) = (evm(), Events::new());
    let last = recording.last();
    for n in 0..TOKENS {
        let minted = events.entry(150).or_default();
        minted.push(created(contract(n)));
        minted.extend((1..=HOLDERS).map(|holder| transfer(contract(n), ZERO, [holder; 20], 10)));
        // A third is called, a third logs, of a third the last transfer is of one account.
        let shown = match n % 3 {
            0 => called(contract(n)),
            1 => log(contract(n), &[hex_of(&word(77))], &[word(150)]),
            _ => transfer(contract(n), [1; 20], [1; 20], 1),
        };
        events.entry(last).or_default().push(shown);
    }
    let reply = move |call: &ContractCall| match (number(call.to), call.account()) {
        (Some(_), Some(_)) => Some(if call.height < last { 10 } else { 15 }).into(),
        (Some(_), None) if call.is_supply() => Some(u64::from(HOLDERS) * 15).into(),
        _ => ContractReply::Recorded,
    };
    let node = node(Arc::clone(&recording), events, reply).await;
    let every = Duration::from_secs(2);
    let right = |store: &store::MemStore| {
        (0..TOKENS).all(|n| {
            let held = balances(store, contract(n));
            held.len() == usize::from(HOLDERS) && held.values().all(|amount| *amount == U256::from(15))
        })
    };
    let store = index(&recording, &node, Some(every), right).await;
    assert!((0..TOKENS).all(|n| token(&*store, contract(n)).unwrap().drifting));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_got_less_than_its_transfer_says_is_found_by_its_touch() {
    // Of a thousand holders, one: a random sample would hardly hit it.
    let (recording, fee): (_, Address) = (evm(), contract(1));
    let account = |n: u16| {
        let mut account = [1; 20];
        account[18..].copy_from_slice(&n.to_be_bytes());
        account
    };
    let mut minted = vec![created(fee)];
    minted.extend((0..1000).map(|n| transfer(fee, ZERO, account(n), 1000)));
    let (from, to) = (account(400), account(401));
    let events = Events::from([(150, minted), (220, vec![transfer(fee, from, to, 100)])]);
    let reply = move |call: &ContractCall| match call.account().filter(|_| call.to == fee) {
        Some(account) if account == from && call.height >= 220 => Some(900).into(),
        Some(account) if account == to && call.height >= 220 => Some(1090).into(),
        Some(_) => Some(1000).into(),
        None if call.to == fee && call.is_supply() => Some(999_990).into(),
        None => ContractReply::Recorded,
    };
    let node = node(Arc::clone(&recording), events, reply).await;
    let right = |store: &store::MemStore| {
        let held = balances(store, fee);
        held[&from] == U256::from(900) && held[&to] == U256::from(1090)
    };
    let store = index(&recording, &node, Some(Duration::from_secs(8)), right).await;
    assert!(token(&*store, fee).unwrap().drifting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_incomplete_while_its_holders_do_not_hold_its_supply() {
    let [whole, constructed, older, mute] = [1, 2, 3, 4].map(contract);
    let a: Address = [0x11; 20];
    let mint = |contract| transfer(contract, ZERO, a, 5);
    let events = Events::from([(
        200,
        vec![
            created(whole),
            mint(whole),
            // Its constructor gave 100 to someone without a log.
            created(constructed),
            mint(constructed),
            // Created before the list began.
            mint(older),
            created(mute),
            mint(mute),
        ],
    )]);
    let reply = move |call: &ContractCall| match (number(call.to), call.account()) {
        (Some(4), _) => ContractReply::Reverted,
        (Some(_), Some(account)) => Some(if account == a { 5 } else { 0 }).into(),
        (Some(2), None) if call.is_supply() => Some(105).into(),
        (Some(_), None) if call.is_supply() => Some(5).into(),
        _ => ContractReply::Recorded,
    };
    let recording = evm();
    let node = node(Arc::clone(&recording), events, reply).await;
    let before = index(&recording, &node, None, |_| true).await;
    let complete = |store: &store::MemStore, contract| token(store, contract).unwrap().complete;
    let all = [whole, constructed, older, mute];
    assert_eq!(all.map(|contract| complete(&before, contract)), [true, true, false, true]);

    let checked = |store: &store::MemStore| !complete(store, constructed) && complete(store, older);
    let store = index(&recording, &node, Some(Duration::from_millis(40)), checked).await;
    assert_eq!(all.map(|contract| complete(&store, contract)), [true, false, true, true]);
    assert!(all.iter().all(|contract| !token(&*store, *contract).unwrap().drifting));

    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let incomplete = |denom: &str| {
        let answer = app.get(&format!("/indexer/richlist/v1/{denom}"));
        assert_eq!(answer.status(), 200, "{denom}");
        let body: Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(body["holders"].as_array().unwrap().len(), 1, "{denom}: {body}");
        body.get("incomplete").cloned()
    };
    let (whole, constructed) = (hex_of(&whole), hex_of(&constructed));
    assert_eq!(incomplete(&whole), None);
    assert_eq!(incomplete(&constructed), Some(true.into()));
    for form in [
        format!("evm%2F{}", &constructed[2..]),
        format!("evm%2F{constructed}"),
        format!("EVM%2F{constructed}"),
    ] {
        assert_eq!(incomplete(&form), Some(true.into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_zero_address_holds_is_a_balance_and_what_is_burned_is_not() {
    // Both in one token, as with minievm's own: `burn` destroys, a transfer to the zero address does not.
    let (recording, both): (_, Address) = (evm(), contract(1));
    let a: Address = [0x11; 20];
    let events = Events::from([
        (200, vec![created(both), transfer(both, ZERO, a, 100)]),
        (201, vec![transfer(both, a, ZERO, 10)]),
        (202, vec![transfer(both, a, ZERO, 3)]),
        (203, vec![transfer(both, ZERO, a, 1)]),
    ]);
    let reply = move |call: &ContractCall| match call.account().filter(|_| call.to == both) {
        Some(ZERO) => Some(if call.height < 202 { 0 } else { 3 }).into(),
        Some(_) => ContractReply::Reverted,
        None => ContractReply::Recorded,
    };
    let node = node(Arc::clone(&recording), events, reply).await;
    let store = index(&recording, &node, None, |_| true).await;
    let held = BTreeMap::from([(a, U256::from(88)), (ZERO, U256::from(3))]);
    assert_eq!(balances(&*store, both), held);
    let token = token(&*store, both).unwrap();
    assert!(token.complete && !token.drifting && !token.silent, "{token:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_by_logs_of_an_unknown_name_are_found_in_the_transactions_of_their_contract() {
    // Deposits of wrapped ether, under a name that nobody has heard of; one of six depositors has transferred.
    let recording = Arc::new(Recording::open(&testkit::recording("evm-weth-rebase")).unwrap());
    let weth: Address = hex::decode("a3c1690099b8db2b564fdcc3b79ffe9c4252d6bb").unwrap().try_into().unwrap();
    let held = BTreeMap::from([
        ("87f2855a98a55245c3b98c9b62ec735788ea8315", 1000),
        ("8a5b29decca5afd535919a863af3508e1b36589e", 2000),
        ("05e49b35c584c83e4e39d1c52b91a8800b483866", 3000),
        ("71db030f095b1ef25deb624cf103d85c74e2b13f", 4000),
        ("64068b790d179b910f641f651b0fe36aca8b24e5", 5000),
        ("4434343f76246615e0be3f419a4f87e8be1e5804", 77_770),
        ("436889b39909da5faf60b7c3a9e4361865e4f27d", 7),
    ]);
    let held: BTreeMap<Address, U256> = held
        .into_iter()
        .map(|(account, amount)| (hex::decode(account).unwrap().try_into().unwrap(), U256::from(amount)))
        .collect();
    let supply = held.values().sum::<U256>();
    let reply = {
        let held = held.clone();
        move |call: &ContractCall| match call.account() {
            _ if call.to != weth => ContractReply::Recorded,
            Some(account) => ContractReply::Amount(held.get(&account).copied().unwrap_or_default()),
            None if call.is_supply() => ContractReply::Amount(supply),
            None => ContractReply::Reverted,
        }
    };
    let renamed = ("e1fffcc4923d04b559f4d29a8bfc6cda", "e2fffcc4923d04b559f4d29a8bfc6cda");
    let node = node_with(Arc::clone(&recording), Events::new(), reply, renamed).await;
    let before = index(&recording, &node, None, |_| true).await;
    assert_eq!(balances(&*before, weth).len(), 2);
    let found = |store: &store::MemStore| {
        balances(store, weth) == held && token(store, weth).is_some_and(|token| token.complete)
    };
    index(&recording, &node, Some(Duration::from_millis(40)), found).await;
}
