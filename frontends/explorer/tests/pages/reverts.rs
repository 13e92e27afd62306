//! Functions and reverts of calls, by the ABIs of contracts and by standards.

use serde_json::{Value, json};

use crate::known::Known;
use crate::site::Site;

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_reverts_of_calls_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let contracts = Known::new(folder.path());
    let abis = contracts.folder.clone();
    let site = Site::explained("evm-fees", contracts).await;
    let (mut standard, mut own, mut named) = (0, 0, 0);
    let mut from = 0;
    loop {
        let txs = site.json(&format!("/indexer/tx/v1/evm-txs?pagination.limit=100&pagination.offset={from}"));
        let txs = txs["txs"].as_array().unwrap();
        from += txs.len();
        for hash in txs.iter().map(|tx| tx["transactionHash"].as_str().unwrap()) {
            let frames = site.json(&format!(
                "/indexer/tx/v1/evm-internal-txs/{hash}?pagination.reverse=false&pagination.limit=100"
            ));
            let frames = frames["internal_txs"].as_array().unwrap();
            let is_of =
                |frame: &Value, member: &str, start: &str| frame[member].as_str().unwrap().starts_with(start);
            let calls = frames.iter().any(|frame| {
                is_of(frame, "input", "0xa9059cbb") && frame["input"].as_str().unwrap().len() == 138
            });
            // `InsufficientBalance(address,uint256,uint256)`, and an error of a contract of the recording.
            let usual = frames.iter().find(|frame| is_of(frame, "output", "0xdb42144d"));
            let custom = frames.iter().find(|frame| is_of(frame, "output", "0xf988f737"));
            if !calls && usual.is_none() && custom.is_none() {
                continue;
            }
            if let Some(frame) = custom {
                let to = hex::decode(&frame["to"].as_str().unwrap()[2..]).unwrap().try_into().unwrap();
                let inputs =
                    json!([{ "type": "uint256", "name": "code" }, { "type": "string", "name": "why" }]);
                let abi = json!([{ "type": "error", "name": "Custom", "inputs": inputs }]);
                abis.add_bytes(&to, abi.to_string().as_bytes()).unwrap();
            }
            let page = site.get(&format!("/tx/{hash}")).await;
            let page = if page.status == 303 { site.get(page.header("location")).await } else { page };
            let text = page.document().text;
            if calls {
                named += 1;
                assert!(
                    page.body.contains("transfer(address to, uint256 value), selector 0xa9059cbb"),
                    "{hash}: {text}"
                );
            }
            if usual.is_some() {
                standard += 1;
                assert!(text.contains("InsufficientBalance(account 0x"), "{hash}: {text}");
                assert!(!text.contains("own error 0xdb42144d"), "{hash}: {text}");
            }
            if custom.is_some() {
                own += 1;
                assert!(text.contains("Custom(code "), "{hash}: {text}");
            }
        }
        if txs.len() < 100 {
            break;
        }
    }
    assert!(standard > 3 && own > 1 && named > 10, "{standard} {own} {named}");
}
