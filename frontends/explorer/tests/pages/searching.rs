//! The search, and errors as pages.

use crate::site::Site;

#[tokio::test(flavor = "multi_thread")]
async fn a_search_leads_to_the_record_that_it_names() {
    let site = Site::recorded("evm-scenario").await;
    let tx = site.json("/indexer/tx/v1/txs?pagination.limit=1");
    let evm = site.json("/indexer/tx/v1/evm-txs?pagination.limit=1");
    let collection = site.json("/indexer/nft/v1/collections?pagination.limit=1");
    let (hash, evm_hash) =
        (tx["txs"][0]["txhash"].as_str().unwrap(), evm["txs"][0]["transactionHash"].as_str().unwrap());
    let contract = collection["collections"][0]["object_addr"].as_str().unwrap();
    let sender = evm["txs"][0]["from"].as_str().unwrap();
    let upper = format!("0x{}", hash.to_lowercase());
    for (text, page) in [
        ("12", "/block/12".to_owned()),
        ("%20%2012%20", "/block/12".to_owned()),
        (hash, format!("/tx/{hash}")),
        (&upper, format!("/tx/{hash}")),
        (evm_hash, site.get(&format!("/evm-tx/{evm_hash}")).await.header("location").to_owned()),
        (contract, format!("/collection/{contract}")),
        (sender, format!("/account/{sender}")),
        ("zebra", format!("/collection/{contract}")),
    ] {
        let answer = site.get(&format!("/search?q={text}")).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, page.as_str()), "{text}");
        assert_eq!(site.get(&page).await.status, 200, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_a_record_lists_collections_or_nothing() {
    let site = Site::recorded("evm-scenario").await;
    for (text, shown) in
        [("999999999", "Nothing was found"), ("no-such-name", "Nothing was found"), ("", "Enter a height")]
    {
        let answer = site.get(&format!("/search?q={text}")).await;
        assert_eq!(answer.status, 200, "{text}");
        assert!(answer.document().text.contains(shown), "{text}");
    }
    let long = site.get(&format!("/search?q={}", "x".repeat(201))).await;
    assert_eq!(long.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_a_page_with_the_status_and_the_message_of_the_json() {
    let site = Site::recorded("wasm-scenario").await;
    for (page, request) in [
        ("/block/999999", "/indexer/block/v1/blocks/999999"),
        ("/block/x", "/indexer/block/v1/blocks/x"),
        ("/tx/00", "/indexer/tx/v1/txs/00"),
        ("/evm-txs", "/indexer/tx/v1/evm-txs"),
        ("/account/nobody", "/indexer/tx/v1/txs/by_account/nobody"),
        ("/collection/0x99", "/indexer/nft/v1/collections/0x99"),
        ("/txs?pagination.key=!!", "/indexer/tx/v1/txs?pagination.key=!!"),
        ("/holders?denom=x", "/indexer/richlist/v1/x"),
    ] {
        let error = site.app.read(request).unwrap_err();
        let answer = site.get(page).await;
        assert_eq!(answer.status, error.status(), "{page}");
        let document = answer.document();
        // The codes in brackets are for programs.
        let message = error.message().rsplit_once("] ").map_or(error.message(), |(_, message)| message);
        assert!(document.text.contains(message), "{page}: {}", document.text);
        assert!(!document.text.contains('['), "{page}: {}", document.text);
        assert_eq!((document.errors.len(), answer.header("cache-control")), (0, "no-store"), "{page}");
    }
}
