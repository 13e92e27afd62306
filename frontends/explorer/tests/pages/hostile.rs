//! Names, URIs, memos, denoms and errors that attack a page: nothing of them becomes an element or an attribute.

use std::collections::BTreeSet;
use std::sync::Arc;

use chain::Account;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use schema::block::{Block, Blocks};
use schema::keys::{AccountKey, Role, hash_prefix};
use schema::meta::{self, BlockLane, Identity};
use schema::nft::fold::record;
use schema::nft::{Change, Collection, Entry, Mint, NewCollection, Outcome, Place, TokenName};
use schema::payload::{Chunk, Codec, Kind};
use schema::postings;
use schema::tx::{AccountTxs, TxByHash, Txs};
use serde_json::json;
use store::{Counts, Durability, MemStore, Message, Store, Txn};

use crate::site::Site;

/// Texts that would be harmful as HTML, as an attribute, as a link, or by their direction or length.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'onmouseover='alert(1)",
        "</title></textarea></pre></style><script src=//evil.test></script>",
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "https://x.test/\" onclick=\"alert(1)",
        "\u{202e}gnp.exe\u{2066}",
        "&lt;b&gt; &#x3c;script&#x3e;",
        "<!--",
        "{{7*7}}",
        "\0\u{1b}[31m",
        "",
        IMAGES[0],
        IMAGES[1],
        IMAGES[2],
        "https://x.test/1.png",
    ]
    .map(str::to_owned)
    .into();
    texts.push("<b>".repeat(34_000));
    texts
}

/// URIs of images: two that contain them, and one on IPFS.
const IMAGES: [&str; 3] = [
    "data:image/gif;base64,R0lGODlhAQABAAAAACw=",
    "data:image/svg+xml;utf8,<svg onload=\"alert(1)\"/>' onerror='alert(1)",
    "ipfs://QmCid/1.png",
];

const OWNER: [u8; 20] = [7; 20];

/// Address of collection number `n`.
fn collection(n: usize) -> Vec<u8> {
    vec![u8::try_from(n + 1).unwrap(); 20]
}

/// A chain with one block that has every text in every place.
fn hostile() -> Arc<MemStore> {
    let store = Arc::new(MemStore::new());
    let identity = Identity {
        format: schema::FORMAT,
        chain_id: "<i>chain</i>".to_owned(),
        vm: "move".to_owned(),
        prefix: "init".to_owned(),
        start_height: 1,
    };
    schema::open::or_create(&*store, &identity).unwrap();
    let texts = texts();
    let snapshot = store.snapshot().unwrap();
    let codec = Codec::load(&*snapshot).unwrap();
    let encoder = &mut codec.encoder(Kind::ALL[0]).unwrap();
    let mut counts = Counts::new(64);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    let owner = AccountKey(Account::from_bytes(&OWNER).unwrap());
    for (n, text) in texts.iter().enumerate() {
        let seq = n as u64 + 1;
        let hash = [u8::try_from(n).unwrap() + 0xc0; 32];
        let record = json!({
            "txhash": chain::hash::to_hex(&hash).to_uppercase(), "height": "1", "codespace": text, "code": 5,
            "raw_log": text, "gas_wanted": "1", "gas_used": "1", "timestamp": "2026-01-01T00:00:00Z",
            "tx": {
                "body": { "memo": text, "messages": [{ "@type": format!("/a.{text}"), text: text, "nested": { text: [text] } }] },
                "auth_info": { "fee": { "amount": [{ "denom": text, "amount": text }], "payer": text, "granter": "" } },
            },
            "events": [{ "type": text, "attributes": [{ "key": text, "value": text }] }],
        });
        // The API finds a record by its first member.
        let hex = record["txhash"].as_str().unwrap();
        let mut rest = record.clone();
        rest.as_object_mut().unwrap().remove("txhash");
        let record = format!("{{\"txhash\":\"{hex}\",{}", &rest.to_string()[1..]);
        txn.put::<Txs>(&seq, &encoder.encode(&Chunk::single(record.as_bytes()).take()));
        postings::add::<TxByHash>(&mut txn, [(hash_prefix(&hash), seq, 0)]);
        txn.push::<AccountTxs>(&(owner, Role::Involved), seq).unwrap();
    }
    let proposer = &texts[1];
    let block = json!({
        "chain_id": "x", "height": "1", "hash": texts[0], "block_time": "0", "timestamp": texts[0], "gas_used": texts[0],
        "gas_wanted": "0", "tx_count": "0", "total_fee": [{ "denom": texts[2], "amount": "5" }],
        "proposer": { "moniker": proposer, "identity": "", "operator_address": proposer },
    });
    let txs = texts.len() as u64;
    let (first_tx, first_evm_tx, evm_txs, time) = (1, 1, 0, 1_000_000_000);
    let block = Block { first_tx, txs, first_evm_tx, evm_txs, time, json: block.to_string().into_bytes() };
    txn.put::<Blocks>(&1, &Message(block));
    meta::put(&mut txn, &BlockLane { height: 1, txs, evm_txs: 0, time: 0, hash: vec![0; 32] });
    let mut entries = Vec::new();
    let mut add = |change| {
        entries.push(Entry { time: 1, tx: 0, change: Some(change) });
    };
    for (n, text) in texts.iter().enumerate() {
        let detail = Collection { name: text.clone(), height: 1, time: 1, ..Collection::default() };
        add(Change::Collection(NewCollection { address: collection(n), collection: detail }));
        let token = TokenName { collection: collection(n), token_id: text.chars().take(300).collect() };
        add(Change::Mint(Mint { token, owner: OWNER.to_vec(), uri: text.clone(), ..Mint::default() }));
    }
    let token = TokenName { collection: collection(0), token_id: "long".to_owned() };
    let (owner, outcome) = (OWNER.to_vec(), Outcome::TooLong.into());
    let mint = Change::Mint(Mint { token, owner, outcome, ..Mint::default() });
    entries.push(Entry { time: 1, tx: 0, change: Some(mint) });
    for (ordinal, entry) in (0..).zip(entries) {
        record(&mut txn, &Place::of_event(1, ordinal), entry).unwrap();
    }
    let (batch, _) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();
    store
}

