//! NFT events that recordings lack: repeats, wrong shapes, names that only look alike, order.

use std::slice::from_ref;

use alloy::primitives::keccak256;
use chain::comet::parse_results;
use chain::nft::{
    CONSECUTIVE_OF_BLOCK, CONSECUTIVE_OF_LOG, NftEvent, TokenRef, Updated, events, move_vm, wasm,
};
use chain::{Account, Text, U256, Vm};
use serde_json::{Value, json};

const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const CONTRACT: &str = "0x2ee7007df876084d4c74685e90bb7f4cd7c86e22";

fn event(kind: &str, attributes: &[(&str, &str)]) -> Value {
    let attributes: Vec<_> = attributes.iter().map(|(k, v)| json!({ "key": k, "value": v })).collect();
    json!({ "type": kind, "attributes": attributes })
}

fn events_in(vm: Vm, answer: &Value) -> Vec<(Option<usize>, NftEvent)> {
    let text = answer.to_string();
    events(vm, "init", &parse_results(text.as_bytes()).unwrap())
}

/// The NFT events of one transaction.
fn found(vm: Vm, of_tx: &[Value]) -> Vec<NftEvent> {
    let found = events_in(vm, &json!({ "txs_results": [{ "events": of_tx }] }));
    found.into_iter().map(|(_, event)| event).collect()
}

fn account(byte: u8) -> Account {
    Account::from([byte; 20])
}

fn contract() -> Account {
    Account::from_hex_literal(CONTRACT).unwrap()
}

fn topic(byte: u8) -> String {
    format!("0x{}{}", "0".repeat(24), hex::encode([byte; 20]))
}

fn nft_log(from: u8, to: u8, token: &str) -> String {
    json!({ "address": CONTRACT, "topics": [TRANSFER, topic(from), topic(to), token], "data": "0x" })
        .to_string()
}

fn token(id: &str) -> TokenRef {
    TokenRef::Id { collection: contract(), token_id: id.to_owned() }
}

fn mint(id: &str, owner: u8) -> NftEvent {
    let (token_id, owner) = (Some(id.to_owned()), Some(account(owner)));
    NftEvent::Mint { collection: contract(), token_id, object: None, owner, uri: None }
}

#[test]
fn all_logs_of_an_event_count_in_order_and_block_events_come_before_and_after() {
    let id = format!("0x{:064x}", 7);
    let block = |mode, log: &str| event("evm", &[("log", log), ("mode", mode)]);
    let several = [(0, 3), (3, 0), (0, 4), (0, 0)].map(|(from, to)| nft_log(from, to, &id));
    let several: Vec<_> = several.iter().map(|log| ("log", log.as_str())).collect();
    let answer = json!({ "txs_results": [{}, { "events": [event("evm", &several)] }],
        "finalize_block_events": [block("EndBlock", &nft_log(4, 5, &id)), block("BeginBlock", &nft_log(0, 1, &id)),
                                  block("BeginBlock", &nft_log(1, 0, &id))] });
    let burn = NftEvent::Burn { token: token("7") };
    assert_eq!(
        events_in(Vm::Evm, &answer),
        [
            (None, mint("7", 1)),
            (None, burn.clone()),
            (Some(1), mint("7", 3)),
            (Some(1), burn),
            (Some(1), mint("7", 4)),
            (None, NftEvent::Transfer { token: token("7"), to: account(5) }),
        ]
    );
    assert_eq!(events_in(Vm::None, &answer), []);
}

#[test]
fn a_token_id_is_decimal_up_to_the_largest() {
    let largest = format!("0x{}", "f".repeat(64));
    let decimal = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    assert_eq!(found(Vm::Evm, &[event("evm", &[("log", &nft_log(0, 1, &largest))])]), [mint(decimal, 1)]);
}

