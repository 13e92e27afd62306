//! Random transfers against a plain ledger, forwards and rewound.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use std::collections::BTreeMap;

use chain::U256;
use chain::evm::erc20::Erc20Event;
use proptest::prelude::*;
use schema::digest::{self, TableDigest};
use schema::meta::{self, RichLane};
use schema::rich::{self, AccountTokens, Address, Balances, Holders};
use store::key::All;
use store::{Bounds, BulkWriter, Counts, Durability, MemStore, Order, RANK, Snapshot, Store, Txn};

use super::{Flow, Group, balance, flows, plan, write};
use crate::rich::lane::BalanceReply;
use schema::rich::Erc20;

fn transfer(from: u8, to: u8, amount: u64) -> Erc20Event {
    Erc20Event::Transfer { contract: [9; 20], from: [from; 20], to: [to; 20], amount: U256::from(amount) }
}

fn after(events: &[Erc20Event], account: u8, before: u64) -> Option<U256> {
    flows(events).get(&([9; 20], [account; 20])).copied().unwrap_or_default().after(U256::from(before))
}

#[test]
fn a_block_is_added_up_per_account_whatever_the_order() {
    let events = [transfer(1, 2, 7), transfer(2, 1, 3), transfer(0, 1, 5), transfer(2, 0, 1)];
    assert_eq!(after(&events, 1, 4), Some(U256::from(5)), "4 - 7 + 3 + 5");
    assert_eq!(after(&events, 2, 0), Some(U256::from(3)));
    assert_eq!(flows(&events).len(), 2, "the zero address holds nothing");
}

#[test]
fn a_transfer_to_oneself_changes_nothing() {
    assert_eq!(after(&[transfer(1, 1, 50)], 1, 8), Some(U256::from(8)));
}

#[test]
fn a_negative_balance_and_more_than_256_bits_are_impossible() {
    assert_eq!(after(&[transfer(1, 2, 9)], 1, 8), None);
    let mut flow = Flow::default();
    flow.add(U256::MAX, true);
    assert_eq!(flow.after(U256::from(1)), None);
    flow.add(U256::from(1), true);
    assert_eq!(flow.after(U256::ZERO), None);
    assert_eq!(flow.after_or_zero(U256::from(1)), U256::ZERO);
}

#[test]
fn a_balance_is_computed_only_from_a_stored_one() {
    let flow = flows(&[transfer(0, 1, 5)])[&([9; 20], [1; 20])];
    let (unknown, complete) = (Erc20::default(), Erc20 { complete: true, ..Erc20::default() });
    let drifting = Erc20 { drifting: true, ..complete };
    let silent = Erc20 { silent: true, ..Erc20::default() };
    let ten = Some(U256::from(10));
    assert_eq!(balance(&unknown, None, flow), None);
    assert_eq!(balance(&unknown, ten, flow), Some(U256::from(15)));
    assert_eq!(balance(&complete, None, flow), Some(U256::from(5)));
    assert_eq!(balance(&drifting, ten, flow), None);
    assert_eq!(balance(&silent, None, flow), Some(U256::from(5)));
}

/// Balances by token and holder; zero balances have no entry.
type Ledger = BTreeMap<(Address, Address), U256>;

/// The first token is created in the first block that touches it; the second existed before and has holders; so does
/// the third, which takes a tenth of every transfer without logging it.
const TOKENS: u8 = 3;
const ACCOUNTS: u8 = 5;

fn token(n: u8) -> Address {
    [0xa0 + n; 20]
}

fn holder(n: u8) -> Address {
    [n; 20]
}

fn held(ledger: &Ledger, token: Address, holder: Address) -> U256 {
    ledger.get(&(token, holder)).copied().unwrap_or_default()
}

fn at_the_beginning() -> Ledger {
    let pairs = (1..TOKENS).flat_map(|t| (1..3).map(move |a| (t, a)));
    pairs.map(|(t, a)| ((token(t), holder(a)), U256::from(1000))).collect()
}

