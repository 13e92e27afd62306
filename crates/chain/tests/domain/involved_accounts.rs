//! Values of events that are accounts, as the deployed server finds them.

use chain::comet::{Attribute, Event};
use chain::involved::{StoreOwners, accounts, primary_stores};
use chain::{Account, AccountSet, Vm};

const ALICE: &str = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
const ALICE_HEX: &str = "0x1b9f30d48692d9f043a72ca7427cbdacec3788cf";

fn event<'a>(kind: &'a str, attributes: &[(&'a str, &'a str)]) -> Event<'a> {
    let attribute =
        |&(key, value): &(&'a str, &'a str)| Attribute { key: key.into(), value: value.into(), index: true };
    Event { kind: kind.into(), attributes: attributes.iter().map(attribute).collect() }
}

fn found(event: &Event<'_>, vm: Vm) -> Vec<String> {
    let mut out = AccountSet::default();
    accounts(std::slice::from_ref(event), "init", vm, &StoreOwners::default(), &[], &mut out);
    out.iter().map(short).collect()
}

/// Hex without leading zeros, as in the event.
fn short(account: &Account) -> String {
    let hex = account.to_hex();
    format!("{}:0x{}", account.as_bytes().len(), hex[2..].trim_start_matches('0'))
}

fn of(kind: &str, key: &str, value: &str) -> Vec<String> {
    found(&event(kind, &[(key, value)]), Vm::Evm)
}

#[test]
fn any_attribute_counts_by_the_shape_of_its_whole_value() {
    let alice = format!("20:{ALICE_HEX}");
    let (digits64, digits65) = (format!("0x{}", "a".repeat(64)), format!("0x{}", "a".repeat(65)));
    let long = Account::from_bytes(&[7; 32]).unwrap();
    for (value, expected) in [
        (ALICE, vec![alice.clone()]),
        (ALICE_HEX, vec![alice.clone()]),
        (&long.to_bech32("init"), vec![format!("32:0x{}", &"07".repeat(32)[1..])]),
        (&format!("{ALICE},0x1"), vec![alice.clone(), "20:0x1".to_owned()]),
        (&format!("{ALICE},{ALICE_HEX}"), vec![alice.clone()]),
        (&digits64, vec![format!("32:{digits64}")]),
        ("0x0", vec!["20:0x".to_owned()]),
        ("0xAbC", vec!["20:0xabc".to_owned()]),
        // Not the whole value, or not an address.
        (&format!("{ALICE}/5"), vec![]),
        (&format!("{ALICE}, 0x1"), vec![alice.clone()]),
        ("100uinit", vec![]),
        (&digits65, vec![]),
        ("0x", vec![]),
        ("0X1", vec![]),
        ("1b9f30d48692d9f043a72ca7427cbdacec3788cf", vec![]),
        (&ALICE.to_uppercase(), vec![]),
        ("init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2se", vec![]),
        ("initvaloper1jl0uvhm59qlkp3sxhk3lwkn2d0krls09etl4a2", vec![]),
        (&format!("{{\"a\":\"{ALICE}\"}}"), vec![]),
    ] {
        assert_eq!(of("transfer", "any_key", value), expected, "{value}");
    }
}

#[test]
fn only_the_returned_data_of_a_call_is_skipped() {
    assert!(of("call", "ret", ALICE_HEX).is_empty());
    assert_eq!(of("call", "contract", ALICE_HEX).len(), 1);
    assert_eq!(of("create", "ret", ALICE_HEX).len(), 1);
}

