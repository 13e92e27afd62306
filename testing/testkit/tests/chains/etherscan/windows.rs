//! Blockscout's windows and parties of lists, times of blocks, and lists of contracts.

use std::collections::BTreeSet;

use etherscan::{Contracts, Etherscan};
use serde_json::{Value, json};

use super::naive::{chain, lines, number, text};
use super::{fees, reply, result, rows};

#[tokio::test(flavor = "multi_thread")]
async fn a_list_may_begin_and_end_at_times_and_have_one_side_only() {
    let (app, txs) = (fees().await, chain("evm-fees"));
    let sender = text(&txs[5].receipt["from"]).to_owned();
    let query = format!("module=account&action=txlist&address={sender}");
    let whole = rows(app, &query).await;
    let times: Vec<u64> = whole.iter().map(|row| text(&row["timeStamp"]).parse().unwrap()).collect();
    let (first, last) = (times[0], times[times.len() - 1]);
    for (from, to) in [
        (first, last),
        (first + 5, last - 5),
        (first - 100, first),
        (last, last + 100),
        (last + 1, last + 9),
        (0, first - 1),
    ] {
        let found = rows(app, &format!("{query}&start_timestamp={from}&end_timestamp={to}")).await;
        let expected: Vec<_> = whole
            .iter()
            .zip(&times)
            .filter(|(_, time)| (from..=to).contains(time))
            .map(|(row, _)| row.clone())
            .collect();
        assert_eq!(found, expected, "{from} to {to}");
    }
    let [sent, received] = ["from", "to"].map(|side| format!("{query}&filter_by={side}"));
    let (sent, received) = (rows(app, &sent).await, rows(app, &received).await);
    assert!(sent.iter().all(|row| row["from"] == sender.as_str()) && !sent.is_empty());
    assert!(received.iter().all(|row| row["from"] != sender.as_str()));
    let all: BTreeSet<_> = sent.iter().chain(&received).map(|row| text(&row["hash"]).to_owned()).collect();
    assert_eq!(all, whole.iter().map(|row| text(&row["hash"]).to_owned()).collect());
    assert_eq!(sent.len() + received.len(), whole.len());
    let neither = reply(app, &format!("{query}&filter_by=both")).await;
    assert!(text(&neither["result"]).contains("filter_by"), "{neither}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_has_no_reward_and_a_coming_one_a_time() {
    let app = fees().await;
    let time = |height: u64| {
        let line = lines("evm-fees", "blocks.ndjson.zst").find(|line| line["height"] == height).unwrap();
        number(&line["eth_block"]["timestamp"]).to::<u64>()
    };
    let reward = result(app, "module=block&action=getblockreward&blockno=100").await;
    assert_eq!(
        reward,
        json!({
            "blockNumber": "100", "timeStamp": time(100).to_string(), "uncles": [], "uncleInclusionReward": "0",
            "blockMiner": "0x0000000000000000000000000000000000000000", "blockReward": "0",
        })
    );
    let countdown = result(app, "module=block&action=getblockcountdown&blockno=684").await;
    let tenths = (time(584) - time(1)) * 10 * 100 / 583;
    assert_eq!(
        countdown,
        json!({
            "CurrentBlock": "584", "CountdownBlock": "684", "RemainingBlock": "100",
            "EstimateTimeInSec": format!("{}.{}", tenths / 10, tenths % 10),
        })
    );
    for (query, error) in [
        ("module=block&action=getblockreward&blockno=585", "Error! Block not found"),
        ("module=block&action=getblockreward", "Error! Missing parameter blockno"),
        ("module=block&action=getblockcountdown&blockno=584", "Error! Block number already pass"),
        ("module=block&action=getblockcountdown&blockno=18446744073709551615", ""),
    ] {
        let reply = reply(app, query).await;
        assert!(text(&reply["result"]).starts_with(error) || error.is_empty(), "{reply}");
    }
    let limit = reply(app, "module=getapilimit&action=getapilimit").await;
    assert!(limit["status"] == "0" && text(&limit["result"]).contains("429"), "{limit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_are_listed_once_and_a_proxy_is_verified_by_its_file() {
    let (shared, txs, folder) = (fees().await, chain("evm-fees"), tempfile::tempdir().unwrap());
    let contracts = Contracts::new(folder.path().to_owned());
    let app =
        Etherscan::new(shared.state().rpc().clone()).with_contracts(Some(contracts.clone())).app().unwrap();
    let expected: BTreeSet<_> = txs
        .iter()
        .filter(|tx| tx.receipt["contractAddress"].is_string())
        .map(|tx| text(&tx.receipt["contractAddress"]).to_owned())
        .collect();
    let proxy = expected.iter().next().unwrap().clone();
    let known = r#"{"abi":[],"contractName":"Door","proxyResolution":{"implementations":[{"address":"0xABABABABABABABABABABABABABABABABABABABAB"}]}}"#;
    contracts.add_bytes(&hex::decode(&proxy[2..]).unwrap().try_into().unwrap(), known.as_bytes()).unwrap();
    let (mut all, query) = (Vec::<Value>::new(), "module=contract&action=listcontracts");
    for page in 1.. {
        let some = rows(&app, &format!("{query}&page={page}&offset=7")).await;
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    let addresses: BTreeSet<_> = all.iter().map(|row| text(&row["Address"]).to_owned()).collect();
    assert_eq!(addresses.len(), all.len());
    assert!(addresses.is_superset(&expected) && expected.len() > 5, "{addresses:?}");
    let named = all.iter().find(|row| row["Address"] == proxy.as_str()).unwrap();
    assert_eq!((&named["ContractName"], &named["ABI"]), (&json!("Door"), &json!("[]")));
    assert!(all.iter().any(|row| row["ABI"] == "Contract source code not verified"));
    let verified = rows(&app, &format!("{query}&filter=verified")).await;
    assert_eq!(verified, std::slice::from_ref(named));
    assert_eq!(reply(&app, &format!("{query}&filter=starred")).await["message"], "NOTOK");

    let check = |guid: &str| format!("module=contract&action=checkproxyverification&guid={guid}");
    for (expected, passes) in [("", true), ("ab", true), ("cd", false)] {
        let expected = if expected.is_empty() {
            String::new()
        } else {
            format!("&expectedimplementation=0x{}", expected.repeat(20))
        };
        let query = format!("module=contract&action=verifyproxycontract&address={proxy}{expected}");
        let guid = text(&result(&app, &query).await).to_owned();
        let checked = reply(&app, &check(&guid)).await;
        let text = text(&checked["result"]);
        assert_eq!(checked["status"] == "1", passes, "{checked}");
        assert!(text.contains(if passes { "is successfully updated" } else { "not detected" }), "{text}");
    }
    for guid in ["", "0x12", &"f".repeat(41), &"x".repeat(40), &"ä".repeat(40)] {
        assert_eq!(reply(&app, &check(guid)).await["message"], "NOTOK", "{guid}");
    }
}
