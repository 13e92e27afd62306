//! Lists of addresses, valid and invalid.

use chain::Account;
use messages::{BuildError, Tx};
use planner::{Hop, Step};

use crate::support::world::{self, *};
use crate::support::{NOBLE, Scenario, USER, USER_HEX, json};

const L1: &str = "interwoven-1";

fn channel(scenario: &Scenario, chain: &str, number: u32) -> Step {
    let found = scenario.registry.channel_at(scenario.chain(chain), "transfer", &format!("channel-{number}"));
    Step::Ibc { channel: found.unwrap() }
}

/// Dollars from noble to cabal over the L1.
fn hops(scenario: &Scenario) -> Vec<Hop> {
    let first = scenario.hop(channel(scenario, "noble-1", 129), ("noble-1", "uusdc"), (L1, USDC_L1), 5, 5);
    let second = scenario.hop(channel(scenario, L1, 97), (L1, USDC_L1), ("cabal-1", USDC_L2), 5, 5);
    vec![first, second]
}

#[test]
fn a_list_has_one_address_per_required_or_per_visited_chain() {
    let scenario = world::mainnet();
    let receiver = |addresses: &[&str]| {
        scenario.msgs(hops(&scenario), addresses)[0].msg.contains(r#"receiver\":\"init1pyq6"#)
    };
    assert!(receiver(&[NOBLE, USER]));
    assert!(receiver(&[NOBLE, USER, USER]));
    for wrong in [vec![], vec![NOBLE], vec![NOBLE, USER, USER, USER]] {
        let refused = scenario.make(hops(&scenario), &wrong).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "address_list has {} entries; this route takes 2: one for each of [noble-1, cabal-1], or of [noble-1, interwoven-1, cabal-1]",
                wrong.len()
            )
        );
    }
}

#[test]
fn one_address_of_a_single_chain_is_sender_and_receiver() {
    let scenario = world::mainnet();
    let send = || vec![scenario.hop(Step::Send, (L1, "uinit"), (L1, "uinit"), 5, 5)];
    let msg = json(&scenario.msgs(send(), &[USER_HEX])[0]);
    assert_eq!((&msg["from_address"], &msg["to_address"]), (&USER.into(), &USER.into()));
    let msg = json(&scenario.msgs(send(), &[USER, crate::support::OTHER])[0]);
    assert_eq!((&msg["from_address"], &msg["to_address"]), (&USER.into(), &crate::support::OTHER.into()));
}

#[test]
fn hex_and_capitals_are_read_and_bech32_is_written() {
    let scenario = world::mainnet();
    let upper = USER.to_ascii_uppercase();
    let lower = USER_HEX.to_ascii_lowercase();
    let shout = format!("0x{}", USER_HEX[2..].to_ascii_uppercase());
    for spelling in [USER, USER_HEX, &upper, &lower, &shout] {
        let made =
            scenario.make(vec![scenario.hop(Step::Send, (L1, "uinit"), (L1, "uinit"), 5, 5)], &[spelling]);
        let made = made.unwrap_or_else(|refused| panic!("{spelling}: {refused}"));
        let Tx::Cosmos { signer, .. } = &made.txs[0] else { panic!("{made:?}") };
        assert_eq!(signer, USER);
    }
}

#[test]
fn long_accounts_get_coins_and_no_wrapped_tokens() {
    let scenario = world::mainnet();
    let long = Account::from_bytes(&[9; 32]).unwrap();
    for spelling in [long.to_bech32("init"), long.to_hex()] {
        let send = vec![scenario.hop(Step::Send, (L1, "uinit"), (L1, "uinit"), 5, 5)];
        assert_eq!(json(&scenario.msgs(send, &[USER, &spelling])[0])["to_address"], long.to_bech32("init"));
        let mut wrapped = hops(&scenario);
        wrapped.push(scenario.hop(Step::Wrap, ("cabal-1", USDC_L2), ("cabal-1", USDC_WRAPPED), 5, finer(5)));
        let refused = scenario.make(wrapped, &[NOBLE, &spelling]).unwrap_err();
        assert!(matches!(refused, BuildError::LongAccount { .. }), "{refused}");
    }
}

#[test]
fn a_wrong_address_is_named_with_its_place_chain_and_expected_form() {
    let scenario = world::mainnet();
    let init = "it must be bech32 with prefix `init`, 20 or 32 bytes and a right checksum, or 0x and 40 or 64 hex digits";
    let noble = "it must be bech32 with prefix `noble`, 20 or 32 bytes and a right checksum";
    let capitals = "its capitals are not those of EIP-55: correct it, or write it in small letters";
    let hex = "it must be 0x and 40 or 64 hex digits";
    let typo = USER.replace("flmr", "flmq");
    let other = Account::from([1; 20]);
    let short = Account::from_bytes(&[1; 20]).unwrap().to_bech32("initvaloper");
    let cases = [
        (0, USER, "noble-1", noble),
        (0, USER_HEX, "noble-1", noble),
        (1, NOBLE, "cabal-1", init),
        (1, &typo, "cabal-1", init),
        (1, &short, "cabal-1", init),
        (1, "", "cabal-1", init),
        (1, "0x1", "cabal-1", hex),
        (1, "0xzz01aeeD1d5144987DaE3D95AB219ff75e9bA636", "cabal-1", hex),
        (1, "0x0901AeeD1d5144987DaE3D95AB219ff75e9bA636", "cabal-1", capitals),
        (1, &USER_HEX[2..], "cabal-1", init),
    ];
    for (index, address, chain, must) in cases {
        let own = other.to_bech32("noble");
        let mut list = [own.as_str(), USER];
        list[index] = address;
        assert_eq!(
            scenario.refusal(hops(&scenario), &list),
            format!("address_list[{index}] `{address}` is no address of chain `{chain}`: {must}")
        );
    }
    // An address that no message uses is checked too.
    let refused = scenario.refusal(hops(&scenario), &[NOBLE, NOBLE, USER]);
    assert!(
        refused.starts_with("address_list[1] `noble1") && refused.contains("`interwoven-1`"),
        "{refused}"
    );
    let long = scenario.refusal(hops(&scenario), &[NOBLE, &"é".repeat(5_000)]);
    assert!(long.len() < 400, "{long}");
}

#[test]
fn evm_chains_take_hex_of_twenty_bytes_only() {
    let scenario = world::mainnet();
    let send = || vec![scenario.hop(Step::Send, ("1", "ethereum-native"), ("1", "ethereum-native"), 5, 5)];
    assert!(scenario.make(send(), &[USER_HEX]).is_ok());
    let long = format!("0x{}", "09".repeat(32));
    let bad = "0X0901aeeD1d5144987DaE3D95AB219ff75e9bA636";
    for (address, must) in [
        (USER, "it must be 0x and 40 hex digits"),
        (&long, "it must be 0x and 40 hex digits"),
        (bad, "it must be 0x and 40 hex digits"),
        (
            "0x0901AeeD1d5144987DaE3D95AB219ff75e9bA636",
            "its capitals are not those of EIP-55: correct it, or write it in small letters",
        ),
        ("0x0000000000000000000000000000000000000000", "the zero address is nobody's"),
    ] {
        let expected = format!("address_list[1] `{address}` is no address of chain `1`: {must}");
        assert_eq!(scenario.refusal(send(), &[USER_HEX, address]), expected);
    }
}
