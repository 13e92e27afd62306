//! Every page that links lead to, from the first one: it exists, is well-formed, and shows what its JSON requests
//! answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schema::ledger::LEDGER;
use schema::packets::PACKETS;
use serde_json::Value;

use crate::dom::Document;
use crate::site::Site;

/// Pages of one chain that are visited: enough for every view many times.
const PAGES: usize = 600;

/// Members that identify a row of a list, by the name of the list.
const KEYS: [(&str, &str); 7] = [
    ("blocks", "/height"),
    ("txs", "/txhash"),
    ("txs", "/transactionHash"),
    ("internal_txs", "/hash"),
    ("collections", "/object_addr"),
    ("tokens", "/owner"),
    ("holders", "/account"),
];

/// The paths of a walk, by their first segment.
struct Walk {
    seen: BTreeSet<String>,
    open: VecDeque<String>,
}

/// Visits the pages of a chain, and returns the views that it found, as first segments of paths.
async fn walk(site: &Site, start: &[&str]) -> BTreeSet<String> {
    let mut walk =
        Walk { seen: BTreeSet::new(), open: start.iter().map(|path| (*path).to_owned()).collect() };
    let (mut views, mut titles) = (BTreeSet::new(), BTreeMap::new());
    while let Some(path) = walk.open.pop_front() {
        if walk.seen.len() >= PAGES || !walk.seen.insert(path.clone()) {
            continue;
        }
        let answer = site.get(&path).await;
        if answer.status.is_redirection() {
            walk.open.push_back(answer.header("location").to_owned());
            continue;
        }
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        // The page over the API has tests of its own.
        if !answer.header("content-type").starts_with("text/html") || path == "/swagger/" {
            continue;
        }
        let document = answer.document();
        assert_eq!(document.errors, [""; 0], "{path}: {}", answer.body);
        check_structure(&path, &document);
        // Pages of one list have its title.
        if !["pagination.key=", "msgs=", "is_signer=", "collection_addr=", "block_data="]
            .iter()
            .any(|part| path.contains(part))
        {
            let title = Document::title(&answer.body).to_owned();
            // An address has two spellings.
            let one = path.to_lowercase();
            let other = titles.insert(title.to_lowercase(), one.clone()).filter(|other| *other != one);
            assert!(other.is_none(), "{path} has the title {title} of {other:?}");
        }
        assert!(!answer.body.contains(r#"<dd><span class="none">–</span></dd>"#), "{path} has an empty fact");
        check_figures(site, &path, &answer.body, &document);
        views.insert(path.split(['/', '?']).nth(1).unwrap().to_owned());
        for link in document.links() {
            if link.starts_with('/') {
                walk.open.push_back(link);
            } else {
                assert!(link.starts_with('#') || link.starts_with("http"), "{path} links to {link}");
            }
        }
    }
    views
}

/// Titles, labels and names that assistive technology needs; nothing that the policy forbids.
fn check_structure(path: &str, document: &Document) {
    assert_eq!(document.all("h1").count(), 1, "{path}");
    assert_eq!(document.all("title").count() - document.all("rect").count(), 1, "{path}");
    assert!(document.all("html").all(|html| html.get("lang") == Some("en")), "{path}");
    let tables = document.all("table").all(|table| table.get("aria-label").is_some());
    assert!(tables && document.all("img").all(|image| image.get("alt").is_some()), "{path}");
    for element in &document.elements {
        let forbidden = |name: &str| name == "style" || name.starts_with("on");
        let found = element.attributes.iter().find(|(name, _)| forbidden(name));
        assert!(found.is_none(), "{path}: {} has {found:?}", element.name);
        assert!(element.name != "style", "{path}");
        assert!(element.name != "script" || element.get("src").is_some(), "{path}");
    }
    let ids: Vec<_> = document.elements.iter().filter_map(|element| element.get("id")).collect();
    assert!(
        document.all("pre").all(|pre| pre.get("tabindex") == Some("0")),
        "{path}: a text that keys cannot scroll"
    );
    let searches: Vec<_> = document.all("form").filter(|form| form.get("role") == Some("search")).collect();
    let labels: BTreeSet<_> = searches.iter().filter_map(|form| form.get("aria-label")).collect();
    assert_eq!(searches.len(), labels.len(), "{path}: searches without a name of their own");
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{path}: an id is there twice");
}

/// The page has the rows of the JSON lists that it names, and their totals.
fn check_figures(site: &Site, path: &str, html: &str, document: &Document) {
    let is_json = |link: &String| link.starts_with("/indexer/") && !link.contains("format=csv");
    let requests = document.links().into_iter().filter(is_json);
    for request in requests {
        let answer = site.json(&request);
        for (list, pointer) in KEYS {
            let rows = answer[list].as_array().map(Vec::as_slice).unwrap_or_default();
            // The overview shows a part of the blocks of its charts.
            let shown = if path == "/" { 10 } else { rows.len() };
            for key in rows.iter().take(shown).filter_map(|row| row.pointer(pointer)?.as_str()) {
                assert!(html.contains(key), "{path} lacks {key} of {request}");
            }
        }
        let total = answer["pagination"]["total"].as_str();
        if let Some(total) =
            total.filter(|total| *total != "0" && path != "/" && !path.starts_with("/block/"))
        {
            let figures = document.text.replace('\u{202f}', "");
            assert!(figures.contains(total), "{path} lacks the total {total} of {request}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_link_of_an_evm_chain_leads_to_a_page() {
    let site = Site::indexed("evm-scenario", &[&LEDGER, &PACKETS]).await;
    let status = site.json("/status");
    let views = walk(
        &site,
        &[
            "/collection/0xf17b946aa67aad4c9b7c69031f03e54a01d01724",
            "/",
            "/holders?denom=GAS",
            "/holders",
            "/evm-txs",
            "/collections",
        ],
    )
    .await;
    let all = [
        "",
        "account",
        "block",
        "blocks",
        "bridge",
        "collection",
        "collections",
        "evm-txs",
        "holders",
        "ibc",
        "search",
        "token",
        "tokens",
        "tx",
        "txs",
    ];
    // No link leads to the search, whose form has no target of its own.
    let expected: BTreeSet<_> = all.into_iter().filter(|view| *view != "search").map(str::to_owned).collect();
    assert_eq!(views, expected);
    let overview = site.get("/").await.document().text;
    assert!(overview.contains(status["height"].to_string().as_str()), "{overview}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_link_of_a_move_chain_leads_to_a_page() {
    let site = Site::recorded("move-scenario").await;
    let views = walk(&site, &["/"]).await;
    assert!(["token", "collection", "account", "tx"].iter().all(|view| views.contains(*view)), "{views:?}");
    assert!(!views.contains("evm-txs"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_link_of_a_wasm_chain_leads_to_a_page() {
    let site = Site::recorded("wasm-scenario").await;
    let views = walk(&site, &["/"]).await;
    assert!(["token", "collection", "account", "tx"].iter().all(|view| views.contains(*view)), "{views:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_internal_calls_of_a_transaction_are_its_frames() {
    let site = Site::recorded("evm-scenario").await;
    let txs = site.json("/indexer/tx/v1/evm-txs?pagination.limit=40");
    for tx in txs["txs"].as_array().unwrap() {
        let hash = tx["transactionHash"].as_str().unwrap();
        let page = site.get(&format!("/tx/{hash}")).await.header("location").to_owned();
        let page = site.get(&page).await.document();
        let frames = site.json(&format!("/indexer/tx/v1/evm-internal-txs/{hash}?pagination.reverse=false"));
        let wanted: Vec<_> = frames["internal_txs"].as_array().unwrap().iter().map(depth(&frames)).collect();
        let found: Vec<_> = page
            .all("span")
            .filter_map(|span| span.get("class")?.strip_prefix("depth d")?.parse::<usize>().ok())
            .collect();
        assert_eq!(found, wanted, "{hash}");
    }
}

/// The depth of a frame, by following its parents.
fn depth(frames: &Value) -> impl Fn(&Value) -> usize {
    move |frame| {
        let mut depth = 0;
        let mut parent = frame["parent_index"].as_i64().unwrap();
        while let Ok(index) = usize::try_from(parent) {
            parent = frames["internal_txs"][index]["parent_index"].as_i64().unwrap();
            depth += 1;
        }
        depth.min(8)
    }
}
