//! Contracts, resources, accounts and balances: as recorded, page by page, and refused.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use node::{Error, Kind, Node, Rest};
use serde_json::Value;

use crate::recorded::{Line, replayed};
use crate::scripted::{Play, Server, fault, json, limits};

fn rest(server: &Server) -> Rest {
    Rest::new(vec![server.url.clone()], limits()).unwrap()
}

fn rest_of(node: &Node) -> &Rest {
    node.rest.as_ref().unwrap()
}

/// The recorded requests whose path begins with `path`, with the rest of the path.
fn questions<'l>(lines: &'l [Line], path: &'static str) -> impl Iterator<Item = (&'l str, &'l Line)> {
    lines.iter().filter_map(move |line| Some((line.path.as_deref()?.strip_prefix(path)?, line)))
}

fn value(line: &Line) -> Value {
    serde_json::from_str(line.answer.as_ref().unwrap().get()).unwrap()
}

#[tokio::test]
async fn every_recorded_call_returns_its_bytes_or_is_refused() {
    for (folder, expected) in [("evm-scenario", (499, 3)), ("l1-l2/l2", (236, 1))] {
        let (node, lines) = replayed(folder).await;
        let (mut answers, mut refused) = (0, 0);
        for line in lines.iter().filter(|line| line.kind == "eth_call") {
            let bytes = |text: &Option<String>| hex::decode(&text.as_ref().unwrap()[2..]).unwrap();
            let to = bytes(&line.to).try_into().unwrap();
            match node.evm.as_ref().unwrap().call(to, &bytes(&line.data), line.height).await {
                Ok(answer) => {
                    let reply = format!("\"0x{}\"", hex::encode(answer));
                    assert_eq!(reply, line.result.as_ref().unwrap().get());
                    answers += 1;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
                    assert_eq!(error.kind(), Kind::Permanent);
                    refused += 1;
                }
            }
        }
        assert_eq!((answers, refused), expected, "{folder}");
    }
}

#[tokio::test]
async fn every_recorded_contract_and_query_is_found_at_its_path_and_height() {
    let (node, lines) = replayed("wasm-scenario").await;
    let (mut contracts, mut answers, mut refused) = (0, 0, 0);
    for (path, line) in questions(&lines, "/cosmwasm/wasm/v1/contract/") {
        let reply = match path.split_once("/smart/") {
            None => {
                contracts += 1;
                rest_of(&node).wasm_contract(path, line.height).await
            }
            Some((contract, query)) => {
                let query = String::from_utf8(URL_SAFE.decode(query).unwrap()).unwrap();
                rest_of(&node).wasm_smart(contract, &query, line.height).await
            }
        };
        match reply {
            Ok(answer) => {
                assert_eq!(answer, line.answer.as_ref().unwrap().get());
                answers += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::Refused { .. }) && line.status == Some(500), "{error:?}");
                refused += 1;
            }
        }
    }
    assert_eq!((contracts, answers, refused), (5, 38, 2));
}

#[tokio::test]
async fn every_recorded_resource_is_found_at_its_path_and_height() {
    for (folder, expected) in [("move-scenario", (14, 1)), ("l1-l2/l1", (8, 0))] {
        let (node, lines) = replayed(folder).await;
        let (mut answers, mut refused) = (0, 0);
        for (path, line) in questions(&lines, "/initia/move/v1/accounts/") {
            let (address, tag) = path.split_once("/resources/by_struct_tag?struct_tag=").unwrap();
            match rest_of(&node).move_resource(address, tag, line.height).await {
                Ok(answer) => {
                    assert_eq!(answer, line.answer.as_ref().unwrap().get());
                    answers += 1;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
                    refused += 1;
                }
            }
        }
        assert_eq!((answers, refused), expected, "{folder}");
    }
}

