//! Paths of wallets and of other explorers, and paths that do not exist.

use serde_json::Value;

use crate::site::Site;

/// Follows redirects, at most three.
async fn end(site: &Site, path: &str) -> String {
    let mut path = path.to_owned();
    for _ in 0..3 {
        let answer = site.get(&path).await;
        if !answer.status.is_redirection() {
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            return path;
        }
        answer.header("location").clone_into(&mut path);
    }
    panic!("{path} is redirected again and again");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_of_wallets_and_of_other_explorers_lead_to_the_page_of_the_record() {
    let site = Site::recorded("evm-scenario").await;
    let tx = text(&site.json("/indexer/tx/v1/txs?pagination.limit=1")["txs"][0]["txhash"]);
    let receipt = site.json("/indexer/tx/v1/evm-txs?pagination.limit=1")["txs"][0].take();
    let (evm, sender) = (text(&receipt["transactionHash"]), text(&receipt["from"]));
    let height = u64::from_str_radix(&text(&receipt["blockNumber"])[2..], 16).unwrap();
    let block = site.json(&format!("/indexer/block/v1/blocks/{height}"));
    let block_hash = text(&block["block"]["hash"]);
    let of_block = format!("/block/{height}");
    let collection =
        text(&site.json("/indexer/nft/v1/collections?pagination.limit=1")["collections"][0]["object_addr"]);
    let tokens = site.json(&format!("/indexer/nft/v1/tokens/by_collection/{collection}?pagination.limit=1"));
    let id = text(&tokens["tokens"][0]["nft"]["token_id"]);
    let token = format!("/token/{collection}?id={id}");
    // A contract with holders, and one without either.
    let erc20 = "0x042add9e80f7a23ab71d5e1d392af1d3928b7d05";
    let of_tx = format!("/tx/{tx}");
    // Both halves have one page.
    let of_evm = end(&site, &format!("/evm-tx/{evm}")).await;
    assert!(of_evm.starts_with("/tx/") && !of_evm.contains(evm.trim_start_matches("0x")), "{of_evm}");
    let (lower, bare) = (tx.to_lowercase(), evm.trim_start_matches("0x").to_uppercase());
    let account = format!("/account/{sender}");
    let chain = "e2e-evm-1";
    for (path, page) in [
        // EIP-3091.
        (format!("/tx/{evm}"), of_evm.clone()),
        (format!("/tx/{bare}"), of_evm.clone()),
        (format!("/tx/0X{bare}"), of_evm.clone()),
        (format!("/tx/0x{lower}"), of_tx.clone()),
        (format!("/address/{sender}"), account.clone()),
        (format!("/token/{collection}"), format!("/collection/{collection}")),
        (format!("/token/{erc20}"), format!("/holders?denom={erc20}")),
        (format!("/token/{sender}"), account.clone()),
        (format!("/block/{height:#x}"), of_block.clone()),
        (format!("/block/0X{height:X}"), of_block.clone()),
        (format!("/block/{block_hash}"), of_block.clone()),
        (format!("/block/0x{}", block_hash.to_lowercase()), of_block.clone()),
        (format!("/block/{}", text(&receipt["blockHash"])), of_block.clone()),
        // Etherscan and Blockscout.
        (format!("/nft/{collection}/{id}"), token.clone()),
        (format!("/token/{collection}/instance/{id}"), token.clone()),
        (format!("/address/{sender}/transactions"), account.clone()),
        (format!("/block/{height}/txs"), of_block.clone()),
        (format!("/tx/{evm}/logs"), of_evm.clone()),
        // Celatone, Big Dipper, Mintscan.
        (format!("/txs/{tx}"), of_tx.clone()),
        (format!("/TXS/{tx}/"), of_tx.clone()),
        (format!("/transactions/{tx}"), of_tx.clone()),
        (format!("/evm-txs/{evm}"), of_evm.clone()),
        (format!("/evm-tx/{tx}"), of_tx.clone()),
        (format!("/accounts/{sender}"), account.clone()),
        (format!("/evm-contracts/{erc20}"), format!("/account/{erc20}")),
        (format!("/blocks/{height}"), of_block.clone()),
        (format!("/nft-collections/{collection}"), format!("/collection/{collection}")),
        (format!("/nft-collections/{collection}/nft/{id}"), token.clone()),
        (format!("/token/{collection}?a={id}"), token.clone()),
        (format!("/tokens/{collection}?a={id}"), token.clone()),
        (format!("/{chain}/token/{collection}?a={id}"), token.clone()),
        (format!("/token/{collection}?a={sender}"), format!("/collection/{collection}")),
        (format!("/token/{erc20}?a={sender}"), format!("/holders?denom={erc20}")),
        (format!("/txs?a={sender}"), account.clone()),
        (format!("/txs?block={height}"), of_block.clone()),
        (format!("/block/countdown/{height}"), of_block.clone()),
        (format!("/blocks/countdown/{height}"), of_block.clone()),
        (format!("/search-results?q={height}"), of_block.clone()),
        (format!("/{chain}/search?q={evm}"), of_evm.clone()),
        ("/nft-collections".to_owned(), "/collections".to_owned()),
        (format!("/{chain}/txs/{tx}"), of_tx.clone()),
        (format!("/{chain}/evm-txs"), "/evm-txs".to_owned()),
        (format!("/{chain}"), "/".to_owned()),
    ] {
        assert_eq!(end(&site, &path).await, page, "{path}");
    }
    // What is found nowhere is not found here either, with the hash that was asked for.
    let none = "ab".repeat(32);
    for path in [format!("/tx/{none}"), format!("/block/0x{none}"), format!("/evm-tx/0x{none}")] {
        let answer = site.get(&path).await;
        assert_eq!((answer.status.as_u16(), answer.body.contains(&none)), (404, true), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_a_browser_gets_an_error_in_json() {
    let site = Site::recorded("evm-scenario").await;
    for (path, status) in [
        ("/tx/%ff", 400),
        ("/tx/%", 400),
        ("/tx/%zz", 400),
        ("/block/%c3%28", 400),
        ("/evm-tx/%ff", 400),
        ("/account/%FF", 400),
        ("/collection/%ff", 400),
        ("/token/%ff", 400),
        ("/token/0x01?id=%ff", 400),
        ("/search?q=%ff", 400),
        ("/holders?denom=%e0%80", 400),
        ("/txs?msgs=%ff", 400),
        ("/blocks?pagination.key=%", 400),
        ("/txs/%ff", 404),
        ("/%ff", 404),
        ("/no/%ff", 404),
        // Words that no record has as its name.
        ("/blocks/countdown", 404),
        ("/blocks/forked", 404),
        ("/txs/pending", 404),
        ("/accounts/2", 404),
        ("/tokens/all", 404),
        ("/nfts/latest", 404),
        ("/tx/%00", 400),
        ("/no%00page", 404),
    ] {
        let page = site.browse(path).await;
        let (status_of, kind) = (page.status.as_u16(), page.header("content-type"));
        assert_eq!((status_of, kind), (status, "text/html; charset=utf-8"), "{path}");
        assert!(page.header("content-security-policy").contains("default-src 'none'"), "{path}");
        assert!(!page.body.contains('\0'), "{path}");
    }
    // A height that is yet to come has a page when it comes.
    let future = site.browse("/blocks/countdown/99999").await;
    assert_eq!(future.header("location"), "/block/99999");
    assert_eq!(site.get("/tx/%ff").await.header("content-type"), "application/json");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_a_chain_without_evm_is_found_under_the_paths_of_wallets_too() {
    let site = Site::recorded("move-scenario").await;
    let tx = text(&site.json("/indexer/tx/v1/txs?pagination.limit=1")["txs"][0]["txhash"]);
    for path in [format!("/evm-tx/0x{tx}"), format!("/evm-txs/{tx}"), format!("/txs/{tx}")] {
        assert_eq!(end(&site, &path).await, format!("/tx/{tx}"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_path_is_a_page_for_a_browser_and_json_for_a_program() {
    let site = Site::recorded("wasm-scenario").await;
    for path in ["/no-such-page", "/indexer/no/such", "/v2/none", "/a/b/c/d/e/f/g/h", "/<b>", "/accounts"] {
        let path = path.replace('<', "%3C").replace('>', "%3E");
        let json = site.get(&path).await;
        assert_eq!((json.status.as_u16(), json.header("content-type")), (404, "application/json"), "{path}");
        let page = site.browse(&path).await;
        assert_eq!(
            (page.status.as_u16(), page.header("content-type")),
            (404, "text/html; charset=utf-8"),
            "{path}"
        );
        assert!(page.header("content-security-policy").contains("default-src 'none'"), "{path}");
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
        let document = page.document();
        assert_eq!(document.errors, [""; 0], "{path}");
        assert!(document.text.contains("There is no page at /"), "{path}: {}", document.text);
        assert!(
            document.links().contains(&"/".to_owned()) && document.links().contains(&"/blocks".to_owned())
        );
    }
    // The errors of the API are for programs, whoever asks.
    let error = site.browse("/indexer/block/v1/blocks/999999").await;
    assert_eq!((error.status.as_u16(), error.header("content-type")), (404, "application/json"));
}
