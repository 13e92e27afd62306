//! Walks over the recorded chains, as `cairn demo` shows them, and its forms.

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::support::{Cairn, get, post, until};
use crate::walk::{PAGE, ROUTE_VIEWS, VIEWS, Walk};

/// The views of chains with EVM transactions.
const EVM_VIEWS: [&str; 3] = ["/evm-txs", "/holders", "/contract/*"];

/// The views of chains through whose channels packets have passed.
const BETWEEN_CHAINS: [&str; 5] =
    ["/ibc/*", "/ibc/*/*", "/bridge/deposits", "/bridge/output/*", "/bridge/withdrawal/*"];

/// An asset of the example registry on its home chain, and the token that it becomes on another one.
const NATIVE: (&str, &str) = ("e2e-l1-1", "uinit");
const BRIDGED: (&str, &str) = ("e2e-l2-1", "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2");

/// `cairn demo` of a recording.
struct Demo {
    cairn: Cairn,
    /// Of the JSON interface and the pages.
    url: String,
}

impl Demo {
    fn start(recording: &str) -> Self {
        let dir = format!("testing/recordings/{recording}");
        let any = "127.0.0.1:0";
        let mut cairn = Cairn::start(&["demo", "--recording", &dir, "--listen", any, "--route-listen", any]);
        cairn.printed_about("is indexed");
        let url = url(&cairn.line("http://")).0;
        Self { cairn, url }
    }

    /// The address of the routing interface, and the queries of the registered transfers.
    fn routes(&mut self) -> (String, Vec<String>) {
        self.cairn.printed_about("Routes between");
        let (address, _) = url(&self.cairn.line("http://"));
        let lines = (0..6).map(|_| url(&self.cairn.line("http://")).1);
        let transfers = lines.filter_map(|path| Some(path.strip_prefix("v2/tx/status?")?.to_owned()));
        (address, transfers.collect())
    }
}

/// URL of the server, and the path without its first slash.
fn url(printed: &str) -> (String, String) {
    let (address, path) = printed.split_once('/').unwrap();
    (format!("http://{address}"), path.to_owned())
}

/// Walks the pages of a demo; no view but those of `absent` may be missing.
fn walk(demo: &Demo, chromium: &mut Chromium, recording: &str, more: &[String], absent: &[&str]) {
    let searches = ["/search", "/search?q=a", "/search?q=no+such+record"].map(str::to_owned);
    let more = [&searches[..], more].concat();
    let found = Walk::new(chromium.tab(&demo.url), &demo.url, recording, &more).run();
    let views = VIEWS.into_iter().chain(ROUTE_VIEWS);
    let missing = views.filter(|view| !found.contains_key(view) && !absent.contains(view));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "no link leads to these views");
}

