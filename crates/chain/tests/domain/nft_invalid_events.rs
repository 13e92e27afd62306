//! NFT events that recordings lack: repeats, wrong shapes, names that only look alike, order.

use std::slice::from_ref;

use chain::comet::parse_results;
use chain::nft::{NftEvent, TokenRef, events, move_vm, wasm};
use chain::{Account, Vm};
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

#[test]
fn of_repeated_wasm_keys_the_first_counts_and_an_event_may_have_two_meanings() {
    let (contract, a, b) = (bech32(7, true), bech32(1, false), bech32(2, false));
    let collection = object(7);
    let minted = event(
        "wasm",
        &[
            ("_contract_address", &contract),
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
        ],
    );
    let mint = NftEvent::Mint {
        collection,
        token_id: Some("x/1".into()),
        object: None,
        owner: Some(account(2)),
        uri: Some("ipfs://1".into()),
    };
    assert_eq!(found(Vm::Wasm, &[minted]), [NftEvent::Instantiate { collection }, mint]);
    for action in ["transfer_nft", "send_nft"] {
        let moved =
            [("_contract_address", &*contract), ("action", action), ("token_id", "1"), ("recipient", &a)];
        let token = TokenRef::Id { collection, token_id: "1".into() };
        assert_eq!(found(Vm::Wasm, &[event("wasm", &moved)]), [NftEvent::Transfer { token, to: account(1) }]);
    }
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
    assert_eq!((nft.token_id.as_str(), nft.uri.as_str()), ("a", "u"));
    let collection = resource(json!({ "creator": "0x1", "name": "N\0" }));
    assert_eq!(move_vm::collection_resource(collection.as_bytes()).unwrap().name, "N");
    let long = "x".repeat(256 * 1024 + 1);
    let invalid = [
        String::new(),
        "{}".into(),
        json!({ "resource": { "move_resource": "{" } }).to_string(),
        resource(json!({ "collection": {}, "creator": 5, "name": "n" })),
        resource(json!({ "creator": "nobody", "name": "n" })),
        resource(json!({ "creator": "0x1", "name": long })),
        json!({ "data": { "name": long, "token_uri": long, "owner": "nobody" } }).to_string(),
        json!({ "data": { "name": 1, "token_uri": {}, "owner": null } }).to_string(),
        json!({ "contract_info": { "creator": "" } }).to_string(),
    ];
    for answer in invalid.iter().map(String::as_bytes) {
        assert_eq!((move_vm::nft_resource(answer), move_vm::collection_resource(answer)), (None, None));
        assert_eq!((wasm::contract_name(answer), wasm::token_uri(answer)), (None, None));
        assert_eq!((wasm::contract_creator(answer, "init"), wasm::token_owner(answer, "init")), (None, None));
    }
    assert_eq!(wasm::token_uri(br#"{"data":{"extension":{}}}"#).unwrap(), "");
}