/// Applies transfers within the balances, and returns their events.
fn play(ledger: &mut Ledger, moves: &[(u8, u8, u8, u64)], made: &mut bool) -> Vec<Erc20Event> {
    let mut events = Vec::new();
    for &(t, from, to, wanted) in moves {
        if t == 0 && !*made {
            *made = true;
            events.push(Erc20Event::Contract { contract: token(0) });
        }
        let amount = match from {
            0 => U256::from(wanted),
            from => held(ledger, token(t), holder(from)).min(U256::from(wanted)),
        };
        let arrives = if t == 2 { amount - amount / U256::from(10) } else { amount };
        if from != 0 {
            *ledger.entry((token(t), holder(from))).or_default() -= amount;
        }
        if to != 0 {
            *ledger.entry((token(t), holder(to))).or_default() += arrives;
        }
        ledger.retain(|_, amount| !amount.is_zero());
        events.push(Erc20Event::Transfer { contract: token(t), from: holder(from), to: holder(to), amount });
    }
    events
}

fn commit(store: &MemStore, height: u64, events: &[Erc20Event], ledger: &Ledger) {
    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    let mut group = Group::default();
    let plan = plan(&txn, &group, events, None).unwrap();
    let answer = |it: &super::UnknownBalance| BalanceReply::AtHeight(held(ledger, it.contract, it.account));
    let answers: Vec<_> = plan.unknown.iter().map(answer).collect();
    write(height, plan, &answers, &mut group, &mut txn).unwrap();
    group.finish(height..=height, &mut txn).unwrap();
    meta::put(&mut txn, &RichLane { height, baseline: 1, next_accounts: String::new() });
    let (batch, _pending) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();
}

fn digest(store: &MemStore) -> Vec<TableDigest> {
    digest::tables(&*store.snapshot().unwrap()).unwrap()
}

/// Applies the blocks after the lane's last height like [`commit`], several at once where their balances are known.
fn commit_grouped(store: &MemStore, played: &[(u64, Vec<Erc20Event>, Ledger)]) {
    let mut rest = played;
    while let Some((first, ..)) = rest.first() {
        let snapshot = store.snapshot().unwrap();
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let (mut group, mut applied) = (Group::default(), 0);
        for (height, events, ledger) in rest {
            let plan = plan(&txn, &group, events, None).unwrap();
            if applied > 0 && !plan.unknown.is_empty() {
                break;
            }
            let answer =
                |it: &super::UnknownBalance| BalanceReply::AtHeight(held(ledger, it.contract, it.account));
            let answers: Vec<_> = plan.unknown.iter().map(answer).collect();
            write(*height, plan, &answers, &mut group, &mut txn).unwrap();
            applied += 1;
        }
        let last = rest[applied - 1].0;
        group.finish(*first..=last, &mut txn).unwrap();
        meta::put(&mut txn, &RichLane { height: last, baseline: 1, next_accounts: String::new() });
        let (batch, _pending) = txn.finish();
        drop(snapshot);
        store.commit(batch, Durability::Buffered).unwrap();
        rest = &rest[applied..];
    }
}