#[test]
fn pages_of_an_evm_chain_with_routes_and_transfers() {
    let mut demo = Demo::start("evm-scenario");
    let mut chromium = Chromium::start();
    let (address, transfers) = demo.routes();
    assert_eq!(transfers.len(), 4);
    let route = "/route?from_chain=e2e-l1-1&from=uinit&to_chain=e2e-l2-1&amount=1.5&to=";
    let route = format!("{route}{}", BRIDGED.1.replace('/', "%2F"));
    let mut tab = chromium.tab(&demo.url);

    let body = json!({
        "amount_in": "1500000", "allow_multi_tx": true,
        "source_asset_chain_id": NATIVE.0, "source_asset_denom": NATIVE.1,
        "dest_asset_chain_id": BRIDGED.0, "dest_asset_denom": BRIDGED.1,
    });
    let (status, json) = post(&format!("{address}/v2/fungible/route"), &body);
    assert_eq!(status, 200, "{json}");
    tab.open(&route);
    // The form keeps its values, so that it leads to the same page.
    tab.submit("input[name=amount]", "1.5");
    let page = tab.evaluate(PAGE);
    for (name, amount, denom) in
        [("You send", "1500000", NATIVE.1), ("You receive", json["amount_out"].as_str().unwrap(), BRIDGED.1)]
    {
        let shown = page["facts"][name].as_array().unwrap();
        assert!(shown.contains(&json!(format!("{amount} {denom}"))), "{name}: {shown:?}");
    }
    let hops = json["operations"].as_array().unwrap().len();
    assert_eq!(tab.evaluate("document.querySelectorAll('ol.hops > li').length"), hops);

    for transfer in &transfers {
        let status = until("the end of a transfer", || {
            let (_, status) = get(&format!("{address}/v2/tx/status?{transfer}"));
            status["state"].as_str()?.starts_with("STATE_COMPLETED").then_some(status)
        });
        tab.open(&format!("/transfer?{transfer}"));
        let shown =
            tab.evaluate("[...document.querySelectorAll('ol.hops [title]')].map((element) => element.title)");
        let mut hashes = Vec::new();
        transactions(&status["transfer_sequence"], &mut hashes);
        let missing = hashes.iter().filter(|hash| !shown.as_array().unwrap().contains(hash));
        assert_eq!(missing.collect::<Vec<_>>(), [&Value::Null; 0], "{status}");
        let hops = status["transfer_sequence"].as_array().unwrap().len();
        assert_eq!(tab.evaluate("document.querySelectorAll('ol.hops > li').length"), hops);
    }
    assert_eq!(tab.problems(), [""; 0]);

    let mut more = vec![route.clone(), format!("{route}x"), route.replace("amount=1.5", "amount=1.2345678")];
    more.extend(transfers.iter().map(|transfer| format!("/transfer?{transfer}")));
    more.push("/contract/0x1ebeb4aa9d6b7ad48e093a336feb6c17358250e2".to_owned());
    walk(&demo, &mut chromium, "evm-scenario", &more, &BETWEEN_CHAINS);
}

/// All hashes of transactions in a JSON value.
fn transactions(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("tx_hash").cloned());
            members.values().for_each(|member| transactions(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| transactions(element, found)),
        _ => {}
    }
}

#[test]
fn pages_of_a_move_chain() {
    let demo = Demo::start("move-scenario");
    walk(&demo, &mut Chromium::start(), "move-scenario", &[], &[&EVM_VIEWS[..], &BETWEEN_CHAINS].concat());
}

#[test]
fn pages_of_a_wasm_chain() {
    let demo = Demo::start("wasm-scenario");
    walk(&demo, &mut Chromium::start(), "wasm-scenario", &[], &[&EVM_VIEWS[..], &BETWEEN_CHAINS].concat());
}

#[test]
fn pages_of_a_rollup_of_a_recorded_pair() {
    let demo = Demo::start("l1-l2/l2");
    walk(&demo, &mut Chromium::start(), "l1-l2", &[], &["/bridge/output/*", "/contract/*"]);
}

#[test]
fn search_leads_to_each_kind_of_record() {
    let demo = Demo::start("evm-scenario");
    let json = |target: &str| get(&format!("{}{target}", demo.url)).1;
    let tx = json("/indexer/tx/v1/txs?pagination.limit=1")["txs"][0].take();
    let evm_tx = json("/indexer/tx/v1/evm-txs?pagination.limit=1")["txs"][0].take();
    let collection = json("/indexer/nft/v1/collections?pagination.limit=1")["collections"][0].take();
    let of = |value: &Value| value.as_str().unwrap().to_owned();
    let mut chromium = Chromium::start();
    let mut tab = chromium.tab(&demo.url);
    // Both hashes of a transaction have one page.
    tab.open(&format!("/evm-tx/{}", of(&evm_tx["transactionHash"])));
    let of_both = of(&tab.evaluate("location.pathname"));
    assert!(of_both.starts_with("/tx/"), "{of_both}");
    let cases = [
        ("17".to_owned(), "/block/17".to_owned()),
        (of(&tx["txhash"]), format!("/tx/{}", of(&tx["txhash"]))),
        (of(&evm_tx["transactionHash"]), of_both),
        (of(&evm_tx["from"]), format!("/account/{}", of(&evm_tx["from"]))),
        (of(&collection["object_addr"]), format!("/collection/{}", of(&collection["object_addr"]))),
        ("no such record".to_owned(), "/search".to_owned()),
    ];
    for (text, path) in cases {
        tab.open("/");
        tab.submit("input[type=search]", &text);
        assert_eq!(tab.evaluate("location.pathname"), path, "{text}");
    }
    assert_eq!(tab.problems(), [""; 0]);
}