/// The pages that show the texts.
fn pages() -> Vec<String> {
    let owner = Account::from_bytes(&OWNER).unwrap().to_bech32("init");
    let mut pages = vec![
        "/".to_owned(),
        "/blocks".to_owned(),
        "/block/1".to_owned(),
        "/txs".to_owned(),
        "/collections".to_owned(),
        format!("/account/{owner}"),
        format!("/account/{owner}?tab=nfts"),
        format!("/account/{owner}?tab=balances&day=x"),
        format!("/account/{owner}?tab=transfers&token=%3Cb%3E&kind=%22"),
        "/tokens?search=%3Cb%3E&type=%22".to_owned(),
    ];
    for (n, text) in texts().iter().enumerate() {
        let encoded = percent_encode(&text.as_bytes()[..text.len().min(200)], NON_ALPHANUMERIC).to_string();
        let address = Account::from_bytes(&collection(n)).unwrap().to_hex();
        pages.push(format!(
            "/tx/{}",
            chain::hash::to_hex(&[u8::try_from(n).unwrap() + 0xc0; 32]).to_uppercase()
        ));
        pages.push(format!("/collection/{address}"));
        for target in [
            "/search?q=",
            "/txs?msgs=",
            "/collections?name=",
            "/account/",
            "/block/",
            "/tx/",
            "/holders?denom=",
        ] {
            if !encoded.is_empty() || target.ends_with('=') {
                pages.push(format!("{target}{encoded}"));
            }
        }
        pages.push(format!("/token/{address}?id={encoded}"));
    }
    pages
}

