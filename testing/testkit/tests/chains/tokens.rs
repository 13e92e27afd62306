//! Tokens with their metadata, against what the recorded nodes said of them.

mod renamed;

use std::collections::BTreeMap;
use std::sync::Arc;

use chain::Account;
use chain::movement::Token;
use ingest::{Config, Ingest};
use query::Indexer;
use replay::recording::{Outcome, RestReply};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::ledger::LEDGER;
use schema::logs::LOGS;
use schema::movement::TokenKey;
use schema::tokens::{self, TOKENS, TokenNumbers};
use serde_json::{Value, json};
use store::key::All;
use store::{Key as _, MemStore, Order, Store};
use testkit::crashing_store::CrashingStore;
use testkit::{indexed, recording};
use tokio::sync::watch;
use web::app::App;

use super::etherscan::{over, reply, rows};

static INDEXES: [schema::index::Index; 3] = [TOKENS, LEDGER, LOGS];

const ROOT: &str = "/indexer/ledger/v1/tokens";

/// Selectors of `name()`, `symbol()`, `decimals()`, and of ERC-165's question whether a contract is an ERC-721.
const NAME: &str = "0x06fdde03";
const SYMBOL: &str = "0x95d89b41";
const DECIMALS: &str = "0x313ce567";
const IS_ERC721: &str = "0x01ffc9a780ac58cd00000000000000000000000000000000000000000000000000000000";

/// The recording has what its node says of a token at the last height.
fn is_recorded(recording: &Recording, token: &Token) -> bool {
    let state = recording.state();
    let last = recording.last();
    let calls = |contract: &[u8; 20], data: &[&str]| {
        let to = format!("0x{}", hex::encode(contract));
        data.iter().all(|data| state.eth_call(&to, data, last).is_some())
    };
    let rest = |path: &str, height: Option<u64>| state.rest("GET", path, height, None).is_some();
    match token {
        Token::Erc20(contract) => {
            calls(contract, &[NAME, SYMBOL, DECIMALS, IS_ERC721])
                && rest(&format!("/minievm/evm/v1/denoms/0x{}", hex::encode(contract)), None)
        }
        Token::Erc721(contract) => calls(contract, &[NAME, SYMBOL, IS_ERC721]),
        Token::Erc1155(contract) => calls(contract, &[NAME, SYMBOL]),
        Token::Asset(object) => ["Metadata", "ExtraMetadata", "DispatchFunctionStore"]
            .iter()
            .all(|name| rest(&resource(object, name), Some(last))),
        Token::Cw20(contract) => rest(&token_info(contract), Some(last)),
        Token::Denom(denom) => rest(&bank(denom), None),
        Token::Collection(object) => {
            let address = hex::encode(object);
            rest(&format!("/initia/move/v1/accounts/0x{address}/{COLLECTION}"), Some(last))
        }
        Token::Cw721(contract) => rest(&smart(contract, "eyJjb250cmFjdF9pbmZvIjp7fX0="), Some(last)),
    }
}

fn resource(object: &[u8; 32], name: &str) -> String {
    let address = hex::encode(object);
    format!(
        "/initia/move/v1/accounts/0x{address}/resources/by_struct_tag?struct_tag=0x1::fungible_asset::{name}"
    )
}

const COLLECTION: &str = "resources/by_struct_tag?struct_tag=0x1::collection::Collection";

fn token_info(contract: &[u8; 32]) -> String {
    smart(contract, "eyJ0b2tlbl9pbmZvIjp7fX0=")
}

fn smart(contract: &[u8; 32], query: &str) -> String {
    let contract = Account::from(*contract).to_bech32("init");
    format!("/cosmwasm/wasm/v1/contract/{contract}/smart/{query}")
}

fn bank(denom: &str) -> String {
    format!("/cosmos/bank/v1beta1/denoms_metadata_by_query_string?denom={}", denom.replace('/', "%2F"))
}

/// All tokens of a store, by number.
fn all_tokens(store: &dyn Store) -> Vec<Token> {
    let snapshot = store.snapshot().unwrap();
    let rows = store::table::rows::<TokenNumbers>(&*snapshot, &All, Order::Asc, usize::MAX).unwrap();
    rows.into_iter().map(|(_, row)| TokenKey::from_bytes(&row).unwrap().0).collect()
}

/// Indexes a recorded chain, until the node has said what the recording has.
async fn chain(name: &str) -> (Arc<Recording>, Arc<dyn Store>) {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    assert!(indexed_into(&recording, &store).await);
    (recording, store)
}

