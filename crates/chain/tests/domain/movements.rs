//! Movements of tokens, in events that no recorded chain has.

use std::collections::BTreeMap;

use chain::comet::{Attribute, Event};
use chain::movement::{
    Cause, Found, Kind, Movement, Reader, Source, Token, metadata_of_denom, module_account, primary_store,
};
use chain::{Account, U256, Vm};
use proptest::prelude::*;
use serde_json::value::RawValue;

fn event(kind: &str, attributes: &[(&str, &str)]) -> Event<'static> {
    let attributes = attributes.iter().map(|(key, value)| Attribute {
        key: (*key).to_owned().into(),
        value: (*value).to_owned().into(),
        index: true,
    });
    Event { kind: kind.to_owned().into(), attributes: attributes.collect() }
}

fn account(n: u8) -> Account {
    [n; 20].into()
}

fn bech32(n: u8) -> String {
    account(n).to_bech32("init")
}

fn contract(n: u8) -> String {
    Account::from([n; 32]).to_bech32("init")
}

fn read(vm: Vm, events: &[Event<'_>]) -> Vec<Movement> {
    found(vm, events).movements
}

fn found(vm: Vm, events: &[Event<'_>]) -> Found {
    Reader::new(vm, "init").read(Source::Tx(&[]), events)
}

/// From, to, amount and kind of each.
fn short(movements: &[Movement]) -> Vec<(Option<Account>, Option<Account>, u64, Kind)> {
    movements.iter().map(|it| (it.from, it.to, it.amount.to(), it.kind)).collect()
}

fn spent(n: u8, amount: &str) -> Event<'static> {
    event("coin_spent", &[("spender", &bech32(n)), ("amount", amount), ("msg_index", "0")])
}

fn received(n: u8, amount: &str) -> Event<'static> {
    event("coin_received", &[("receiver", &bech32(n)), ("amount", amount), ("msg_index", "0")])
}

/// An attribute `log` of a transfer.
fn log(contract: u8, topics: &[&str], data: &str) -> Event<'static> {
    let topics: Vec<String> = topics.iter().map(|topic| format!("\"{topic}\"")).collect();
    let address = hex::encode([contract; 20]);
    let text = format!(r#"{{"address":"0x{address}","topics":[{}],"data":"0x{data}"}}"#, topics.join(","));
    event("evm", &[("log", &text), ("msg_index", "0")])
}

const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const SINGLE: &str = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62";
const BATCH: &str = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb";

fn topic(n: u8) -> String {
    format!("0x{}{}", "0".repeat(24), hex::encode([n; 20]))
}

fn word(n: u64) -> String {
    format!("{n:064x}")
}

#[test]
fn coins_of_several_senders_and_receivers_are_paired_in_order() {
    let events = [
        spent(1, "5aaa,7bbb"),
        received(2, "3aaa"),
        received(3, "2aaa,7bbb"),
        // Nobody has given it, and nobody receives it.
        received(4, "1aaa"),
        spent(5, "9aaa"),
        received(1, ""),
        received(1, "1-a,x,0aaa,3a"),
    ];
    let movements = read(Vm::Wasm, &events);
    let (one, two, three) = (Some(account(1)), Some(account(2)), Some(account(3)));
    assert_eq!(
        short(&movements),
        [
            (one, two, 3, Kind::Transfer),
            (one, three, 2, Kind::Transfer),
            (one, three, 7, Kind::Transfer),
            (None, Some(account(4)), 1, Kind::Mint),
            (Some(account(5)), None, 9, Kind::Burn),
        ]
    );
    assert_eq!(movements[2].token, Token::Denom("bbb".to_owned()));
    assert_eq!(movements[0].message, Some(0));
}

