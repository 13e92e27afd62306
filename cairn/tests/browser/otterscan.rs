//! Otterscan's pages over a recorded chain. They are no part of this repository, so the test is only run for a build that
//! the variable `OTTERSCAN` names: `make otterscan-test OTTERSCAN=DIR`.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::support::{Cairn, post, until};
use crate::tab::{Screen, Tab};

/// The hashes of a table of transactions.
const ROWS: &str =
    r#"[...document.querySelectorAll('tbody [data-test="tx-hash"]')].map((row) => row.textContent)"#;

const TEXT: &str = r#"document.body?.innerText ?? """#;

/// `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

const WIDE: Screen = Screen { name: "otterscan", width: 1280, scheme: "light" };

struct Pages {
    tab: Tab,
    url: String,
}

impl Pages {
    /// The result of a call.
    fn ask(&self, method: &str, params: &Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, reply) = post(&format!("{}/", self.url), &call);
        assert!(status == 200 && reply["error"].is_null(), "{method} {params}: {reply}");
        reply["result"].clone()
    }

    /// Opens a page and waits until it has all of `words`.
    fn shows(&mut self, path: &str, words: &[&str]) {
        self.tab.begin(path);
        for word in words {
            until(&format!("{word:?} on {path}"), || {
                // Addresses have upper-case digits as their checksum.
                let text = self.tab.evaluate(TEXT).as_str().unwrap_or_default().to_lowercase();
                text.contains(&word.to_lowercase()).then_some(())
            });
        }
        if let Some(dir) = std::env::var_os("SCREENSHOTS") {
            let name = path.trim_matches('/').replace(['/', '?', '='], "-");
            self.tab.screenshot(&PathBuf::from(dir).join(format!("otterscan-{name}.png")));
        }
    }

    /// The transactions of an account on the pages from here on, by the button `name`, in the order of the pages.
    fn walk(&mut self, name: &str) -> Vec<Vec<String>> {
        let mut pages: Vec<Vec<String>> = Vec::new();
        loop {
            let page = until("another page of transactions", || {
                let rows: Vec<String> = serde_json::from_value(self.tab.evaluate(ROWS)).unwrap();
                (!rows.is_empty() && pages.last() != Some(&rows)).then_some(rows)
            });
            pages.push(page);
            // The button is no link on the last page. Each page is opened by its address, as from a bookmark.
            let link = format!(
                r#"document.querySelector('[data-test="nav-{name}"]')?.getAttribute("href") ?? null"#
            );
            match self.tab.evaluate(&link).as_str() {
                Some(next) => self.tab.begin(next),
                None => return pages,
            }
        }
    }
}

