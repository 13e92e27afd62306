//! NFT events of recorded blocks: their numbers, and whether replaying them gives the state that the nodes report.

use std::collections::{BTreeMap, BTreeSet};

use crate::recorded::{State, heights, states};
use chain::comet::parse_results;
use chain::nft::{NftEvent, TokenRef, events, move_vm, wasm};
use chain::{Account, Text, U256, Vm, evm::abi};

/// All NFT events of a recorded chain, with height and index of the transaction.
fn found(chain: &str, vm: Vm) -> Vec<(u64, Option<usize>, NftEvent)> {
    let mut all = Vec::new();
    for line in heights(chain) {
        let results = parse_results(line.block_results.get().as_bytes()).unwrap();
        all.extend(events(vm, "init", &results).into_iter().map(|(tx, event)| (line.height, tx, event)));
    }
    all
}

/// Creations, instantiations, mints, transfers, burns, new URIs, names; no recorded chain has other events.
fn counts(found: &[(u64, Option<usize>, NftEvent)]) -> [usize; 7] {
    let mut counts = [0; 7];
    for (_, _, event) in found {
        counts[match event {
            NftEvent::Create { .. } => 0,
            NftEvent::Instantiate { .. } => 1,
            NftEvent::Mint { .. } => 2,
            NftEvent::Transfer { .. } => 3,
            NftEvent::Burn { .. } => 4,
            NftEvent::SetUri { .. } => 5,
            NftEvent::ClassName { .. } => 6,
            NftEvent::Metadata { .. } | NftEvent::Unread { .. } => panic!("{event:?}"),
        }] += 1;
    }
    counts
}

fn account(text: &str) -> Account {
    Account::parse(text, "init").unwrap()
}

#[test]
fn every_recorded_chain_has_the_expected_number_of_events() {
    for (chain, vm, expected) in [
        ("evm-scenario", Vm::Evm, [0, 0, 71, 2, 1, 0, 0]),
        ("evm-load", Vm::Evm, [0, 0, 4142, 2, 1, 0, 0]),
        ("move-scenario", Vm::Move, [3, 0, 7, 5, 1, 1, 0]),
        ("wasm-scenario", Vm::Wasm, [0, 11, 9, 2, 1, 0, 0]),
        ("l1-l2/l1", Vm::Move, [2, 0, 4, 7, 0, 0, 1]),
        ("l1-l2/l2", Vm::Evm, [0, 0, 5, 1, 1, 0, 2]),
    ] {
        let found = found(chain, vm);
        assert_eq!(counts(&found), expected, "{chain}");
        assert!(found.iter().all(|(_, tx, _)| tx.is_some()), "{chain}");
    }
}

#[test]
fn a_move_mint_has_its_first_owner_and_its_uri() {
    let found = found("move-scenario", Vm::Move);
    let maker = account("0x1b9f30d48692d9f043a72ca7427cbdacec3788cf");
    let collection = account("0x86a3b655e0bd4f46a83d75d6229bf4bc29f8139e5fa73c85700bd9302aa4a3cd");
    let name = "Alpha Cats".to_owned();
    assert_eq!(found[0], (23, Some(0), NftEvent::Create { collection, creator: maker, name }));
    let object = account("0x96d51ffc3a4f3d12085918f79efef5ddceeb68cea856d603520dd2306ef38496");
    let at_27: Vec<_> = found.iter().filter(|(height, ..)| *height == 27).map(|(.., event)| event).collect();
    let mint = NftEvent::Mint {
        collection,
        token_id: Some("#2".into()),
        object: Some(object),
        owner: Some(maker),
        uri: Some("https://nft.test/2".into()),
    };
    let to = account("0x87f2855a98a55245c3b98c9b62ec735788ea8315");
    assert_eq!(at_27, [&mint, &NftEvent::Transfer { token: TokenRef::Object(object), to }]);
    let burnt = account("0xe3afb60f950f3a51d007475312537cba3d277ff66aba44c1e732206d2d3ed0ca");
    let burn = NftEvent::Burn { token: TokenRef::Object(burnt) };
    let changed = account("0x37ed6eaabbff8ff77a8a35676e7841230358dd3cb2e7d10c62ed62c838ac70a5");
    let new = NftEvent::SetUri { object: changed, uri: "https://nft.test/new".into() };
    assert_eq!(found[found.len() - 2..], [(39, Some(0), burn), (40, Some(0), new)]);
}

