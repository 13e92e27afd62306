//! The rich list over hand-made balances.

use std::collections::BTreeMap;

use crate::hand_made::HandMade;
use crate::hand_made::walk::Listing;
use chain::{Account, U256};
use proptest::prelude::*;
use proptest::sample::Index;
use schema::meta::{self, RichLane};
use schema::rich::{Address, Denoms, DenomsFolded, Erc20, Erc20s, set_balance};
use serde_json::{Value, json};
use store::Message;
use store::key::Text;

const TOKEN: Address = [0xab; 20];

fn contract(contract: &Address) -> String {
    Account::from(*contract).to_hex()
}

/// The list of holders for `balances`; a zero balance is not a holding.
fn listing(target: &str, balances: &BTreeMap<u8, U256>) -> Listing {
    let mut held: Vec<(U256, u8)> = balances.iter().map(|(account, amount)| (*amount, *account)).collect();
    held.retain(|(amount, _)| !amount.is_zero());
    held.sort();
    let row = |(amount, account): &(U256, u8)| json!({"account": contract(&[*account; 20]), "amount": amount.to_string()});
    Listing {
        target: format!("/indexer/richlist/v1/{target}?"),
        member: "holders",
        rows: held.iter().map(row).collect(),
    }
}

fn made(balances: &[(u8, U256)]) -> HandMade {
    let made = HandMade::new("evm", 1);
    made.write(|txn| {
        for (account, amount) in balances {
            set_balance(txn, &TOKEN, &[*account; 20], Some(amount.to_be_bytes())).unwrap();
        }
    });
    made
}