/// Balances, holders and tokens of accounts are three views of the same data, and no holder has a zero balance.
fn check(store: &MemStore, ledger: &Ledger, touched: &[(Address, Address)]) {
    let snapshot = store.snapshot().unwrap();
    let rows = store::table::rows::<Balances>(&*snapshot, &All, Order::Asc, 1000).unwrap();
    let mut of_accounts: Vec<_> = rows.iter().map(|((token, account), _)| (*account, *token)).collect();
    of_accounts.sort_unstable();
    let listed = store::table::rows::<AccountTokens>(&*snapshot, &All, Order::Asc, 1000).unwrap();
    assert_eq!(listed.into_iter().map(|(key, ())| key).collect::<Vec<_>>(), of_accounts);
    let mut expected: Vec<_> = rows
        .iter()
        .map(|((token, account), amount)| (*token, rich::amount_of(amount).unwrap(), *account))
        .filter(|(_, amount, _)| *amount != [0; 32])
        .collect();
    expected.sort_unstable();
    let holders = store::table::rows::<Holders>(&*snapshot, &All, Order::Asc, 1000).unwrap();
    let holders: Vec<_> =
        holders.into_iter().map(|((token, (amount, account)), ())| (token, amount, account)).collect();
    assert_eq!(holders, expected);
    let fresh = MemStore::new();
    let mut writer = BulkWriter::new(&fresh);
    store::ranked::index_items::<Holders>(&*snapshot, &mut writer).unwrap();
    writer.finish(Durability::Buffered).unwrap();
    let nodes = |snapshot: &dyn Snapshot| snapshot.scan(RANK, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    let expected = nodes(&*fresh.snapshot().unwrap());
    assert_eq!(nodes(&*snapshot), expected, "the skip list is that of these holders");
    for (of, account) in touched.iter().filter(|(of, account)| *of != token(2) && *account != [0; 20]) {
        let stored = rich::balance(&*snapshot, of, account).unwrap().map(U256::from_be_bytes);
        assert_eq!(stored.unwrap_or_default(), held(ledger, *of, *account));
    }
    let first: Vec<_> =
        ledger.iter().filter(|((of, _), _)| *of == token(0)).map(|((_, a), n)| (*a, *n)).collect();
    let stored = rows.iter().filter(|((of, _), _)| *of == token(0));
    let stored: Vec<_> = stored.map(|((_, a), n)| (*a, U256::from_be_slice(n))).collect();
    assert_eq!(stored, first, "of a token that was made meanwhile every holder is known, and no other");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn balances_are_those_of_a_plain_ledger_forwards_and_rewound(
        blocks in prop::collection::vec(
            prop::collection::vec((0..TOKENS, 0..ACCOUNTS, 0..ACCOUNTS, 0_u64..400), 0..6), 1..14),
        cut in any::<prop::sample::Index>(),
    ) {
        let store = MemStore::new();
        let (mut ledger, mut made) = (at_the_beginning(), false);
        commit(&store, 1, &[], &ledger);
        let mut played = Vec::new();
        let mut digests = vec![digest(&store)];
        for (height, moves) in (2..).zip(&blocks) {
            let events = play(&mut ledger, moves, &mut made);
            commit(&store, height, &events, &ledger);
            let touched: Vec<_> = moves.iter()
                .flat_map(|&(t, from, to, _)| [(token(t), holder(from)), (token(t), holder(to))]).collect();
            check(&store, &ledger, &touched);
            played.push((height, events, ledger.clone()));
            digests.push(digest(&store));
        }
        let to = cut.index(digests.len());
        rich::rewind(&store, to as u64 + 1).unwrap();
        prop_assert_eq!(&digest(&store), &digests[to], "back to {}", to + 1);
        let left = played[..to].last().map_or_else(at_the_beginning, |(_, _, ledger)| ledger.clone());
        check(&store, &left, &[]);
        for (height, events, ledger) in &played[to..] {
            commit(&store, *height, events, ledger);
        }
        prop_assert_eq!(&digest(&store), digests.last().unwrap());

        let grouped = MemStore::new();
        commit(&grouped, 1, &[], &at_the_beginning());
        commit_grouped(&grouped, &played);
        prop_assert_eq!(&digest(&grouped), digests.last().unwrap(), "grouped");
        // A rewind into a group ends before it.
        rich::rewind(&grouped, to as u64 + 1).unwrap();
        let lane = meta::read::<RichLane>(&*grouped.snapshot().unwrap()).unwrap().unwrap();
        let reached = usize::try_from(lane.height - 1).unwrap();
        prop_assert!(reached <= to);
        prop_assert_eq!(&digest(&grouped), &digests[reached], "grouped, back to {}", lane.height);
        commit_grouped(&grouped, &played[reached..]);
        prop_assert_eq!(&digest(&grouped), digests.last().unwrap(), "grouped, again");
    }
}

#[test]
fn a_rewind_reverts_the_blocks_and_the_repairs_of_a_height() {
    let store = MemStore::new();
    let ledger = Ledger::from([((token(0), holder(1)), U256::from(5))]);
    commit(&store, 1, &[], &ledger);
    let before = digest(&store);
    let made = Erc20Event::Contract { contract: token(0) };
    let minted =
        Erc20Event::Transfer { contract: token(0), from: [0; 20], to: holder(1), amount: U256::from(5) };
    commit(&store, 2, &[made, minted], &ledger);

    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(1);
    let (mut txn, mut healed) = (Txn::new(&*snapshot, &mut counts), rich::UndoBuilder::default());
    super::put_balance(&token(0), &holder(1), U256::from(9), true, &mut healed, &mut txn).unwrap();
    rich::put_undo(&mut txn, 2..=2, healed).unwrap();
    let (batch, _pending) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();

    let held = |store: &MemStore| rich::balance(&*store.snapshot().unwrap(), &token(0), &holder(1)).unwrap();
    assert_eq!(held(&store).map(U256::from_be_bytes), Some(U256::from(9)));
    rich::rewind(&store, 1).unwrap();
    assert_eq!(held(&store), None);
    assert!(
        rich::tokens_of(&*store.snapshot().unwrap(), &holder(1), None, Order::Asc, 1).unwrap().is_empty()
    );
    assert_eq!(digest(&store), before);
}