#[test]
fn received_classes_have_a_name_and_refused_or_returning_ones_do_not() {
    let names = |chain, vm| -> Vec<(u64, NftEvent)> {
        let named = |event: &NftEvent| matches!(event, NftEvent::ClassName { .. });
        found(chain, vm)
            .into_iter()
            .filter(|found| named(&found.2))
            .map(|(height, _, event)| (height, event))
            .collect()
    };
    let name = |local: &str, origin: &str| NftEvent::ClassName { local: local.into(), origin: origin.into() };
    let cats = name("ibc/D5A84DCDEB356CA19280EAFFB4A623DC04AF53D447E9AE6E673E531E7B8218AF", "Bridge Cats");
    let apes = name("ibc/0AB7456FAC59E9A3733187696736F0B544B5BC1E6BE3EE961E15E40BF84BBCC3", "Rollup Apes");
    // 293 on the rollup was refused, 636 on the layer one returned home.
    assert_eq!(names("l1-l2/l2", Vm::Evm), [(219, cats.clone()), (221, cats)]);
    assert_eq!(names("l1-l2/l1", Vm::Move), [(746, apes)]);
}

/// Tokens by collection and id, with owner and URI.
type Tokens = BTreeMap<(Account, String), (Account, Option<String>)>;

/// Applies the simplest meaning of events that contain the token's id.
fn apply(tokens: &mut Tokens, event: &NftEvent) {
    match event.clone() {
        NftEvent::Mint { collection, token_id, owner, uri, .. } => {
            tokens.insert((collection, token_id.unwrap()), (owner.unwrap(), uri));
        }
        NftEvent::Transfer { token: TokenRef::Id { collection, token_id }, to } => {
            tokens.get_mut(&(collection, token_id)).unwrap().0 = to;
        }
        NftEvent::Burn { token: TokenRef::Id { collection, token_id } } => {
            tokens.remove(&(collection, token_id)).unwrap();
        }
        _ => {}
    }
}

/// The tokens after a height, for heights in rising order.
fn after(
    tokens: &mut Tokens,
    found: &mut std::iter::Peekable<impl Iterator<Item = (u64, Option<usize>, NftEvent)>>,
    height: u64,
) {
    while let Some((_, _, event)) = found.next_if(|(at, ..)| *at <= height) {
        apply(tokens, &event);
    }
}

#[test]
fn replayed_erc721_events_give_the_owners_that_the_contracts_report() {
    for (chain, expected) in [("evm-scenario", 74), ("l1-l2/l2", 7)] {
        let (mut tokens, mut owners) = (Tokens::new(), 0);
        let mut found = found(chain, Vm::Evm).into_iter().peekable();
        let mut asked: Vec<State> =
            states(chain).filter(|state| state.data.starts_with("0x6352211e")).collect();
        asked.sort_by_key(|state| state.height);
        for state in asked {
            after(&mut tokens, &mut found, state.height.unwrap());
            let token = U256::from_str_radix(&state.data[10..], 16).unwrap();
            assert_eq!(state.data, format!("0x{}", hex::encode(abi::owner_of(token))));
            let held = tokens.get(&(account(&state.to), token.to_string())).map(|token| token.0);
            let owner = state.result.map(|result| abi::read_address(&bytes(&result)).unwrap().into());
            assert_eq!(held, owner, "{chain} {:?} {token}", state.height);
            owners += 1;
        }
        assert_eq!(owners, expected, "{chain}");
    }
}

fn bytes(hex_text: &serde_json::Value) -> Vec<u8> {
    hex::decode(&hex_text.as_str().unwrap()[2..]).unwrap()
}

#[test]
fn every_recorded_answer_of_a_contract_is_classified_correctly() {
    let (mut names, mut uris, mut erc721) = (BTreeSet::new(), Vec::new(), (0, 0));
    for chain in ["evm-scenario", "l1-l2/l2"] {
        let found = found(chain, Vm::Evm);
        let mints = |of: &str| {
            found.iter().any(|(.., event)| matches!(event, NftEvent::Mint { collection, .. } if *collection == account(of)))
        };
        for state in states(chain).filter(|state| state.kind == "eth_call") {
            let Some(answer) = state.result.as_ref().map(bytes) else { continue };
            let question = hex::decode(&state.data[2..]).unwrap();
            if question == abi::name() {
                names.insert(abi::read_string(&answer).unwrap().plain().unwrap());
            } else if question == abi::supports_erc721() {
                assert_eq!(abi::read_bool(&answer), Some(mints(&state.to)), "{chain} {}", state.to);
                let counted = if mints(&state.to) { &mut erc721.0 } else { &mut erc721.1 };
                *counted += 1;
            } else if question == abi::decimals() {
                assert!(abi::read_uint(&answer).is_some_and(|decimals| decimals <= U256::from(18)));
            } else if question.starts_with(&abi::token_uri(U256::ZERO)[..4]) {
                let uri = abi::read_string(&answer).unwrap().plain().unwrap();
                assert!(uri.is_empty() || uri.starts_with("https://"), "{uri}");
                uris.push(uri);
            }
        }
    }
    for name in ["Verify Apes", "Zebra Set", "Rollup Apes", "GAS", "Fixed"] {
        assert!(names.contains(name), "{names:?}");
    }
    // `Zebra Set` gives no URI to its three tokens.
    let empty = uris.iter().filter(|uri| uri.is_empty()).count();
    assert_eq!((names.len(), uris.len(), empty, erc721), (12, 80, 3, (30, 10)));
}