fn amounts() -> impl Strategy<Value = U256> {
    prop_oneof![
        // Many equal amounts.
        4 => (0_u64..4).prop_map(U256::from),
        2 => any::<[u8; 32]>().prop_map(U256::from_be_bytes),
        1 => Just(U256::MAX),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn holders_come_by_amount_then_by_account_whatever_the_page(
        balances in prop::collection::vec((any::<u8>(), amounts()), 0..40), pick: Index, reverse: bool
    ) {
        let made = made(&balances);
        let list = listing(&contract(&TOKEN), &balances.into_iter().collect());
        list.check(&made, 1 + pick.index(list.rows.len() + 2), reverse);
    }

    #[test]
    fn a_holder_that_moves_between_two_pages_affects_no_other_holder(
        balances in prop::collection::btree_map(any::<u8>(), amounts(), 1..30),
        moves in prop::collection::vec((any::<Index>(), amounts()), 30),
        limit in 1_u64..5, reverse: bool
    ) {
        let start: Vec<(u8, U256)> = balances.clone().into_iter().collect();
        let made = made(&start);
        let list = listing(&contract(&TOKEN), &balances);
        let paging = format!("pagination.limit={limit}&pagination.reverse={reverse}");
        let mut page = list.page(&made, &paging);
        let mut seen = page.rows.clone();
        let mut staying: Vec<Value> = list.ordered(reverse);
        for (who, amount) in moves {
            let Some(key) = page.next else { break };
            let (account, _) = start[who.index(start.len())];
            staying.retain(|row| row["account"] != contract(&[account; 20]));
            let account = [account; 20];
            made.write(|txn| set_balance(txn, &TOKEN, &account, Some(amount.to_be_bytes())).unwrap());
            page = list.page(&made, &format!("{paging}&pagination.key={key}"));
            seen.extend(page.rows);
        }
        prop_assume!(page.next.is_none());
        seen.retain(|row| staying.contains(row));
        prop_assert_eq!(seen, staying);
    }
}

#[test]
fn a_denom_is_found_in_every_spelling() {
    let made = made(&[(1, U256::from(5)), (2, U256::MAX)]);
    let (other, gas, upper): (Address, Address, Address) = ([0xcd; 20], [1; 20], [2; 20]);
    let evm = |contract: &Address| format!("evm/{}", &Account::from(*contract).to_hex()[2..]);
    made.write(|txn| {
        txn.put::<Erc20s>(&other, &Message(Erc20::default()));
        for (denom, contract) in [("GAS", gas), ("gAs", upper), ("l2/ab", TOKEN), ("ibc/AB", TOKEN)] {
            txn.put::<Denoms>(&Text::from(denom), &contract.to_vec());
            txn.put::<DenomsFolded>(&(Text(denom.to_lowercase()), Text::from(denom)), &());
        }
        set_balance(txn, &gas, &[1; 20], Some(U256::from(10).to_be_bytes())).unwrap();
        set_balance(txn, &upper, &[1; 20], Some(U256::from(20).to_be_bytes())).unwrap();
    });
    let hex = "ab".repeat(20);
    let ours = json!([
        {"account": contract(&[2; 20]), "amount": U256::MAX.to_string()},
        {"account": contract(&[1; 20]), "amount": "5"},
    ]);
    let one = |amount: &str| json!([{"account": contract(&[1; 20]), "amount": amount}]);
    for (denom, holders) in [
        (format!("0x{hex}"), &ours),
        (format!("0x{}", hex.to_uppercase()), &ours),
        (format!("0X{hex}"), &ours),
        (format!("evm%2F{hex}"), &ours),
        (format!("evm%2f{}", hex.to_uppercase()), &ours),
        (format!("evm%2F0x{hex}"), &ours),
        (format!("EVM%2F0X{}", hex.to_uppercase()), &ours),
        ("l2%2Fab".to_owned(), &ours),
        ("l2%2FAB".to_owned(), &ours),
        ("ibc%2Fab".to_owned(), &ours),
        ("IBC%2FAB".to_owned(), &ours),
        // As the chain writes it, else the first with the same lower-case form.
        ("GAS".to_owned(), &one("10")),
        ("gAs".to_owned(), &one("20")),
        ("gas".to_owned(), &one("10")),
        // A known contract without holders; any other address.
        (evm(&other).replace('/', "%2F"), &json!([])),
        ("0x1".to_owned(), &json!([])),
        ("0x".to_owned(), &json!([])),
    ] {
        let (status, body) = made.get(&format!("/indexer/richlist/v1/{denom}"));
        assert_eq!((status, &body["holders"]), (200, holders), "{denom}: {body}");
        assert_eq!(body["pagination"]["total"], holders.as_array().unwrap().len().to_string());
    }
}

#[test]
fn a_token_whose_holders_may_be_missing_says_so() {
    let made = made(&[(1, U256::from(5))]);
    let incomplete =
        || made.get(&format!("/indexer/richlist/v1/{}", contract(&TOKEN))).1.get("incomplete").cloned();
    let token = |complete, drifting, silent| {
        made.write(|txn| {
            txn.put::<Erc20s>(&TOKEN, &Message(Erc20 { complete, drifting, silent, coin: false }));
        });
        incomplete()
    };
    assert_eq!(incomplete(), None, "no token is known");
    assert_eq!(token(true, true, false), None);
    assert_eq!(token(false, false, false), Some(true.into()));
    assert_eq!(token(true, false, true), Some(true.into()));
}

#[test]
fn an_unknown_denom_is_not_found_by_its_name() {
    let made = made(&[]);
    let unknown = "cd".repeat(20);
    for (denom, named) in [
        ("no-such-denom".to_owned(), "no-such-denom"),
        (format!("evm%2F{unknown}"), unknown.as_str()),
        (format!("evm%2F0x{unknown}"), unknown.as_str()),
        ("evm%2Fab".to_owned(), "evm/ab"),
        ("evm%2F0x123".to_owned(), "evm/0x123"),
        (format!("0x{}", "f".repeat(41)), "0xfff"),
        ("0xzz".to_owned(), "0xzz"),
        // Another path.
        ("ibc/ABC".to_owned(), "ibc/ABC"),
    ] {
        let (status, body) = made.get(&format!("/indexer/richlist/v1/{denom}"));
        let message = body["message"].as_str().unwrap();
        assert!(status == 404 && message.contains(named), "{denom}: {status} {message}");
    }
    assert_eq!(made.get("/indexer/richlist/v1/%zz").0, 400);
    assert_eq!(made.get("/indexer/richlist/v1/0x1?pagination.limit=0").0, 400);
}

#[test]
fn a_deployed_cursor_is_an_offset_and_another_lists_is_refused() {
    let made = made(&[(1, U256::from(1)), (2, U256::from(2)), (3, U256::from(3))]);
    let target = format!("/indexer/richlist/v1/{}?pagination.key", contract(&TOKEN));
    let (_, second) = made.get(&format!("{target}=MQ=="));
    assert_eq!(second["holders"][0]["amount"], "2");
    // `{"height":1}`, and a cursor of transactions.
    for key in ["eyJoZWlnaHQiOjF9", "AQIAAAAAAAAAAAc"] {
        assert_eq!(made.get(&format!("{target}={key}")).0, 400, "{key}");
    }
}

#[test]
fn other_chains_report_that_they_have_no_rich_list() {
    for vm in ["move", "wasm", "none"] {
        let made = HandMade::new(vm, 1);
        let (status, body) = made.get("/indexer/richlist/v1/uinit");
        let message = body["message"].as_str().unwrap();
        assert!(status == 404 && message.contains("not available on this chain") && message.contains(vm));
    }
}

#[test]
fn the_status_reports_the_height_of_the_rich_list() {
    let made = made(&[]);
    assert_eq!(made.get("/status").1["rich_list_height"], 0);
    made.write(|txn| meta::put(txn, &RichLane { height: 7, baseline: 5, next_accounts: String::new() }));
    assert_eq!(made.get("/status").1["rich_list_height"], 7);
}