#[test]
fn what_the_bank_makes_is_not_taken_from_what_another_account_has_given() {
    let minted = event("coinbase", &[("minter", &bech32(2)), ("amount", "4aaa"), ("msg_index", "0")]);
    let burnt = event("burn", &[("burner", &bech32(3)), ("amount", "1aaa"), ("msg_index", "0")]);
    let events =
        [spent(1, "4aaa"), received(2, "4aaa"), minted, spent(3, "1aaa"), burnt, received(4, "4aaa")];
    assert_eq!(
        short(&read(Vm::None, &events)),
        [
            (None, Some(account(2)), 4, Kind::Mint),
            (Some(account(3)), None, 1, Kind::Burn),
            (Some(account(1)), Some(account(4)), 4, Kind::Transfer),
        ]
    );
}

#[test]
fn fees_are_what_the_collector_gets_before_the_messages_and_refunds_what_it_gives_after_them() {
    let collector = module_account("fee_collector").to_bech32("init");
    let plain = |kind: &str, key: &str, who: &str| event(kind, &[(key, who), ("amount", "9aaa")]);
    let pay = [plain("coin_spent", "spender", &bech32(1)), plain("coin_received", "receiver", &collector)];
    let back = [plain("coin_spent", "spender", &collector), plain("coin_received", "receiver", &bech32(1))];
    let kinds = |events: &[Event<'_>], source| -> Vec<Kind> {
        let found = Reader::new(Vm::Wasm, "init").read(source, events);
        found.movements.iter().map(|it| it.kind).collect()
    };
    let message = event("message", &[("action", "/a.MsgB"), ("msg_index", "0")]);
    let whole: Vec<Event<'_>> = pay.iter().chain([&message]).chain(&back).cloned().collect();
    assert_eq!(kinds(&whole, Source::Tx(&[])), [Kind::Fee, Kind::FeeRefund]);
    assert_eq!(kinds(&pay, Source::Tx(&[])), [Kind::Fee], "a transaction that failed");
    assert_eq!(kinds(&back, Source::Block), [Kind::Transfer], "a block gives what it has collected");
}