#[test]
fn replayed_cw721_events_give_the_tokens_that_the_contracts_report() {
    let mut tokens = Tokens::new();
    let mut found = found("wasm-scenario", Vm::Wasm).into_iter().peekable();
    let (mut owners, mut uris, mut gone, mut named) = (0, 0, 0, 0);
    let mut asked: Vec<State> =
        states("wasm-scenario").filter(|s| s.path.starts_with("/cosmwasm/")).collect();
    asked.sort_by_key(|state| state.height);
    for state in asked.iter().filter(|state| state.height.is_some()) {
        after(&mut tokens, &mut found, state.height.unwrap());
        let (contract, question) = question(&state.path);
        let answer = state.answer.as_ref().unwrap().get().as_bytes();
        let Some(question) = question else {
            assert!(wasm::contract_creator(answer, "init").is_some());
            continue;
        };
        let asked_token =
            ["owner_of", "nft_info"].iter().find_map(|kind| question[kind]["token_id"].as_str());
        let held = asked_token.map(|token| tokens.get(&(account(&contract), token.to_owned())));
        match held {
            None => named += usize::from(wasm::contract_name(answer).is_some()),
            Some(None) => {
                assert_eq!(state.status, Some(500));
                assert_eq!((wasm::token_owner(answer, "init"), wasm::token_uri(answer)), (None, None));
                gone += 1;
            }
            Some(Some((owner, _))) if question["owner_of"].is_object() => {
                assert_eq!(wasm::token_owner(answer, "init"), Some(*owner));
                owners += 1;
            }
            Some(Some((_, uri))) => {
                let uri = Text::Plain(uri.clone().unwrap_or_default());
                assert_eq!(wasm::token_uri(answer), Some(uri));
                uris += 1;
            }
        }
    }
    assert_eq!((owners, uris, gone, named), (12, 12, 2, 3));
}

/// The queried contract, and the query.
fn question(path: &str) -> (String, Option<serde_json::Value>) {
    use base64::Engine as _;
    let rest = path.strip_prefix("/cosmwasm/wasm/v1/contract/").unwrap();
    let Some((contract, question)) = rest.split_once("/smart/") else { return (rest.to_owned(), None) };
    let question = base64::engine::general_purpose::URL_SAFE.decode(question).unwrap();
    (contract.to_owned(), Some(serde_json::from_slice(&question).unwrap()))
}

#[test]
fn recorded_move_resources_agree_with_the_events() {
    for (chain, expected) in [("move-scenario", (6, 8, 1)), ("l1-l2/l1", (4, 4, 0))] {
        let (mut collections, mut nfts, mut gone) = (0, 0, 0);
        let found = found(chain, Vm::Move);
        for state in states(chain).filter(|state| state.path.starts_with("/initia/move/")) {
            let answer = state.answer.as_ref().unwrap().get().as_bytes();
            let address = account(state.path.split('/').nth(5).unwrap());
            if state.status != Some(200) {
                assert_eq!(
                    (move_vm::nft_resource(answer), move_vm::collection_resource(answer)),
                    (None, None)
                );
                gone += 1;
            } else if let Some(made) = move_vm::collection_resource(answer) {
                let (creator, name) = (made.creator, made.name.plain().unwrap());
                let create = NftEvent::Create { collection: address, creator, name };
                assert!(found.iter().any(|(.., event)| *event == create), "{create:?}");
                collections += 1;
            } else {
                let nft = move_vm::nft_resource(answer).unwrap();
                assert!(found.iter().any(|(.., event)| matches!(event,
                    NftEvent::Mint { collection, token_id, object, .. }
                        if (*collection, token_id.as_ref(), *object)
                            == (nft.collection, Some(&nft.token_id), Some(address)))));
                assert_eq!(uri(&found, address, state.height.unwrap()), nft.uri.plain());
                nfts += 1;
            }
        }
        assert_eq!((collections, nfts, gone), expected, "{chain}");
    }
}

/// The last URI of an object by the events up to a height.
fn uri(found: &[(u64, Option<usize>, NftEvent)], of: Account, height: u64) -> Option<String> {
    found.iter().take_while(|(at, ..)| *at <= height).fold(None, |last, (.., event)| match event {
        NftEvent::Mint { object: Some(object), uri, .. } if *object == of => uri.clone(),
        NftEvent::SetUri { object, uri } if *object == of => Some(uri.clone()),
        _ => last,
    })
}