#[tokio::test]
async fn every_recorded_account_is_listed_once_with_its_balances() {
    for folder in ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l1", "l1-l2/l2"] {
        let (node, lines) = replayed(folder).await;
        let first = "/cosmos/auth/v1beta1/accounts?pagination.limit=100";
        let heights: BTreeSet<_> = questions(&lines, first).map(|(_, line)| line.height.unwrap()).collect();
        assert_eq!(heights.len(), 3, "{folder}");
        for height in heights.into_iter().map(Some) {
            let (mut addresses, mut key) = (Vec::new(), None);
            loop {
                let page = rest_of(&node).accounts(height, key.as_deref()).await.unwrap();
                addresses.extend(page.addresses);
                key = page.next;
                if key.is_none() {
                    break;
                }
            }
            let pages = questions(&lines, first).filter(|(_, line)| line.height == height);
            let listed: usize =
                pages.map(|(_, line)| value(line)["accounts"].as_array().unwrap().len()).sum();
            assert_eq!(addresses.len(), listed, "{folder}");
            assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), listed, "{folder}");
            for address in &addresses {
                let held = rest_of(&node).balances(address, height).await.unwrap();
                let path = format!("/cosmos/bank/v1beta1/balances/{address}?pagination.limit=1000");
                let line =
                    lines.iter().find(|l| l.path.as_ref() == Some(&path) && l.height == height).unwrap();
                let coin = |(denom, amount)| serde_json::json!({ "denom": denom, "amount": amount });
                assert_eq!(held.into_iter().map(coin).collect::<Value>(), value(line)["balances"]);
            }
        }
    }
}

#[tokio::test]
async fn every_recorded_denom_and_contract_map_to_each_other() {
    for (folder, expected) in [("evm-scenario", (4, 5)), ("l1-l2/l2", (7, 8))] {
        let (node, lines) = replayed(folder).await;
        let (mut denoms, mut contracts) = (0, 0);
        let contract = |text: &str| <[u8; 20]>::try_from(hex::decode(&text[2..]).unwrap()).unwrap();
        for (address, line) in questions(&lines, "/minievm/evm/v1/denoms/") {
            let denom = rest_of(&node).denom_of_erc20(contract(address)).await.unwrap();
            assert_eq!(denom.as_deref(), value(line)["denom"].as_str());
            denoms += 1;
        }
        for (denom, line) in questions(&lines, "/minievm/evm/v1/contracts/by_denom?denom=") {
            let found = rest_of(&node).erc20_of_denom(&denom.replace("%2F", "/")).await.unwrap();
            assert_eq!(found, Some(contract(value(line)["address"].as_str().unwrap())));
            contracts += 1;
        }
        assert_eq!((denoms, contracts), expected, "{folder}");
    }
}