/// False if the ingest has ended before.
async fn indexed_into(recording: &Arc<Recording>, store: &Arc<dyn Store>) -> bool {
    let config = Config {
        indexes: INDEXES.iter().filter(|index| recording.is_evm() || !index.needs_evm).collect(),
        internal_txs: false,
        rich_list: false,
        ..indexed::config(recording).unwrap()
    };
    let last = recording.last();
    let options = Options::default();
    let played = ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let Ok(ingest) = Ingest::prepare(config, node, Arc::clone(store)).await else { return false };
    let (stop, stopped) = watch::channel(false);
    let all_said = async {
        let mut progress = ingest.progress();
        while progress.done() < last {
            progress.moved().await;
        }
        // Replies arrive after their blocks, and nothing announces them.
        let is_said = || {
            let snapshot = store.snapshot().unwrap();
            let height = TOKENS.state(&*snapshot).unwrap().map_or(0, |state| state.height);
            let has_reply = |token: &Token| tokens::reply(&*snapshot, token).unwrap().is_some();
            height == last
                && all_tokens(&**store).iter().all(|token| has_reply(token) || !is_recorded(recording, token))
        };
        while !is_said() {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let mut run = std::pin::pin!(ingest.run(stopped));
    let is_complete = tokio::select! {
        _ended = &mut run => false,
        () = all_said => run.await.is_ok(),
    };
    played.stop().await;
    is_complete
}

fn app(store: Arc<dyn Store>) -> App<Indexer> {
    App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap()
}

fn get(app: &App<Indexer>, target: &str) -> Value {
    let reply = app.read(target).map_err(|error| format!("{target}: {}", error.message())).unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

fn list(app: &App<Indexer>, parameters: &str) -> Vec<Value> {
    let page = get(app, &format!("{ROOT}?pagination.reverse=false&pagination.limit=1000&{parameters}"));
    let tokens = page["tokens"].as_array().unwrap().clone();
    assert_eq!(page["pagination"]["total"], json!(tokens.len().to_string()), "{parameters}");
    tokens
}

fn text<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap()
}

/// A record in short: name, symbol and decimals, or why there is none.
fn said(record: &Value) -> [Value; 3] {
    ["name", "symbol", "decimals"].map(|member| {
        let state = &record[format!("{member}_state")];
        assert_eq!(record[member].is_null(), state != "known", "{record}");
        if state == "known" { record[member].clone() } else { state.clone() }
    })
}

/// The text in a recorded reply of a contract, as an EVM encodes it, or as a `bytes32`.
fn decoded(outcome: &Outcome) -> Option<String> {
    let Outcome::Result(raw) = outcome else { return None };
    let digits: String = serde_json::from_slice(raw).unwrap();
    let bytes = hex::decode(&digits[2..]).unwrap();
    let len = |word: &[u8]| usize::from(word[30]) << 8 | usize::from(word[31]);
    if bytes.len() > 63 && len(&bytes[..32]) == 32 {
        return Some(String::from_utf8(bytes[64..64 + len(&bytes[32..64])].to_vec()).unwrap());
    }
    let text: Vec<u8> = bytes.iter().copied().take_while(|byte| *byte != 0).collect();
    (!text.is_empty()).then(|| String::from_utf8(text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_are_named_as_they_name_themselves_and_what_they_do_not_say_is_marked() {
    let (recording, store) = chain("evm-fees").await;
    let app = app(store);
    let tokens = list(&app, "");
    let by_address: BTreeMap<&str, &Value> =
        tokens.iter().rev().map(|token| (text(token, "address"), token)).collect();
    for (place, token) in tokens.iter().enumerate() {
        let address = text(token, "address");
        for (member, selector) in [("name", NAME), ("symbol", SYMBOL)] {
            let state = text(token, &format!("{member}_state"));
            let recorded = recording.state().eth_call(address, selector, recording.last());
            match recorded.map(decoded) {
                None => assert_eq!(state, "open", "{token}"),
                Some(_) if state == "open" => assert_ne!(text(token, "type"), "erc20", "{token}"),
                Some(None) => assert_eq!(state, "none", "{token}"),
                Some(Some(long)) if long.len() > 256 => assert_eq!(state, "too_long", "{token}"),
                Some(Some(plain)) => {
                    let visible: String =
                        plain.chars().filter(|c| !c.is_control() && *c != '\u{202e}').collect();
                    assert_eq!(token[member], json!(visible), "{token}");
                }
            }
        }
        if place > 0 {
            let height = |token: &Value| text(token, "first_height").parse::<u64>().unwrap();
            assert!(height(&tokens[place - 1]) <= height(token), "{token}");
        }
    }
    for (address, expected) in [
        ("0x042add9e80f7a23ab71d5e1d392af1d3928b7d05", json!(["GAS", "GAS", 18])),
        ("0xe4400551a93de70cb81d52f27951d2d7598d2feb", json!(["Maker-like", "MKL", 18])),
        ("0xd09a78de6cae11cc5992288af3894ec4d1a7fc41", json!(["too_long", "too_long", 18])),
        ("0x788842c152d75a04778446eecd3bef1851b35945", json!(["", "", 0])),
        ("0x258f97266765d295d175ee1d300cf5c2461e29a5", json!(["none", "none", "none"])),
        ("0x635870100874f0671cac3e8e745b3623666500ae", json!(["none", "none", "too_long"])),
        ("0x81da5edf4a3dfac8421c39f1d5eb499b0bfe216d", json!(["=HYPERLINK(\"http://x\")", "@SUM(1)", 6])),
        ("0x1a3d5e937fb30813bacdbcd65466561f387342bc", json!(["open", "open", "open"])),
    ] {
        if let Some(token) = by_address.get(address) {
            assert_eq!(json!(said(token)), expected, "{token}");
        } else {
            println!("not moved: {address}");
        }
    }
    let gas = get(&app, &format!("{ROOT}/GAS"));
    assert_eq!(gas["token"], **by_address.get("0x042add9e80f7a23ab71d5e1d392af1d3928b7d05").unwrap());
    assert_eq!((&gas["token"]["denom"], &gas["token"]["verified"]), (&json!("GAS"), &json!(true)));
    assert_eq!(gas["token"]["first_height"], "2");
    let moved = get(&app, "/indexer/ledger/v1/transfers/by_token/GAS?pagination.limit=1");
    let expected = json!({
        "type": "erc20", "denom": "GAS", "address": text(&gas["token"], "address"), "symbol": "GAS", "decimals": 18,
        "verified": true,
    });
    assert_eq!(moved["transfers"][0]["token"], expected);
    let kinds = |kind: &str| list(&app, &format!("type={kind}")).len();
    assert_eq!(kinds("erc20") + kinds("erc721") + kinds("erc1155"), tokens.len());
    assert_eq!(kinds("erc721,erc1155") + kinds("erc20"), tokens.len());
    assert!(kinds("erc721") > 0 && kinds("erc1155") > 0 && kinds("bank") == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_in_the_form_of_etherscan_have_the_names_of_their_tokens() {
    let (_, store) = chain("evm-fees").await;
    let etherscan = over(store);
    let (maker, long) =
        ("0xe4400551a93de70cb81d52f27951d2d7598d2feb", "0xd09a78de6cae11cc5992288af3894ec4d1a7fc41");
    for (action, contract, name, symbol, decimals) in [
        ("tokentx", maker, "Maker-like", "MKL", json!("18")),
        ("tokentx", long, "", "", json!("18")),
        ("tokennfttx", "0x1a3d5e937fb30813bacdbcd65466561f387342bc", "", "", json!("0")),
    ] {
        let query = format!("module=account&action={action}&contractaddress={contract}");
        let rows = rows(&etherscan, &query).await;
        assert!(!rows.is_empty(), "{query}");
        for row in rows {
            assert_eq!((&row["tokenName"], &row["tokenSymbol"]), (&json!(name), &json!(symbol)), "{row}");
            assert_eq!(row["tokenDecimal"], decimals, "{row}");
        }
    }
    let of =
        |action: &str, contract: &str| format!("module=token&action={action}&contractaddress={contract}");
    let info = reply(&etherscan, &of("tokeninfo", maker)).await;
    let expected = json!([{
        "contractAddress": maker, "tokenName": "Maker-like", "symbol": "MKL", "divisor": "18", "tokenType": "ERC20",
    }]);
    assert_eq!((&info["status"], &info["result"]), (&json!("1"), &expected));
    let token = reply(&etherscan, &of("gettoken", maker)).await;
    assert_eq!((&token["result"]["type"], &token["result"]["decimals"]), (&json!("ERC-20"), &json!("18")));
    let unknown = reply(&etherscan, &of("tokeninfo", "0x00000000000000000000000000000000000000aa")).await;
    assert_eq!(
        (&unknown["message"], &unknown["result"]),
        (&json!("NOTOK"), &json!("contract address not found"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_found_by_the_beginning_of_a_symbol_or_denom() {
    let (_, store) = chain("evm-fees").await;
    let app = app(store);
    let all = list(&app, "");
    for search in ["g", "GAS", "uu", "UUSDC", "wgas", "l2/771d", "evm/", "@s", "nothing", "%F0%9F%8C%99"] {
        let plain = percent(search);
        let begins = |record: &&Value, member: &str| {
            record[member].as_str().unwrap_or_default().to_lowercase().starts_with(&plain.to_lowercase())
        };
        // A denom that no node has told follows from the address, and is not searched.
        let told = |record: &&Value| text(record, "symbol_state") != "open";
        let expected: Vec<&Value> =
            all.iter().filter(|it| begins(it, "symbol") || begins(it, "denom") && told(it)).collect();
        let found = list(&app, &format!("search={search}"));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{search}");
        let of_type = list(&app, &format!("search={search}&type=erc20"));
        let expected: Vec<_> = found.iter().filter(|it| it["type"] == "erc20").cloned().collect();
        assert_eq!(of_type, expected, "{search}");
    }
    assert_eq!(list(&app, "search=gas").len(), 1);
    assert!(list(&app, "search=evm/").len() > 5);
    assert!(list(&app, "search=nothing").is_empty());
    // Only 64 characters are searched, the others are compared.
    let long = all.iter().map(|it| text(it, "denom")).max_by_key(|denom| denom.len()).unwrap();
    assert!(long.len() > 64, "{long}");
    let encoded = long.replace('/', "%2F");
    assert_eq!(list(&app, &format!("search={encoded}")).len(), 1);
    assert!(list(&app, &format!("search={encoded}x")).is_empty());
    for (target, status, words) in [
        ("?type=erc", 400, "erc1155"),
        ("/nothing", 404, "token not found: nothing"),
        ("/0x00000000000000000000000000000000000000aa", 404, "token not found"),
    ] {
        let error = app.read(&format!("{ROOT}{target}")).err().unwrap();
        assert_eq!(error.status().as_u16(), status, "{target}: {}", error.message());
        assert!(error.message().contains(words), "{target}: {}", error.message());
    }
}

fn percent(text: &str) -> String {
    text.replace("%F0%9F%8C%99", "\u{1f319}")
}

fn body(reply: Option<&RestReply>) -> Option<Value> {
    let reply = reply.unwrap();
    (reply.status == 200).then(|| serde_json::from_slice(&reply.body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn assets_of_move_are_named_by_their_module() {
    let (recording, store) = chain("move-ledger").await;
    let app = app(Arc::clone(&store));
    let (last, state) = (recording.last(), recording.state());
    let tokens = list(&app, "type=fa");
    assert!(tokens.len() > 15, "{}", tokens.len());
    let (mut renamed, mut derived) = (0, 0);
    let assets = all_tokens(&*store).into_iter().filter(|token| matches!(token, Token::Asset(_)));
    for (token, record) in assets.zip(&tokens) {
        let Token::Asset(object) = token else { panic!("{token:?}") };
        let resource = |name: &str| {
            let reply = body(state.rest("GET", &resource(&object, name), Some(last), None));
            reply.map(|reply| {
                let inner: Value = serde_json::from_str(text(&reply["resource"], "move_resource")).unwrap();
                inner["data"].clone()
            })
        };
        let extra = resource("ExtraMetadata");
        renamed += usize::from(extra.is_some());
        let shown = extra.or_else(|| resource("Metadata")).unwrap();
        let name: String = text(&shown, "name").chars().filter(|c| !c.is_control()).collect();
        assert_eq!(json!(said(record)), json!([name, shown["symbol"], shown["decimals"]]), "{record}");
        assert_eq!(record["verified"], true);
        let functions = resource("DispatchFunctionStore");
        let is_derived = functions.is_some_and(|functions| !functions["derived_balance_function"].is_null());
        assert_eq!(record["derived"], is_derived, "{record}");
        derived += usize::from(is_derived);
        let path = format!("/initia/move/v1/denom?metadata=0x{}", hex::encode(object));
        let denom = body(state.rest("GET", &path, None, None)).unwrap();
        assert_eq!(record["denom"], denom["denom"], "{record}");
        let by_denom = get(&app, &format!("{ROOT}/{}", text(record, "denom").replace('/', "%2F")));
        assert_eq!(by_denom["token"], *record);
    }
    assert_eq!((renamed, derived), (1, 3));
    let called_umin = list(&app, "search=umin");
    assert!(called_umin.len() > 2, "false ones have the symbol, and the real one the denom");
    assert_eq!(called_umin.iter().filter(|token| token["denom"] == "umin").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cw20_is_one_once_it_has_said_so_and_a_bank_denom_has_the_metadata_of_the_bank() {
    let (recording, store) = chain("wasm-ledger").await;
    let app = app(Arc::clone(&store));
    let (last, state) = (recording.last(), recording.state());
    let tokens = list(&app, "");
    let (mut verified, mut refused) = (0, 0);
    for (token, record) in all_tokens(&*store).into_iter().zip(&tokens) {
        match token {
            Token::Cw20(contract) => {
                let path = token_info(&contract);
                let Some(reply) = state.rest("GET", &path, Some(last), None) else {
                    assert_eq!(json!(said(record)), json!(["open", "open", "open"]), "{record}");
                    assert_eq!(record["verified"], false, "{record}");
                    continue;
                };
                let info = body(Some(reply));
                let expected = info.map_or(json!(["none", "none", "none"]), |info| {
                    json!([info["data"]["name"], info["data"]["symbol"], info["data"]["decimals"]])
                });
                assert_eq!(json!(said(record)), expected, "{record}");
                assert_eq!(record["verified"], expected[0] != "none", "{record}");
                verified += usize::from(expected[0] != "none");
                refused += usize::from(expected[0] == "none");
            }
            Token::Denom(denom) => {
                let Some(reply) = state.rest("GET", &bank(&denom), None, None) else {
                    assert_eq!(json!(said(record)), json!(["open", "open", "open"]), "{record}");
                    continue;
                };
                let expected = body(Some(reply)).map_or(json!(["none", "none", "none"]), |reply| {
                    json!([reply["metadata"]["name"], reply["metadata"]["symbol"], 0])
                });
                assert_eq!(json!(said(record)), expected, "{record}");
                assert_eq!((&record["denom"], &record["verified"]), (&json!(denom), &json!(true)));
            }
            Token::Cw721(_) => assert_eq!(record["type"], "cw721"),
            other => panic!("{other:?}"),
        }
    }
    assert!(verified >= 3 && refused >= 1, "{verified} {refused}");
    assert_eq!(list(&app, "search=UMIN").len(), 2, "the denom, and a contract that has its name as symbol");
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_are_kept_by_a_restart_and_taken_back_by_a_rewind() {
    let (recording, store) = chain("wasm-ledger").await;
    let tokens = all_tokens(&*store);
    let before = list(&app(Arc::clone(&store)), "");
    let digest = indexed::digest(&*store).unwrap();
    assert!(indexed_into(&recording, &store).await);
    assert_eq!(list(&app(Arc::clone(&store)), ""), before);

    let first = |record: &Value| text(record, "first_height").parse::<u64>().unwrap();
    let last_first = before.iter().map(first).max().unwrap();
    let to = last_first - 1;
    schema::rewind::rewind(&*store, to).unwrap();
    let snapshot = store.snapshot().unwrap();
    let kept = before.iter().filter(|record| first(record) <= to).count();
    assert!(kept < before.len() && kept > 0);
    assert_eq!(all_tokens(&*store), tokens[..kept]);
    assert!(tokens.iter().all(|token| tokens::reply(&*snapshot, token).unwrap().is_none()));
    assert_eq!(tokens::open_questions(&*snapshot, 0, 1_000).unwrap().len(), kept, "and are asked again");
    drop(snapshot);
    assert!(indexed_into(&recording, &store).await);
    assert_eq!(list(&app(Arc::clone(&store)), ""), before);
    assert_eq!(indexed::digest(&*store).unwrap(), digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_killed_at_a_commit_ends_as_one_that_is_not() {
    let (recording, calm) = chain("wasm-ledger").await;
    let (tokens, digest) = (list(&app(Arc::clone(&calm)), ""), indexed::digest(&*calm).unwrap());
    let mut killed = 0;
    for commits in (1..).step_by(45) {
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        let ending: Arc<dyn Store> = Arc::new(CrashingStore::after(commits, Arc::clone(&store)));
        if indexed_into(&recording, &ending).await {
            break;
        }
        killed += 1;
        assert!(indexed_into(&recording, &store).await, "{commits}");
        assert_eq!(list(&app(Arc::clone(&store)), ""), tokens, "{commits}");
        assert_eq!(indexed::digest(&*store).unwrap(), digest, "{commits}");
    }
    assert!(killed > 2, "{killed}");
}
