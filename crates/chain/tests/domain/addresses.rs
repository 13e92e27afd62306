//! One address, many spellings.

use chain::Account;
use chain::address::{consensus_address, is_prefix, valoper};
use proptest::prelude::*;

fn bytes(hex: &str) -> Option<Account> {
    Account::from_bytes(&hex::decode(hex).unwrap())
}

#[test]
fn every_spelling_of_an_address_is_the_same_account() {
    let account = bytes("1b9f30d48692d9f043a72ca7427cbdacec3788cf");
    for text in [
        "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd",
        "INIT1RW0NP4YXJTVLQSA89JN5YL9A4NKR0ZX0KPS2SD",
        "0x1b9f30d48692d9f043a72ca7427cbdacec3788cf",
        "0X1B9F30D48692D9F043A72CA7427CBDACEC3788CF",
        "1b9f30d48692d9f043a72ca7427cbdacec3788cf",
        "0x0000000000000000000000001B9f30D48692D9F043A72CA7427CBDACEC3788CF",
        "0x00000000000000000000000000000000000000001b9f30d48692d9f043a72ca7427cbdacec3788cf0000"
            .strip_suffix("0000")
            .unwrap(),
    ] {
        assert_eq!(Account::parse(text, "init"), account, "{text}");
    }
    assert_eq!(account.unwrap().to_hex(), "0x1b9f30d48692d9f043a72ca7427cbdacec3788cf");
    assert_eq!(account.unwrap().to_bech32("init"), "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd");
}

#[test]
fn short_and_uneven_move_addresses_are_padded_to_20_or_32_bytes() {
    let one = format!("{}01", "00".repeat(19));
    for (text, hex) in [
        ("0x1", one.as_str()),
        ("0x01", &one),
        ("1", &one),
        ("0xabc", &format!("{}0abc", "00".repeat(18))),
        ("0xa", &format!("{}0a", "00".repeat(19))),
        (&format!("0x{}", "a".repeat(41)), &format!("{}{}", "0".repeat(23), "a".repeat(41))),
        (&format!("0x{}", "a".repeat(63)), &format!("0{}", "a".repeat(63))),
    ] {
        assert_eq!(Account::parse(text, "init"), bytes(hex), "{text}");
        assert!(bytes(hex).is_some());
    }
    for zero in
        ["0x", "0", "0x0", "", "0x00000000000000000000000000000000000000000000000000000000000000000000"]
    {
        assert_eq!(Account::parse(zero, "init"), Some(Account::ZERO), "{zero:?}");
    }
    assert_ne!(Account::ZERO, Account::ZERO_LONG);
}

#[test]
fn an_invalid_address_of_this_chain_is_refused() {
    for text in [
        "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2se", // checksum
        "Init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd", // mixed case
        " init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd",
        "initvaloper1jl0uvhm59qlkp3sxhk3lwkn2d0krls09etl4a2",
        "cosmos1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd",
        "init1",
        "init",
        "0xzz",
        "0x0x1",
        "ä",
        "inität",
        "0x10000000000000000000000000000000000000000000000000000000000000000",
    ] {
        assert_eq!(Account::parse(text, "init"), None, "{text}");
    }
    // The checksum of bech32m is another one; a payload of 21 bytes is none of ours.
    let hrp = bech32::Hrp::parse("init").unwrap();
    let m = bech32::encode::<bech32::Bech32m>(hrp, &[7; 20]).unwrap();
    let long = bech32::encode::<bech32::Bech32>(hrp, &[7; 21]).unwrap();
    assert_eq!([m, long].map(|text| Account::parse(&text, "init")), [None, None]);
}

#[test]
fn the_prefix_is_the_chains_own() {
    let account = Account::from_bytes(&[9; 32]).unwrap();
    for prefix in ["abc", "init", "a1b"] {
        let text = account.to_bech32(prefix);
        assert_eq!(Account::parse(&text, prefix), Some(account), "{text}");
        assert_eq!(Account::parse(&text, "other"), None);
    }
    assert!(is_prefix("init") && !is_prefix("") && !is_prefix("ä"));
    assert!(account.to_bech32("ä").starts_with("0x0909"));
}

#[test]
fn operator_and_consensus_addresses_are_those_of_a_recorded_chain() {
    let consensus = hex::decode("1EE89CF575071411054630257C1961840657C338").unwrap();
    let text = valoper("init", &consensus);
    assert!(text.starts_with("initvaloper1"), "{text}");
    assert_eq!(Account::parse(&text, "initvaloper").unwrap().as_bytes(), consensus);
    // RFC 8032's first test key.
    let key = hex::decode("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a").unwrap();
    assert_eq!(hex::encode(consensus_address(&key)), "21fe31dfa154a261626bf854046fd2271b7bed4b");
}

proptest! {
    #[test]
    fn bytes_survive_bech32_and_hex_does_too_up_to_leading_zeros(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 20), proptest::collection::vec(any::<u8>(), 32)
    ]) {
        let account = Account::from_bytes(&bytes).unwrap();
        prop_assert_eq!(Account::parse(&account.to_bech32("init"), "init"), Some(account));
        let by_hex = Account::parse(&account.to_hex(), "init").unwrap();
        prop_assert!(by_hex == account || bytes.starts_with(&[0; 12]));
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), prefix in any::<String>()) {
        Account::parse(&text, &prefix);
        Account::parse(&text, "init");
    }
}