#[test]
fn an_evm_log_counts_its_contract_and_the_later_topics_with_24_zeros() {
    let zeros = "0".repeat(24);
    let word = format!("0x{zeros}{}", &ALICE_HEX[2..]);
    let log = |topics: &str| format!(r#"{{"address":"0xAA","topics":[{topics}],"data":"{ALICE_HEX}"}}"#);
    for (value, expected) in [
        (log(&format!(r#""{word}""#)), vec!["20:0xaa"]),
        (
            log(&format!(r#""0x1","{word}""#)),
            vec!["20:0xaa", "20:0x1b9f30d48692d9f043a72ca7427cbdacec3788cf"],
        ),
        // Token ids and amounts become accounts, as on the deployed server.
        (log(&format!(r#""0x1","0x{zeros}{:040x}""#, 5)), vec!["20:0xaa", "20:0x5"]),
        (log(&format!(r#""0x1","0x{}""#, "b".repeat(64))), vec!["20:0xaa"]),
        (log(&format!(r#""0x1","0x{zeros}zz""#)), vec!["20:0xaa"]),
        (log(""), vec!["20:0xaa"]),
        (r#"{"address":"0xAA","topics":null}"#.to_owned(), vec!["20:0xaa"]),
        (ALICE_HEX.to_owned(), vec![]),
        ("{".to_owned(), vec![]),
    ] {
        assert_eq!(of("evm", "log", &value), expected, "{value}");
    }
    let two = event("evm", &[("log", r#"{"address":"0x1"}"#), ("log", r#"{"address":"0x2"}"#)]);
    assert_eq!(found(&two, Vm::Evm), ["20:0x1", "20:0x2"]);
}

#[test]
fn move_data_counts_every_literal_anywhere_and_the_first_64_digits_of_longer_ones() {
    let digits65 = "a".repeat(65);
    for (value, expected) in [
        (
            r#"{"from":"0x1d","object":"0x9AB1","n":"25"}"#.to_owned(),
            vec!["20:0x1d".to_owned(), "20:0x9ab1".to_owned()],
        ),
        (format!("0x{digits65}"), vec![format!("32:0x{}", &digits65[1..])]),
        ("x0x0x12".to_owned(), vec!["20:0x".to_owned()]),
        ("0x 0xg 0x".to_owned(), vec![]),
        ("00x5ä0x6".to_owned(), vec!["20:0x5".to_owned(), "20:0x6".to_owned()]),
        (ALICE.to_owned(), vec![]),
    ] {
        assert_eq!(found(&event("move", &[("data", &value)]), Vm::Move), expected, "{value}");
    }
    assert_eq!(found(&event("move", &[("owner", "0x1d")]), Vm::Move), ["20:0x1d"]);
}

#[test]
fn hex_is_not_an_address_on_a_chain_that_writes_bech32_only() {
    for vm in [Vm::Wasm, Vm::None] {
        for (kind, key, value) in [
            ("transfer", "amount", ALICE_HEX),
            ("move", "data", ALICE_HEX),
            ("evm", "log", r#"{"address":"0x1"}"#),
        ] {
            assert!(found(&event(kind, &[(key, value)]), vm).is_empty(), "{kind}");
        }
        assert_eq!(found(&event("wasm", &[("_contract_address", ALICE)]), vm).len(), 1);
    }
}

#[test]
fn the_prefix_is_the_chains_own_and_signers_are_always_included() {
    let account = Account::from_bytes(&[3; 20]).unwrap();
    let (abc, signer) = (account.to_bech32("abc"), Account::from_bytes(&[4; 20]).unwrap());
    let events = [event("transfer", &[("recipient", &abc), ("sender", ALICE)])];
    let mut out = AccountSet::default();
    accounts(&events, "abc", Vm::Evm, &StoreOwners::default(), &[signer, account], &mut out);
    assert_eq!(Vec::from_iter(out), [account, signer]);
}

#[test]
fn the_owner_of_a_fungible_store_is_found_through_the_event_that_created_it() {
    let tag = "0x1::primary_fungible_store::PrimaryStoreCreatedEvent";
    let created = r#"{"metadata_addr":"0x8e4","owner_addr":"0x1d","store_addr":"0x77"}"#;
    let begin = [event("move", &[("type_tag", tag), ("data", created)]), event("move", &[("type_tag", tag)])];
    let owners: StoreOwners = primary_stores(&begin).collect();
    let deposit = r#"{"amount":"25","metadata_addr":"0x8e4","store_addr":"0x77"}"#;
    for (tag, expected) in [
        ("0x1::fungible_asset::DepositEvent", vec!["20:0x8e4", "20:0x77", "20:0x1d"]),
        ("0x1::other::DepositEvent", vec!["20:0x8e4", "20:0x77"]),
    ] {
        let mut out = AccountSet::default();
        let events = [event("move", &[("type_tag", tag), ("data", deposit)])];
        accounts(&events, "init", Vm::Move, &owners, &[], &mut out);
        // The tag itself is not an address as a whole.
        assert_eq!(out.iter().map(short).collect::<Vec<_>>(), expected);
    }
}