#[test]
fn data_may_be_absent_and_other_logs_than_erc721_transfers_are_skipped() {
    let id = format!("0x{:064x}", 7);
    let topics = json!([TRANSFER, topic(0), topic(1), id]);
    let good = [
        json!({ "address": CONTRACT, "topics": topics }),
        json!({ "address": CONTRACT, "topics": topics, "data": "" }),
        json!({ "address": CONTRACT, "topics": topics, "data": null }),
    ];
    let wide = format!("0x1{}", &topic(1)[3..]);
    let single = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62";
    let invalid = [
        json!({ "address": CONTRACT, "topics": topics, "data": "0x00" }),
        json!({ "address": CONTRACT, "topics": topics, "data": id }),
        json!({ "address": CONTRACT, "topics": [TRANSFER, topic(0), topic(1)], "data": id }),
        json!({ "address": CONTRACT, "topics": [TRANSFER, topic(0), topic(1), id, id], "data": "0x" }),
        json!({ "address": CONTRACT, "topics": [TRANSFER, topic(0), wide, id], "data": "0x" }),
        json!({ "address": CONTRACT, "topics": [TRANSFER, topic(0), topic(1), "0x7"], "data": "0x" }),
        json!({ "address": CONTRACT, "topics": [single, topic(9), TRANSFER, topic(1)], "data": "0x" }),
        json!({ "address": "0x1", "topics": topics, "data": "0x" }),
        json!([TRANSFER]),
    ];
    let mut logs: Vec<String> = invalid.iter().chain(&good).map(ToString::to_string).collect();
    logs.push(format!(r#"{{"address": "{CONTRACT}", "topics": {topics}, "data": "0x00"}}"#));
    let logs: Vec<_> = logs.iter().map(|log| ("log", log.as_str())).collect();
    assert_eq!(found(Vm::Evm, &[event("evm", &logs)]), [mint("7", 1), mint("7", 1), mint("7", 1)]);
}

#[test]
fn reverted_work_and_bytecode_give_no_nft_event() {
    let log = nft_log(0, 1, &topic(7));
    let bytecode = format!("0x{}", "60".repeat(5_000));
    let undone = [
        event("ibccallbackerror-evm", &[("ibccallbackerror-log", &log)]),
        event("ibccallbackerror-evm", &[("log", &log)]),
        event("evm", &[("ibccallbackerror-log", &log), ("logs", &log)]),
        event("erc721_created", &[("class_id", "ibc/1"), ("contract", &bytecode)]),
        event("erc721_minted", &[("contract", CONTRACT), ("token_id", "7"), ("token_origin_id", "a")]),
    ];
    assert_eq!(found(Vm::Evm, &undone), []);
    // The logs of another virtual machine have no meaning.
    assert_eq!(found(Vm::Wasm, &[event("evm", &[("log", &log)])]), []);
}

fn moved(tag: &str, data: &Value) -> Value {
    event("move", &[("type_tag", tag), ("data", &data.to_string())])
}

fn long(byte: u8) -> String {
    format!("0x{}", hex::encode([byte; 32]))
}

fn object(byte: u8) -> Account {
    Account::from_hex_literal(&long(byte)).unwrap()
}

#[test]
fn the_first_data_of_a_move_event_counts_and_long_framework_addresses_do_too() {
    let transfer = json!({ "object": long(8), "from": "0x1", "to": "0xc0ffee" }).to_string();
    let other = json!({ "object": long(9), "from": "0x1", "to": "0x2" }).to_string();
    let framework = format!("0x{:064x}::object::TransferEvent", 1);
    let repeated = |tag: &str| {
        event("move", &[("type_tag", tag), ("data", &transfer), ("data", &other), ("type_tag", "0x1::x::Y")])
    };
    let expected = NftEvent::Transfer {
        token: TokenRef::Object(object(8)),
        to: Account::from_hex_literal("0xc0ffee").unwrap(),
    };
    for tag in ["0x1::object::TransferEvent", &framework] {
        assert_eq!(found(Vm::Move, &[repeated(tag)]), from_ref(&expected), "{tag}");
    }
    for tag in
        ["0x2::object::TransferEvent", "0x11::object::TransferEvent", "object::TransferEvent", "0x1::object"]
    {
        assert_eq!(found(Vm::Move, &[repeated(tag)]), [], "{tag}");
    }
}

#[test]
fn a_move_mint_is_joined_only_within_its_transaction_and_only_with_its_own_token() {
    let created =
        moved("0x1::object::CreateEvent", &json!({ "object": long(8), "owner": "0x5", "version": "1" }));
    let handed =
        moved("0x1::object::TransferEvent", &json!({ "object": long(8), "from": "0x5", "to": "0x6" }));
    let minted = moved(
        "0x1::collection::MintEvent",
        &json!({ "collection": long(7), "token_id": "a\0b", "nft": long(8) }),
    );
    let token = |id: &str| {
        moved("0x1::nft::CreateEvent", &json!({ "collection": long(7), "token_id": id, "uri": "u\0ri" }))
    };
    let mint = |owner: Option<&str>, uri: Option<&str>| NftEvent::Mint {
        collection: object(7),
        token_id: Some("ab".into()),
        object: Some(object(8)),
        owner: owner.and_then(Account::from_hex_literal),
        uri: uri.map(Into::into),
    };
    let of =
        |events: &[&Value]| found(Vm::Move, &events.iter().map(|event| (*event).clone()).collect::<Vec<_>>());
    assert_eq!(of(&[&created, &minted, &token("ab")]), [mint(Some("0x5"), Some("uri"))]);
    assert_eq!(of(&[&created, &handed, &minted])[1], mint(Some("0x6"), None));
    assert_eq!(of(&[&minted, &created, &token("other")]), [mint(None, None)]);
    let apart = json!({ "txs_results": [{ "events": [created] }, { "events": [minted] }, { "events": [token("ab")] }] });
    assert_eq!(events_in(Vm::Move, &apart), [(Some(1), mint(None, None))]);
}

#[test]
fn older_and_newer_move_libraries_are_read() {
    let old =
        moved("0x1::collection::MintEvent", &json!({ "collection": long(7), "index": "3", "nft": long(8) }));
    let mint = NftEvent::Mint {
        collection: object(7),
        token_id: None,
        object: Some(object(8)),
        owner: None,
        uri: None,
    };
    assert_eq!(found(Vm::Move, &[old]), [mint]);
    let make = |kind: &str| {
        let data =
            json!({ "collection": long(7), "creator": "0x5", "name": "n", "royalty": { "owner": [] } });
        moved(&format!("0x1::collection::{kind}"), &data)
    };
    let create = NftEvent::Create {
        collection: object(7),
        creator: Account::from_hex_literal("0x5").unwrap(),
        name: "n".into(),
    };
    for kinds in [&["CreateEvent"][..], &["CreateCollectionEvent"], &["CreateEvent", "CreateCollectionEvent"]]
    {
        let events: Vec<_> = kinds.iter().map(|kind| make(kind)).collect();
        assert_eq!(found(Vm::Move, &events), from_ref(&create), "{kinds:?}");
    }
}

#[test]
fn malformed_and_unrelated_move_events_are_skipped() {
    let invalid = [
        event("move", &[("type_tag", "0x1::object::TransferEvent"), ("data", "{")]),
        event("move", &[("type_tag", "0x1::object::TransferEvent")]),
        event("move", &[("data", "{}")]),
        moved("0x1::object::TransferEvent", &json!({ "object": "nothing", "to": "0x1" })),
        moved("0x1::object::TransferEvent", &json!({ "object": {}, "to": "0x1" })),
        moved(
            "0x1::nft::MutationEvent",
            &json!({ "nft": long(8), "mutated_field_name": "description", "new_value": "x" }),
        ),
        moved(
            "0x1::collection::MutationEvent",
            &json!({ "collection": long(8), "mutated_field_name": "uri" }),
        ),
        event(
            "ibccallbackerror-move",
            &[("type_tag", "0x1::collection::BurnEvent"), ("data", r#"{"nft":"0x1"}"#)],
        ),
    ];
    assert_eq!(found(Vm::Move, &invalid), []);
}

fn bech32(byte: u8, long: bool) -> String {
    if long { object(byte).to_bech32("init") } else { account(byte).to_bech32("init") }
}

/// ERC-4906 and ERC-2309, from their texts.
const UPDATE: &str = "MetadataUpdate(uint256)";
const BATCH_UPDATE: &str = "BatchMetadataUpdate(uint256,uint256)";
const CONSECUTIVE: &str = "ConsecutiveTransfer(uint256,uint256,address,address)";

fn word(number: U256) -> String {
    format!("{number:064x}")
}

/// The NFT events of logs of the contract, each with its topics and data.
fn of_logs(logs: &[(&[String], String)]) -> Vec<NftEvent> {
    let logs: Vec<_> = logs
        .iter()
        .map(|(topics, data)| {
            json!({ "address": CONTRACT, "topics": topics, "data": format!("0x{data}") }).to_string()
        })
        .collect();
    let attributes: Vec<_> = logs.iter().map(|log| ("log", log.as_str())).collect();
    found(Vm::Evm, &[event("evm", &attributes)])
}

fn topics(kind: &str, words: &[String]) -> Vec<String> {
    let words = words.iter().map(|word| format!("0x{}", word.trim_start_matches("0x")));
    [keccak256(kind).to_string()].into_iter().chain(words).collect()
}

#[test]
fn metadata_updates_name_a_token_or_a_range() {
    let of =
        |kind: &str, words: &[String], data: &[String]| of_logs(&[(&topics(kind, words), data.concat())]);
    let updated = |tokens| vec![NftEvent::Metadata { collection: contract(), tokens }];
    let (five, nine) = (word(U256::from(5)), word(U256::from(9)));
    let (one, range) = (Updated::Token("5".to_owned()), Updated::Range(U256::from(5), U256::from(9)));
    assert_eq!(of(UPDATE, &[], std::slice::from_ref(&five)), updated(one.clone()));
    assert_eq!(of(BATCH_UPDATE, &[], &[five.clone(), nine.clone()]), updated(range.clone()));
    assert_eq!(of(BATCH_UPDATE, &[], &[five.clone(), five.clone()]), updated(one.clone()));
    let all = Updated::Range(U256::ZERO, U256::MAX);
    assert_eq!(of(BATCH_UPDATE, &[], &[word(U256::ZERO), word(U256::MAX)]), updated(all));
    // Some contracts index the arguments.
    assert_eq!(of(UPDATE, std::slice::from_ref(&five), &[]), updated(one));
    assert_eq!(of(BATCH_UPDATE, &[five.clone(), nine.clone()], &[]), updated(range));
    let invalid: [(&str, &[String]); 5] = [
        (UPDATE, &[]),
        (UPDATE, &[five.clone(), nine.clone()]),
        (BATCH_UPDATE, std::slice::from_ref(&five)),
        (BATCH_UPDATE, &[nine, five.clone()]),
        ("Transfer(address,address,uint256)", std::slice::from_ref(&five)),
    ];
    for (kind, data) in invalid {
        assert_eq!(of(kind, &[], data), [], "{kind} {data:?}");
    }
    // A proxy has other code: ERC-1967.
    assert_eq!(of("Upgraded(address)", &[topic(5)], &[]), updated(Updated::All));
    // The contract's own metadata: ERC-7572.
    assert_eq!(of("ContractURIUpdated()", &[], &[]), updated(Updated::Name));
}

#[test]
fn a_consecutive_transfer_is_one_event_for_each_token_up_to_a_bound() {
    let log = |first: U256, last: U256, from: u8, to: u8| {
        (topics(CONSECUTIVE, &[word(first), topic(from), topic(to)]), word(last))
    };
    let of = |logs: &[(Vec<String>, String)]| {
        let logs: Vec<_> = logs.iter().map(|(topics, data)| (&topics[..], data.clone())).collect();
        of_logs(&logs)
    };
    let (ten, twelve) = (U256::from(10), U256::from(12));
    assert_eq!(of(&[log(ten, twelve, 0, 3)]), [mint("10", 3), mint("11", 3), mint("12", 3)]);
    let moved = |id: &str| NftEvent::Transfer { token: token(id), to: account(4) };
    assert_eq!(of(&[log(ten, ten, 3, 4)]), [moved("10")]);
    assert_eq!(of(&[log(ten, ten, 3, 0)]), [NftEvent::Burn { token: token("10") }]);
    assert_eq!(of(&[log(twelve, ten, 0, 3)]), []);
    let max = log(U256::MAX - U256::from(1), U256::MAX, 0, 3);
    assert_eq!(
        of(&[max]),
        [mint(&(U256::MAX - U256::from(1)).to_string(), 3), mint(&U256::MAX.to_string(), 3)]
    );
    // What is not read is named.
    let unread = |first, last| NftEvent::Unread { collection: contract(), first, last };
    let of_log = usize::try_from(CONSECUTIVE_OF_LOG).unwrap();
    let whole = of(&[log(U256::from(1), U256::from(CONSECUTIVE_OF_LOG), 0, 3)]);
    assert_eq!((whole.len(), whole.last()), (of_log, Some(&mint(&CONSECUTIVE_OF_LOG.to_string(), 3))));
    let endless = of(&[log(U256::ZERO, U256::MAX, 0, 3)]);
    assert_eq!(endless.len(), of_log + 1);
    assert_eq!(endless[of_log], unread(U256::from(CONSECUTIVE_OF_LOG), U256::MAX));
    let many = of(&vec![log(U256::ZERO, U256::MAX, 0, 3); 10]);
    assert_eq!(many.len(), usize::try_from(CONSECUTIVE_OF_BLOCK).unwrap() + 10);
    assert_eq!(many.last(), Some(&unread(U256::ZERO, U256::MAX)));
}

/// A `wasm` event of contract 7.
fn of_contract(attributes: &[(&str, &str)]) -> Vec<NftEvent> {
    let contract = bech32(7, true);
    found(Vm::Wasm, &[event("wasm", &[&[("_contract_address", &*contract)], attributes].concat())])
}

fn minted(id: &str, owner: u8) -> NftEvent {
    let (token_id, owner) = (Some(id.to_owned()), Some(account(owner)));
    NftEvent::Mint { collection: object(7), token_id, object: None, owner, uri: None }
}

fn with_uri(event: NftEvent) -> NftEvent {
    let NftEvent::Mint { collection, token_id, object, owner, .. } = event else { return event };
    NftEvent::Mint { collection, token_id, object, owner, uri: Some("ipfs://1".into()) }
}

fn token_of_7(id: &str) -> TokenRef {
    TokenRef::Id { collection: object(7), token_id: id.to_owned() }
}

#[test]
fn of_repeated_wasm_keys_each_group_counts() {
    let (a, b) = (&*bech32(1, false), &*bech32(2, false));
    let made = NftEvent::Instantiate { collection: object(7) };
    // Group by group, key by key after a reply, and with one action for all tokens.
    let layouts: [&[(&str, &str)]; 4] = [
        &[
            ("action", "mint"),
            ("minter", a),
            ("owner", a),
            ("token_id", "1"),
            ("action", "mint"),
            ("minter", a),
            ("owner", b),
            ("token_id", "2"),
            ("action", "mint"),
            ("minter", a),
            ("owner", a),
            ("token_id", "3"),
            ("msg_index", "0"),
        ],
        &[
            ("action", "mint"),
            ("action", "mint"),
            ("action", "mint"),
            ("minter", a),
            ("minter", a),
            ("minter", a),
            ("owner", a),
            ("owner", b),
            ("owner", a),
            ("token_id", "1"),
            ("token_id", "2"),
            ("token_id", "3"),
        ],
        &[
            ("action", "mint"),
            ("minter", a),
            ("owner", a),
            ("token_id", "1"),
            ("owner", b),
            ("token_id", "2"),
            ("owner", a),
            ("token_id", "3"),
        ],
        &[
            ("token_id", "1"),
            ("token_id", "2"),
            ("token_id", "3"),
            ("minter", a),
            ("owner", a),
            ("owner", b),
            ("owner", a),
            ("action", "mint"),
        ],
    ];
    let expected = [made.clone(), minted("1", 1), minted("2", 2), minted("3", 1)];
    for layout in layouts {
        assert_eq!(of_contract(layout), expected, "{layout:?}");
    }
    // One owner for all, as of a batch.
    let batch = [("action", "mint"), ("minter", a), ("owner", b), ("token_id", "1"), ("token_id", "2")];
    assert_eq!(of_contract(&batch), [made.clone(), minted("1", 2), minted("2", 2)]);
    // A run of tokens for each owner.
    let runs = [
        ("action", "mint"),
        ("minter", a),
        ("owner", a),
        ("token_id", "1"),
        ("token_id", "2"),
        ("owner", b),
        ("token_id", "3"),
    ];
    assert_eq!(of_contract(&runs), [made.clone(), minted("1", 1), minted("2", 1), minted("3", 2)]);
    // It is unknown who of two owners has which of three tokens.
    let unknown = [
        ("action", "mint"),
        ("minter", a),
        ("owner", a),
        ("owner", b),
        ("token_id", "1"),
        ("token_id", "2"),
        ("token_id", "3"),
    ];
    assert_eq!(of_contract(&unknown), [made]);
}

#[test]
fn several_transfers_and_burns_in_one_wasm_event_all_count() {
    let (a, b) = (&*bech32(1, false), &*bech32(2, false));
    for action in ["transfer_nft", "send_nft"] {
        let moved = |id: &str, to| NftEvent::Transfer { token: token_of_7(id), to: account(to) };
        let one = [("action", action), ("token_id", "1"), ("recipient", a)];
        assert_eq!(of_contract(&one), [moved("1", 1)]);
        let two = [
            ("action", action),
            ("sender", a),
            ("recipient", a),
            ("token_id", "1"),
            ("action", action),
            ("sender", a),
            ("recipient", b),
            ("token_id", "2"),
        ];
        assert_eq!(of_contract(&two), [moved("1", 1), moved("2", 2)]);
        let all = [("action", action), ("recipient", b), ("token_id", "1"), ("token_id", "2")];
        assert_eq!(of_contract(&all), [moved("1", 2), moved("2", 2)]);
        let sorted = [
            ("action", action),
            ("action", action),
            ("recipient", a),
            ("recipient", b),
            ("sender", a),
            ("sender", a),
            ("token_id", "1"),
            ("token_id", "2"),
        ];
        assert_eq!(of_contract(&sorted), [moved("1", 1), moved("2", 2)]);
    }
    let burnt = |id: &str| NftEvent::Burn { token: token_of_7(id) };
    let burns = [("action", "burn"), ("sender", a), ("token_id", "1"), ("token_id", "2")];
    assert_eq!(of_contract(&burns), [burnt("1"), burnt("2")]);
    // Different acts, group by group and key by key, with one that has no token.
    let mixed = [
        ("action", "mint"),
        ("owner", b),
        ("token_id", "1"),
        ("token_uri", "ipfs://1"),
        ("action", "approve_all"),
        ("operator", a),
        ("action", "burn"),
        ("token_id", "2"),
        ("action", "update_nft_info"),
        ("token_id", "3"),
    ];
    let updated = NftEvent::Metadata { collection: object(7), tokens: Updated::Token("3".into()) };
    assert_eq!(of_contract(&mixed), [with_uri(minted("1", 2)), burnt("2"), updated]);
    let sorted = [
        ("action", "burn"),
        ("action", "mint"),
        ("owner", b),
        ("token_id", "2"),
        ("token_id", "1"),
        ("token_uri", "ipfs://1"),
    ];
    assert_eq!(of_contract(&sorted), [burnt("2"), with_uri(minted("1", 2))]);
    // The names that contracts give to an update of a token's metadata differ.
    let other = [("action", "update_token_metadata"), ("token_id", "4"), ("token_uri", "ipfs://4")];
    let updated = NftEvent::Metadata { collection: object(7), tokens: Updated::Token("4".into()) };
    assert_eq!(of_contract(&other), [updated]);
    let unknown = [("action", "approve"), ("action", "burn"), ("token_id", "2")];
    assert_eq!(of_contract(&unknown), []);
}

#[test]
fn attributes_of_two_contracts_in_one_event_belong_to_each() {
    let (contract, a, b) = (bech32(7, true), bech32(1, false), bech32(2, false));
    let attributes = [
        ("_contract_address", &*contract),
        ("action", "mint"),
        ("minter", &a),
        ("owner", &b),
        ("token_id", "x/1"),
        ("token_uri", "ipfs://1"),
        ("token_uri", "ipfs://2"),
        ("_contract_address", &a),
        ("action", "burn"),
        ("owner", &a),
        ("token_id", "2"),
    ];
    let token = TokenRef::Id { collection: account(1), token_id: "2".into() };
    let made = NftEvent::Instantiate { collection: object(7) };
    let expected = [made, with_uri(minted("x/1", 2)), NftEvent::Burn { token }];
    assert_eq!(found(Vm::Wasm, &[event("wasm", &attributes)]), expected);
}

#[test]
fn new_facts_about_a_collection_may_change_its_name() {
    let contract = bech32(7, true);
    let attributes = [("_contract_address", contract.as_str()), ("action", "update_collection_info")];
    let expected = NftEvent::Metadata { collection: object(7), tokens: Updated::Name };
    assert_eq!(found(Vm::Wasm, &[event("wasm", &attributes)]), [expected.clone()]);
    let data = format!(
        r#"{{"collection":"{}","mutated_field_name":"name","old_value":"a","new_value":"b"}}"#,
        object(7).to_hex()
    );
    let tag = ("type_tag", "0x1::collection::MutationEvent");
    assert_eq!(found(Vm::Move, &[event("move", &[tag, ("data", &data)])]), [expected]);
}

#[test]
fn the_replacement_of_code_may_change_all_metadata() {
    let contract = bech32(7, true);
    let migrated = event("migrate", &[("code_id", "5"), ("_contract_address", &contract)]);
    let collection = object(7);
    let expected = NftEvent::Metadata { collection, tokens: Updated::All };
    assert_eq!(found(Vm::Wasm, &[migrated]), [expected]);
}

#[test]
fn cw20_events_and_owners_that_are_not_an_address_give_no_nft_event() {
    let (contract, a) = (bech32(7, true), bech32(1, false));
    let invalid: [&[(&str, &str)]; 8] = [
        &[("action", "mint"), ("to", &a), ("amount", "5")],
        &[("action", "burn"), ("from", &a), ("amount", "5")],
        &[("action", "mint"), ("token_id", "1"), ("owner", "bob")],
        &[("action", "mint"), ("token_id", "1"), ("owner", CONTRACT)],
        &[("action", "transfer_nft"), ("token_id", "1"), ("recipient", "cosmos1xyz")],
        &[("action", "approve"), ("token_id", "1"), ("recipient", &a)],
        &[("action", "Burn"), ("token_id", "1")],
        &[("minter", &a)],
    ];
    for attributes in invalid {
        let whole = [&[("_contract_address", contract.as_str())], attributes].concat();
        assert_eq!(found(Vm::Wasm, &[event("wasm", &whole)]), [], "{attributes:?}");
    }
    let burn = [("_contract_address", contract.as_str()), ("action", "burn"), ("token_id", "1")];
    assert_eq!(found(Vm::Wasm, &[event("wasm", &burn)]).len(), 1);
    for kind in ["wasm-burn", "ibccallbackerror-wasm", "execute"] {
        assert_eq!(found(Vm::Wasm, &[event(kind, &burn)]), [], "{kind}");
    }
    assert_eq!(found(Vm::Wasm, &[event("wasm", &burn[1..])]), []);
}

#[test]
fn answers_of_queries_lose_their_nuls_and_malformed_ones_are_none() {
    let resource = |data: Value| {
        json!({ "resource": { "move_resource": json!({ "data": data }).to_string() } }).to_string()
    };
    let nft = resource(json!({ "collection": { "inner": "0x5" }, "token_id": "a\0", "uri": "\0u" }));
    let nft = move_vm::nft_resource(nft.as_bytes()).unwrap();
    assert_eq!((nft.token_id.as_str(), nft.uri), ("a", Text::Plain("u".to_owned())));
    let collection = resource(json!({ "creator": "0x1", "name": "N\0" }));
    assert_eq!(
        move_vm::collection_resource(collection.as_bytes()).unwrap().name,
        Text::Plain("N".to_owned())
    );
    let long = "x".repeat(256 * 1024 + 1);
    let invalid = [
        String::new(),
        "{}".into(),
        json!({ "resource": { "move_resource": "{" } }).to_string(),
        resource(json!({ "collection": {}, "creator": 5, "name": "n" })),
        resource(json!({ "creator": "nobody", "name": "n" })),
        json!({ "data": { "name": 1, "token_uri": {}, "owner": null } }).to_string(),
        json!({ "contract_info": { "creator": "" } }).to_string(),
    ];
    for answer in invalid.iter().map(String::as_bytes) {
        assert_eq!((move_vm::nft_resource(answer), move_vm::collection_resource(answer)), (None, None));
        assert_eq!((wasm::contract_name(answer), wasm::token_uri(answer)), (None, None));
        assert_eq!((wasm::contract_creator(answer, "init"), wasm::token_owner(answer, "init")), (None, None));
    }
    assert_eq!(wasm::token_uri(br#"{"data":{"extension":{}}}"#).unwrap(), Text::Plain(String::new()));
    // A long text is known to be there.
    let collection = resource(json!({ "creator": "0x1", "name": long }));
    assert_eq!(move_vm::collection_resource(collection.as_bytes()).unwrap().name, Text::TooLong);
    let nft = resource(json!({ "collection": { "inner": "0x5" }, "token_id": "a", "uri": long }));
    assert_eq!(move_vm::nft_resource(nft.as_bytes()).unwrap().uri, Text::TooLong);
    let info = json!({ "data": { "name": long, "token_uri": long } }).to_string();
    let texts = (wasm::contract_name(info.as_bytes()), wasm::token_uri(info.as_bytes()));
    assert_eq!(texts, (Some(Text::TooLong), Some(Text::TooLong)));
}