#[tokio::test]
async fn an_argument_cannot_change_the_request() {
    let server = Server::always(json(r#"{"address":"0x0000000000000000000000000000000000000001"}"#)).await;
    let rest = rest(&server);
    rest.wasm_smart("init1/../x?y", r#"{"a":"ÿ?>"}"#, None).await.unwrap();
    rest.move_resource("0x1", "0x1::a::B<0x2::c::D_e, u8>&x=#", Some(5)).await.unwrap();
    rest.erc20_of_denom("factory/init1/My Token&x=%2F").await.unwrap();
    rest.wasm_contract("a b", None).await.unwrap();
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        [
            "GET /cosmwasm/wasm/v1/contract/init1%2F..%2Fx%3Fy/smart/eyJhIjoiw78_PiJ9",
            "GET /initia/move/v1/accounts/0x1/resources/by_struct_tag?struct_tag=\
             0x1::a::B%3C0x2::c::D_e%2C%20u8%3E%26x%3D%23",
            "GET /minievm/evm/v1/contracts/by_denom?denom=factory%2Finit1%2FMy%20Token%26x%3D%252F",
            "GET /cosmwasm/wasm/v1/contract/a%20b",
        ]
    );
}

#[tokio::test]
async fn an_unknown_denom_or_contract_is_none_and_a_failure_is_an_error() {
    let no = r#"{"code":2,"message":"collections: not found: key 'x' of type string","details":[]}"#;
    let server = Server::always(fault(500, no)).await;
    assert_eq!(rest(&server).erc20_of_denom("x").await.unwrap(), None);
    assert_eq!(rest(&server).denom_of_erc20([1; 20]).await.unwrap(), None);
    for (play, kind) in [
        (fault(501, r#"{"code":12,"message":"Not Implemented"}"#), Kind::Permanent),
        (fault(500, r#"{"code":14,"message":"unavailable"}"#), Kind::Transient),
        (json(r#"{"address":"0x1"}"#), Kind::Transient),
        (json(r#"{"address":""}"#), Kind::Transient),
    ] {
        let server = Server::always(play).await;
        assert_eq!(rest(&server).erc20_of_denom("x").await.unwrap_err().kind(), kind);
        assert_eq!(rest(&server).denom_of_erc20([1; 20]).await.unwrap_err().kind(), kind);
    }
}

#[tokio::test]
async fn pruned_state_is_distinguished_from_a_refusal() {
    let gone = r#"{"code":2,"message":"failed to load state at height 5; x (latest height: 100)"}"#;
    let server = Server::always(fault(500, gone)).await;
    let error = rest(&server).wasm_contract("a", Some(5)).await.unwrap_err();
    assert!(error.is_pruned(), "{error:?}");
    let error = rest(&server).balances("a", Some(5)).await.unwrap_err();
    assert!(error.is_pruned() && error.to_string().contains("at height 5"), "{error:?}");
    let server = Server::always(fault(500, r#"{"code":2,"message":"no such contract"}"#)).await;
    assert!(!rest(&server).wasm_contract("a", Some(5)).await.unwrap_err().is_pruned());
}

#[tokio::test]
async fn accounts_of_every_kind_are_listed_and_unknown_ones_left_out() {
    let body = r#"{"accounts":[
        {"@type":"/cosmos.auth.v1beta1.BaseAccount","address":"a"},
        {"@type":"/cosmos.auth.v1beta1.ModuleAccount","base_account":{"address":"b"},"name":"gov"},
        {"@type":"/cosmos.vesting.v1beta1.DelayedVestingAccount",
         "base_vesting_account":{"base_account":{"address":"c"},"end_time":"1"}},
        {"@type":"/new.Account","inside":{"address":"d"}}],"pagination":{"next_key":"k+/="}}"#;
    let server = Server::always(json(body)).await;
    let page = rest(&server).accounts(Some(3), Some("j/=")).await.unwrap();
    assert_eq!((page.addresses.join(" ").as_str(), page.next.as_deref()), ("a b c", Some("k+/=")));
    let asked = &server.asked()[0];
    let line = "GET /cosmos/auth/v1beta1/accounts?pagination.limit=100&pagination.key=j%2F%3D";
    assert_eq!(asked.line, line);
    assert!(asked.headers.contains("x-cosmos-block-height: 3\r\n"));
}

fn coins(denom: &str, next: &str) -> Play {
    let coin = format!(r#"{{"denom":"{denom}","amount":"340282366920938463463374607431768211456"}}"#);
    json(&format!(r#"{{"balances":[{coin}],"pagination":{{"next_key":{next}}}}}"#))
}

#[tokio::test]
async fn balances_are_read_to_the_last_page_of_the_same_state() {
    let server = Server::in_turn(vec![coins("a", r#""+""#), coins("b", "null")]).await;
    let held = rest(&server).balances("init1", Some(8)).await.unwrap();
    let amount = "340282366920938463463374607431768211456".to_owned();
    assert_eq!(held, [("a".to_owned(), amount.clone()), ("b".to_owned(), amount)]);
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.headers.contains("x-cosmos-block-height: 8\r\n")));
    assert_eq!(
        asked[1].line,
        "GET /cosmos/bank/v1beta1/balances/init1?pagination.limit=1000&pagination.key=%2B"
    );
    let server = Server::always(coins("a", r#""+""#)).await;
    let error = rest(&server).balances("init1", None).await.unwrap_err();
    assert!(error.to_string().contains("more than 100 pages"), "{error}");
}