/// The hashes of transactions, newest first.
fn hashes_of(txs: &Value) -> Vec<String> {
    txs.as_array().unwrap().iter().rev().map(|tx| tx["hash"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs a build of Otterscan: make otterscan-test OTTERSCAN=DIR"]
fn otterscan_shows_blocks_transactions_accounts_and_contracts() {
    let build = std::env::var("OTTERSCAN").expect("OTTERSCAN names the folder of a build");
    let any = "127.0.0.1:0";
    let dir = "testing/recordings/evm-fees";
    let mut cairn = Cairn::start(&[
        "demo",
        "--recording",
        dir,
        "--listen",
        any,
        "--route-listen",
        any,
        "--evm-listen",
        any,
        "--otterscan",
        &build,
    ]);
    let url = cairn.logged("serving Ethereum's JSON-RPC")["url"].as_str().unwrap().to_owned();
    cairn.printed_about("is indexed");
    let mut chromium = Chromium::start();
    let mut tab = chromium.tab(&url);
    tab.show_on(WIDE);
    let mut pages = Pages { tab, url };
    let head = until("headers and calls of all blocks", || {
        let head = pages.ask("eth_blockNumber", &json!([]));
        (head == "0x248").then_some(head)
    });
    assert_eq!(head, "0x248");

    // The first page, and a route that is opened by its address.
    pages.shows("/", &["584"]);
    let block = pages.ask("eth_getBlockByNumber", &json!(["0x40", true]));
    let (hash, parent) = (block["hash"].as_str().unwrap(), block["parentHash"].as_str().unwrap());
    let count = block["transactions"].as_array().unwrap().len();
    pages.shows("/block/64", &[hash, parent, &format!("{count} transaction")]);
    pages.shows("/block/64/txs", &["A total of"]);
    assert_eq!(pages.walk("next"), [hashes_of(&block["transactions"])]);

    // A transaction with logs, and one that calls others.
    let logs = pages.ask(
        "eth_getLogs",
        &json!([{ "fromBlock": "0x1", "toBlock": "0x248", "topics": [TRANSFER, null, null] }]),
    );
    let hashes =
        logs.as_array().unwrap().iter().map(|log| log["transactionHash"].as_str().unwrap().to_owned());
    let of_calls =
        |hash: &String| pages.ask("ots_getInternalOperations", &json!([hash])).as_array().unwrap().len();
    let selector_of = |hash: &String| {
        let trace = pages.ask("ots_traceTransaction", &json!([hash]));
        let inputs = trace.as_array().unwrap().iter().filter(|call| call["type"] == "CALL");
        let input = inputs.map(|call| call["input"].as_str().unwrap()).rfind(|input| input.len() >= 10)?;
        Some(input[..10].to_owned())
    };
    let is_wanted = |hash: &String| of_calls(hash) > 0 && selector_of(hash).is_some();
    let inner = hashes.clone().find(is_wanted).unwrap();
    let selector = selector_of(&inner).unwrap();
    let receipt = pages.ask("eth_getTransactionReceipt", &json!([inner]));
    let logged = receipt["logs"].as_array().unwrap().len();
    pages.shows(
        &format!("/tx/{inner}"),
        &["Success", &inner, &format!("Logs ({logged})"), "Tokens Transferred"],
    );
    let operations = pages.ask("ots_getInternalOperations", &json!([inner]));
    let to = operations[0]["to"].as_str().unwrap()[2..].to_lowercase();
    let text = pages.tab.evaluate(TEXT).as_str().unwrap().to_lowercase();
    assert!(text.contains(&to), "the receiver of an internal transfer");
    let emitter = receipt["logs"][0]["address"].as_str().unwrap();
    pages.shows(&format!("/tx/{inner}/logs"), &["Parameters", emitter]);
    pages.shows(&format!("/tx/{inner}/trace"), &[&selector]);

    // A failed one with its reason.
    let failed = (1..=584).find_map(|height| {
        let receipts = pages.ask("eth_getBlockReceipts", &json!([format!("{height:#x}")]));
        receipts.as_array().unwrap().iter().find_map(|receipt| {
            let hash = receipt["transactionHash"].as_str().unwrap();
            let is_failed = receipt["status"] == "0x0";
            let reason = is_failed.then(|| pages.ask("ots_getTransactionError", &json!([hash])))?;
            reason.as_str().unwrap().starts_with("0x08c379a0").then(|| hash.to_owned())
        })
    });
    pages.shows(&format!("/tx/{}", failed.unwrap()), &["Fail", "with revert message"]);

    // An account with several pages, in both directions.
    let busiest = receipt["from"].as_str().unwrap().to_owned();
    let path = format!("/address/{busiest}");
    pages.shows(&path, &["transactions on this page"]);
    let forth = pages.walk("next");
    let (mut all, mut from) = (Vec::new(), json!(0));
    loop {
        let page = pages.ask("ots_searchTransactionsBefore", &json!([busiest, from, 25]));
        let txs = page["txs"].as_array().unwrap();
        all.extend(txs.iter().map(|tx| tx["hash"].as_str().unwrap().to_owned()));
        if page["lastPage"] == true {
            break;
        }
        from = txs.last().unwrap()["blockNumber"].clone();
    }
    assert!(forth.len() > 2 && forth.concat() == all, "{} pages of {} transactions", forth.len(), all.len());
    let mut back = pages.walk("prev");
    back.reverse();
    assert_eq!(back.concat(), all);

    // A contract with its creator.
    let created = (1..=584).find_map(|height| {
        let receipts = pages.ask("eth_getBlockReceipts", &json!([format!("{height:#x}")]));
        let mut receipts = receipts.as_array().unwrap().clone().into_iter();
        receipts.find(|receipt| receipt["contractAddress"].is_string())
    });
    let created = created.unwrap();
    let (contract, creation) =
        (created["contractAddress"].as_str().unwrap(), created["transactionHash"].as_str().unwrap());
    pages.shows(&format!("/address/{contract}"), &["Contract creator", creation]);

    // Nothing is asked of another server.
    let problems = pages.tab.problems();
    let elsewhere: Vec<_> =
        problems.iter().filter(|problem| problem.starts_with("request to another host")).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}