#[test]
fn only_the_framework_of_move_moves_assets_and_only_by_the_first_two_attributes() {
    let (metadata, owner) = ([9; 32], account(1));
    let mut owner32 = [0; 32];
    owner32[12..].copy_from_slice(owner.as_bytes());
    let store = primary_store(&owner32, &metadata);
    let data = |store: &[u8], amount: u64| {
        let (store, metadata) = (hex::encode(store), hex::encode(metadata));
        format!(r#"{{"store_addr":"0x{store}","metadata_addr":"0x{metadata}","amount":"{amount}"}}"#)
    };
    let asset =
        |tag: &str, data: &str| event("move", &[("type_tag", tag), ("data", data), ("msg_index", "0")]);
    let withdraw = asset("0x1::fungible_asset::WithdrawEvent", &data(&store, 5));
    let named =
        asset("0x1::fungible_asset::WithdrawOwnerEvent", &format!(r#"{{"owner":"{}"}}"#, owner.to_hex()));
    let deposit = asset("0x1::fungible_asset::DepositEvent", &data(&[7; 32], 5));
    let forged = [
        asset("0x2::fungible_asset::WithdrawEvent", &data(&store, 50)),
        asset("0x1::fungible_asset_2::WithdrawEvent", &data(&store, 50)),
        event(
            "move",
            &[
                ("type_tag", "0x2::m::E"),
                ("data", "{}"),
                ("type_tag", "0x1::fungible_asset::WithdrawEvent"),
                ("data", &data(&store, 50)),
            ],
        ),
        event(
            "ibccallbackerror-move",
            &[("type_tag", "0x1::fungible_asset::WithdrawEvent"), ("data", &data(&store, 50))],
        ),
    ];
    let real = [withdraw.clone(), named.clone(), deposit.clone()];
    let events: Vec<Event<'_>> = forged.iter().chain(&real).cloned().collect();
    let secondary = Some(Account::from([7; 32]));
    assert_eq!(short(&read(Vm::Move, &events)), [(Some(owner), secondary, 5, Kind::Transfer)]);
    // Of another owner than the store's, the store is an account of its own.
    let other = asset(
        "0x1::fungible_asset::WithdrawOwnerEvent",
        &format!(r#"{{"owner":"{}"}}"#, account(2).to_hex()),
    );
    let of_store = short(&read(Vm::Move, &[withdraw.clone(), other, deposit.clone()]));
    assert_eq!(of_store, [(Some(store.into()), secondary, 5, Kind::Transfer)]);
    // An asset is called by what its address is made of, whatever symbol it has.
    let bank = event("coin_spent", &[("spender", &bech32(1)), ("amount", "5umin,1move/0909")]);
    let denoms = found(Vm::Move, &[bank]).denoms;
    assert_eq!(denoms[0], (Token::Asset(metadata_of_denom("umin").unwrap()), "umin".to_owned()));
    assert!(
        matches!(&denoms[1], (Token::Asset(object), _) if object[30..] == [9, 9] && object[..30] == [0; 30])
    );
}

#[test]
fn logs_are_movements_of_the_contract_that_emitted_them() {
    let (a, b, zero) = (topic(1), topic(2), topic(0));
    let batch = [word(64), word(160), word(2), word(4), word(5), word(2), word(40), word(0)].concat();
    let events = [
        log(8, &[TRANSFER, &a, &b], &word(5)),
        log(8, &[TRANSFER, &zero, &b, &word(7).replacen("00", "0x00", 1)], ""),
        log(9, &[SINGLE, &b, &a, &zero], &[word(3), word(30)].concat()),
        log(9, &[BATCH, &b, &a, &b], &batch),
        // Of other forms: no address, no amount, two amounts, arrays of other lengths or beyond the end, a huge length.
        log(8, &[TRANSFER, &format!("0x{}", word(0).replace('0', "1")), &b], &word(5)),
        log(8, &[TRANSFER, &a, &b], ""),
        log(8, &[TRANSFER, &a, &b], &[word(5), word(6)].concat()),
        log(9, &[BATCH, &b, &a, &b], &[word(64), word(128), word(1), word(4), word(0)].concat()),
        log(9, &[BATCH, &b, &a, &b], &[word(64), word(64), word(3), word(4)].concat()),
        log(9, &[BATCH, &b, &a, &b], &[word(64), word(64), word(u64::MAX)].concat()),
        log(9, &[BATCH, &b, &a, &b], &[word(u64::MAX), word(64), word(0)].concat()),
    ];
    let movements = read(Vm::Evm, &events);
    let (a, b) = (Some(account(1)), Some(account(2)));
    assert_eq!(
        short(&movements),
        [
            (a, b, 5, Kind::Transfer),
            (None, b, 1, Kind::Mint),
            (a, None, 30, Kind::Burn),
            (a, b, 40, Kind::Transfer),
            (a, b, 0, Kind::Transfer),
        ]
    );
    let ids: Vec<_> =
        movements.iter().map(|it| it.token_id.as_ref().map(|id| id.parse::<u64>().unwrap())).collect();
    assert_eq!(ids, [None, Some(7), Some(3), Some(4), Some(5)]);
    assert_eq!(movements[0].token, Token::Erc20([8; 20]));
    assert_eq!(movements[1].token, Token::Erc721([8; 20]));
    assert_eq!(movements[3].token, Token::Erc1155([9; 20]));
    // The bank of a minievm may answer without moving anything.
    assert!(read(Vm::Evm, &[spent(1, "5evm/ab"), received(2, "5evm/ab")]).is_empty());
}

#[test]
fn a_denom_of_genesis_is_named_by_the_one_contract_that_logged_what_the_bank_transferred() {
    let sent = |amount: &str| {
        let (from, to) = (bech32(1), bech32(2));
        event("transfer", &[("recipient", &to), ("sender", &from), ("amount", amount), ("msg_index", "0")])
    };
    let of = |contract| log(contract, &[TRANSFER, &topic(1), &topic(2)], &word(5));
    let named = |events: &[Event<'_>]| found(Vm::Evm, events).denoms;
    assert_eq!(named(&[of(8), sent("5GAS")]), [(Token::Erc20([8; 20]), "GAS".to_owned())]);
    assert_eq!(named(&[of(8), sent("6GAS")]), [], "another amount");
    assert_eq!(named(&[of(8), of(9), sent("5GAS,5evm/ab")]), [], "a stranger's contract may log the same");
    let created =
        event("erc20_created", &[("denom", "uusdc"), ("contract", &format!("0x{}", hex::encode([8; 20])))]);
    assert_eq!(named(&[created]), [(Token::Erc20([8; 20]), "uusdc".to_owned())]);
}

#[test]
fn actions_of_a_cw20_move_the_token_of_the_contract_that_the_chain_names() {
    let (token, other) = (contract(7), contract(8));
    let action = |attributes: &[(&str, &str)]| {
        event("wasm", &[&[("_contract_address", token.as_str())], attributes].concat())
    };
    let (one, two) = (bech32(1), bech32(2));
    let events = [
        action(&[("action", "transfer"), ("from", &one), ("to", &two), ("amount", "5")]),
        action(&[("action", "burn_from"), ("amount", "6"), ("by", &two), ("from", &one)]),
        action(&[("action", "mint"), ("to", &one), ("amount", "7"), ("_contract_address", &other)]),
        action(&[("action", "transfer_nft"), ("from", &one), ("to", &two), ("amount", "5")]),
        action(&[("action", "transfer"), ("from", "nobody"), ("to", &two), ("amount", "5")]),
        action(&[
            ("action", "transfer"),
            ("from", &one),
            ("to", &two),
            ("amount", "340282366920938463463374607431768211456"),
        ]),
        event(
            "wasm-transfer",
            &[("_contract_address", &token), ("action", "mint"), ("to", &one), ("amount", "5")],
        ),
    ];
    let movements = read(Vm::Wasm, &events);
    assert_eq!(
        short(&movements),
        [
            (Some(account(1)), Some(account(2)), 5, Kind::Transfer),
            (Some(account(1)), None, 6, Kind::Burn),
            (None, Some(account(1)), 7, Kind::Mint),
        ]
    );
    assert!(movements.iter().all(|it| it.token == Token::Cw20([7; 32])));
}

#[test]
fn the_first_balances_of_a_cw20_are_those_of_its_message() {
    let instantiated = |contract: &str, more: &[(&str, &str)]| {
        event("instantiate", &[&[("_contract_address", contract), ("code_id", "1")], more].concat())
    };
    let message = format!(
        r#"{{"@type":"/cosmwasm.wasm.v1.MsgInstantiateContract2","msg":{{"name":"T","initial_balances":[{{"address":"{}","amount":"9"}}]}}}}"#,
        bech32(1)
    );
    let message: Box<RawValue> = serde_json::from_str(&message).unwrap();
    let events = [
        instantiated(&contract(7), &[("msg_index", "0")]),
        instantiated(&contract(8), &[("msg_index", "0")]),
        instantiated(&contract(9), &[("authz_msg_index", "0"), ("msg_index", "0")]),
    ];
    let found = Reader::new(Vm::Wasm, "init").read(Source::Tx(&[&message]), &events);
    assert_eq!(short(&found.movements), [(None, Some(account(1)), 9, Kind::Mint)]);
    assert_eq!(found.movements[0].token, Token::Cw20([7; 32]));
    assert_eq!(found.whole, [Token::Cw20([7; 32])]);
}

#[test]
fn the_first_balances_of_a_cw20_are_known_only_if_a_message_of_the_transaction_has_them_all() {
    let by = |kind: &str, balances: &str| {
        format!(r#"{{"@type":"/cosmwasm.wasm.v1.{kind}","msg":{{"initial_balances":[{balances}]}}}}"#)
    };
    let of = |n: u8| format!(r#"{{"address":"{}","amount":"9"}}"#, bech32(n));
    let exec = |kind: &str, inner: &str| format!(r#"{{"@type":"{kind}","msgs":[{{}},{inner}]}}"#);
    let inner = by("MsgInstantiateContract", &of(1));
    let top = [("msg_index", "0")];
    let nested = [("authz_msg_index", "1"), ("msg_index", "0")];
    for (message, group, known) in [
        (by("MsgInstantiateContract", ""), &top[..], Some(0)),
        (by("MsgInstantiateContract", &[of(1), of(2)].join(",")), &top, Some(2)),
        (exec("/cosmos.authz.v1beta1.MsgExec", &inner), &nested, Some(1)),
        (exec("/other.MsgExec", &inner), &nested, None),
        // A contract instantiates it, and what it tells it is its own.
        (by("MsgExecuteContract", &of(1)), &top, None),
        (by("MsgInstantiateContract", r#"{"address":"x","amount":"9"}"#), &top, None),
        (r#"{"@type":"/cosmwasm.wasm.v1.MsgInstantiateContract","msg":{}}"#.to_owned(), &top, None),
    ] {
        let of = contract(7);
        let attributes = [&[("_contract_address", &*of)], group].concat();
        let boxed: Box<RawValue> = serde_json::from_str(&message).unwrap();
        let found =
            Reader::new(Vm::Wasm, "init").read(Source::Tx(&[&boxed]), &[event("instantiate", &attributes)]);
        assert_eq!(found.movements.len(), known.unwrap_or(0), "{message}");
        assert_eq!(found.whole.len(), usize::from(known.is_some()), "{message}");
    }
}

#[test]
fn what_a_message_sends_to_the_zero_address_is_there_and_what_only_a_log_says_is_burned() {
    let zero = topic(0);
    let logged = log(0xcc, &[TRANSFER, &topic(1), &zero], &word(5));
    let call = |contract: &str, input: &str, value: &str| {
        format!(
            r#"{{"@type":"/minievm.evm.v1.MsgCall","sender":"{}","contract_addr":"{contract}","input":"{input}","value":"{value}"}}"#,
            bech32(1)
        )
    };
    let token = account(0xcc).to_hex();
    let transfer = |to: u8| format!("0xa9059cbb{}{}", &topic(to)[2..], word(5));
    let transfer_from = |from: u8| format!("0x23b872dd{}{}{}", &topic(from)[2..], &zero[2..], word(5));
    let exec = |inner: String| format!(r#"{{"@type":"/cosmos.authz.v1beta1.MsgExec","msgs":[{inner}]}}"#);
    for (message, is_sent) in [
        (call(&token, &transfer(0), "0"), true),
        (call(&token, &transfer_from(1), "0"), true),
        (call(&Account::ZERO.to_hex(), "0x", "5"), true),
        // Of another account, token, value or receiver.
        (call(&token, &transfer_from(2), "0"), false),
        (call(&account(0xdd).to_hex(), &transfer(0), "0"), false),
        (call(&Account::ZERO.to_hex(), "0x", "6"), false),
        (call(&token, &transfer(2), "0"), false),
        (call("", "0x", "5"), false),
        // burn(uint256)
        (call(&token, &format!("0x42966c68{}", word(5)), "0"), false),
        (exec(call(&token, &transfer(0), "0")), false),
    ] {
        let boxed: Box<RawValue> = serde_json::from_str(&message).unwrap();
        let found = Reader::new(Vm::Evm, "init").read(Source::Tx(&[&boxed]), &[logged.clone()]);
        let expected = match is_sent {
            true => (Some(account(1)), Some(Account::ZERO), 5, Kind::Transfer),
            false => (Some(account(1)), None, 5, Kind::Burn),
        };
        assert_eq!(short(&found.movements), [expected], "{message}");
    }
    let bank = |recipient: Account, amount: &str| {
        let recipient = recipient.to_bech32("init");
        let attributes =
            [("recipient", &*recipient), ("sender", &bech32(1)), ("amount", amount), ("msg_index", "0")];
        [logged.clone(), event("transfer", &attributes)]
    };
    let receiver = |events: &[Event<'_>]| read(Vm::Evm, events)[0].to;
    assert_eq!(receiver(&bank(Account::ZERO, "5umin")), Some(Account::ZERO));
    assert_eq!(receiver(&bank(Account::ZERO, "6umin")), None);
    assert_eq!(receiver(&bank(account(2), "5umin")), None);
}

#[test]
fn a_packet_is_the_cause_of_what_goes_to_its_escrow() {
    // ADR 28: sha256("ics20-1" ‖ 0 ‖ "transfer/channel-0").
    let escrow = "init1a53udazy8ayufvy0s434pfwjcedzqv34c6zkqv";
    let send = event(
        "send_packet",
        &[
            ("packet_sequence", "7"),
            ("packet_src_port", "transfer"),
            ("packet_src_channel", "channel-0"),
            ("msg_index", "0"),
        ],
    );
    let into = event("coin_received", &[("receiver", escrow), ("amount", "5aaa"), ("msg_index", "0")]);
    let movements = read(Vm::Wasm, &[spent(1, "5aaa"), into, send]);
    assert_eq!(movements[0].kind, Kind::IbcOut);
    let cause = Cause::Packet { port: "transfer".to_owned(), channel: "channel-0".to_owned(), sequence: 7 };
    assert_eq!(movements[0].cause, Some(cause));
}

#[derive(Clone, Debug)]
struct Leg {
    is_spent: bool,
    who: u8,
    denom: u8,
    amount: u64,
    message: u8,
}

prop_compose! {
    fn leg()(is_spent: bool, who in 1_u8..5, denom in 0_u8..2, amount in 0_u64..9, message in 0_u8..2) -> Leg {
        Leg { is_spent, who, denom, amount, message }
    }
}

proptest! {
    /// However they are paired, movements change balances exactly as the legs do.
    #[test]
    fn movements_change_balances_as_their_legs_do(legs in prop::collection::vec(leg(), 0..60)) {
        let mut expected: BTreeMap<(u8, u8), i128> = BTreeMap::new();
        let mut events = Vec::new();
        for Leg { is_spent, who, denom, amount, message } in &legs {
            let held = expected.entry((*who, *denom)).or_default();
            *held += if *is_spent { -i128::from(*amount) } else { i128::from(*amount) };
            let (kind, key) =
                if *is_spent { ("coin_spent", "spender") } else { ("coin_received", "receiver") };
            let (who, coins) = (bech32(*who), format!("{amount}den{denom}"));
            events.push(event(kind, &[(key, &who), ("amount", &coins), ("msg_index", &message.to_string())]));
        }
        let mut changed: BTreeMap<(u8, u8), i128> = BTreeMap::new();
        for movement in read(Vm::None, &events) {
            prop_assert!(movement.amount > U256::ZERO);
            let Token::Denom(denom) = &movement.token else { panic!("{movement:?}") };
            let denom = denom.as_bytes()[3] - b'0';
            let amount: i128 = movement.amount.to();
            for (account, change) in [(movement.from, -amount), (movement.to, amount)] {
                if let Some(account) = account {
                    *changed.entry((account.as_bytes()[0], denom)).or_default() += change;
                }
            }
        }
        expected.retain(|_, change| *change != 0);
        changed.retain(|_, change| *change != 0);
        prop_assert_eq!(changed, expected);
    }

    /// Contracts and nodes choose the texts.
    #[test]
    fn no_text_makes_reading_fail(
        kind in "evm|move|wasm|coin_spent|coin_received|instantiate|send_packet|burn|transfer",
        attributes in prop::collection::vec(("log|type_tag|data|action|amount|from|spender|receiver|msg_index", ".{0,40}"), 0..6),
    ) {
        let attributes: Vec<_> = attributes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        for vm in [Vm::Evm, Vm::Move, Vm::Wasm, Vm::None] {
            read(vm, &[event(&kind, &attributes), event(&kind, &attributes)]);
        }
    }
}