#[tokio::test]
async fn hostile_text_never_becomes_an_element_an_attribute_or_a_link() {
    let store = hostile();
    let site = Site::over(store, None);
    for path in pages() {
        let answer = site.get(&path).await;
        if answer.status.is_redirection() {
            continue;
        }
        assert!(!answer.status.is_server_error(), "{path}: {}", answer.body);
        let document = answer.document();
        let control = answer.body.chars().find(|c| c.is_control() && !c.is_ascii_whitespace());
        assert_eq!(control, None, "{path}");
        assert!(answer.body.len() < 3_000_000, "{path}: {} bytes", answer.body.len());
        for element in &document.elements {
            let ours = element.get("src").is_some_and(|src| src.starts_with("/assets/"));
            assert!(
                !["script", "img"].contains(&element.name.as_str()) || ours,
                "{path} has a foreign {}",
                element.name
            );
            let foreign = ["b", "i", "style", "iframe"].contains(&element.name.as_str());
            assert!(!foreign, "{path} has a foreign {}", element.name);
            for (name, value) in &element.attributes {
                assert!(!name.starts_with("on"), "{path}: {} {name}={value}", element.name);
                if name == "href" {
                    let is_safe = value.starts_with('/') && !value.starts_with("//") || value == "#main";
                    let is_web = value.starts_with("https://x.test/")
                        && element.get("rel").is_some_and(|rel| rel.contains("noopener"));
                    assert!(is_safe || is_web, "{path} links to {value}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_uri_that_is_too_long_is_shown_as_such() {
    let site = Site::over(hostile(), None);
    let address = Account::from_bytes(&collection(0)).unwrap().to_hex();
    for path in [format!("/token/{address}?id=long"), format!("/collection/{address}")] {
        let answer = site.get(&path).await;
        assert!(answer.document().text.contains("longer than 256 KiB, not indexed"), "{path}");
    }
}

#[tokio::test]
async fn the_page_of_a_token_has_its_image_where_the_operator_lets_it() {
    let gateway = "https://gateway.test/ipfs/QmCid/1.png";
    for (media, images, origin) in [
        ("none", [None; 3], ""),
        ("data", [Some(IMAGES[0]), Some(IMAGES[1]), None], ""),
        ("https://gateway.test/", [Some(IMAGES[0]), Some(IMAGES[1]), Some(gateway)], " https://gateway.test"),
    ] {
        let site = Site::with_media(hostile(), media.parse().unwrap());
        for (n, text) in texts().iter().enumerate() {
            let id: String = text.chars().take(300).collect();
            let id = percent_encode(id.as_bytes(), NON_ALPHANUMERIC);
            let address = Account::from_bytes(&collection(n)).unwrap().to_hex();
            let page = site.get(&format!("/token/{address}?id={id}")).await;
            let policy = page.header("content-security-policy");
            assert!(policy.contains(&format!("img-src 'self' data:{origin};")), "{media}: {policy}");
            let document = page.document();
            let is_image = |src: &str| !src.starts_with("/assets/");
            let images_of = document.elements.iter().filter(|of| of.name == "img");
            let found: Vec<_> = images_of.filter(|of| of.get("src").is_some_and(is_image)).collect();
            let expected = IMAGES.iter().position(|image| image == text).and_then(|image| images[image]);
            let sources: Vec<_> = found.iter().filter_map(|image| image.get("src")).collect();
            assert_eq!(sources, expected.into_iter().collect::<Vec<_>>(), "{media}: {text}");
            assert!(found.iter().all(|image| image.get("onerror").is_none() && image.get("alt").is_some()));
        }
    }
}

#[tokio::test]
async fn hostile_text_is_shown_as_it_is() {
    let site = Site::over(hostile(), None);
    let text = &texts()[0];
    for path in
        ["/collections".to_owned(), format!("/tx/{}", chain::hash::to_hex(&[0xc0; 32]).to_uppercase())]
    {
        let answer = site.get(&path).await;
        assert!(answer.document().text.contains(text.as_str()), "{path}");
        assert!(!answer.body.contains(text.as_str()), "{path}");
        assert!(answer.body.contains("&lt;script&gt;"), "{path}");
    }
}

#[tokio::test]
async fn a_token_with_any_id_has_its_page() {
    let site = Site::over(hostile(), None);
    let links = async |page: &str, start: &str| -> BTreeSet<String> {
        let links = site.get(page).await.document().links();
        links.into_iter().filter(|link| link.starts_with(start)).collect()
    };
    let collections = links("/collections", "/collection/").await;
    assert_eq!(collections.len(), texts().len());
    for page in collections {
        let tokens = links(&page, "/token/").await;
        // The first one has the token with the long URI too.
        let is_first = page.ends_with(&Account::from_bytes(&collection(0)).unwrap().to_hex());
        assert_eq!(tokens.len(), 1 + usize::from(is_first), "{page}");
        for token in tokens {
            assert_eq!(site.get(&token).await.status, 200, "{token}");
        }
    }
}
