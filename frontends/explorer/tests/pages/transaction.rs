//! The page of a transaction: one address for both halves, with what it did, moved, and why it failed.

use schema::ledger::LEDGER;
use schema::packets::PACKETS;
use serde_json::Value;

use crate::dom::Document;
use crate::site::Site;

/// The page at `path`.
async fn read(site: &Site, path: &str) -> Document {
    let answer = site.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    let document = answer.document();
    assert_eq!(document.errors, [""; 0], "{path}");
    document
}

/// The first transaction with a message of this type whose record passes.
fn first(site: &Site, kind: &str, passes: impl Fn(&Value) -> bool) -> Value {
    let page = site.json(&format!("/indexer/tx/v1/txs?msgs={kind}&pagination.limit=200"));
    let found = page["txs"].as_array().unwrap().iter().find(|tx| passes(tx)).cloned();
    found.unwrap_or_else(|| panic!("no {kind}"))
}

fn path(tx: &Value) -> String {
    format!("/tx/{}", tx["txhash"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_hashes_of_an_evm_transaction_lead_to_one_page_with_both_halves() {
    let site = Site::indexed("evm-scenario", &[&LEDGER]).await;
    let receipts = site.json("/indexer/tx/v1/evm-txs?pagination.limit=60");
    let mut signed = 0;
    for receipt in receipts["txs"].as_array().unwrap() {
        let hash = receipt["transactionHash"].as_str().unwrap();
        let mut canonical = None;
        for start in [format!("/tx/{hash}"), format!("/evm-tx/{hash}"), format!("/search?q={hash}")] {
            let answer = site.get(&start).await;
            assert_eq!(answer.status, 303, "{start}");
            let location = answer.header("location").to_owned();
            assert_eq!(canonical.get_or_insert_with(|| location.clone()), &location, "{start}");
        }
        let page = canonical.unwrap();
        let cosmos = page.strip_prefix("/tx/").unwrap().to_owned();
        for spelling in [cosmos.to_lowercase(), format!("0x{cosmos}")] {
            assert_eq!(site.get(&format!("/tx/{spelling}")).await.header("location"), page, "{spelling}");
        }
        let document = read(&site, &page).await;
        assert!(document.text.contains(hash) && document.text.contains(&cosmos), "{page}");
        let links = document.links();
        assert!(links.contains(&format!("/indexer/tx/v1/evm-txs/{hash}")), "{page}: {links:?}");
        if receipt["from"] == "0x0000000000000000000000000000000000000000" {
            assert!(!document.text.contains("0x0000…") && !document.text.contains("Nonce"), "{page}");
        } else {
            signed += 1;
            assert!(document.text.contains("Nonce"), "{page}: {}", document.text);
        }
    }
    assert!(signed > 10, "{signed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_line_says_what_a_transaction_did() {
    let site = Site::indexed("evm-scenario", &[&LEDGER]).await;
    let succeeded = |tx: &Value| tx["code"] == 0;
    let send = first(&site, "cosmos.bank.v1beta1.MsgSend", succeeded);
    let document = read(&site, &path(&send)).await;
    assert!(document.text.contains(" sent "), "{}", document.text);
    assert!(document.text.contains("Token transfers"), "{}", document.text);

    // A contract that was paid, without a call.
    let paid = first(&site, "minievm.evm.v1.MsgCall", |tx| {
        let message = &tx["tx"]["body"]["messages"][0];
        succeeded(tx) && message["input"] == "0x" && message["value"] != "0"
    });
    let document = read(&site, &path(&paid)).await;
    assert!(document.text.contains(" sent "), "{}", document.text);

    let created = first(&site, "minievm.evm.v1.MsgCreate", succeeded);
    let text = read(&site, &path(&created)).await.text;
    assert!(text.contains(" created the contract ") || text.contains(" created a contract"), "{text}");

    let failed = first(&site, "minievm.evm.v1.MsgCall", |tx| {
        tx["raw_log"].as_str().is_some_and(|log| log.contains("exceeds balance"))
    });
    let text = read(&site, &path(&failed)).await.text;
    assert!(text.contains("Failed   ERC20: transfer amount exceeds balance"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_and_transfers_between_chains_are_named() {
    let site = Site::indexed("l1-l2/l2", &[&LEDGER, &PACKETS]).await;
    for (kind, words) in [
        ("ibc.applications.transfer.v1.MsgTransfer", vec![" over ", "packet"]),
        ("ibc.core.channel.v1.MsgRecvPacket", vec!["Packet ", " was received"]),
        ("ibc.core.channel.v1.MsgAcknowledgement", vec!["Packet ", " was acknowledged"]),
        ("ibc.core.channel.v1.MsgTimeout", vec!["Packet ", " timed out"]),
        ("opinit.opchild.v1.MsgInitiateTokenWithdrawal", vec![" withdrew ", " on the layer one"]),
        ("opinit.opchild.v1.MsgFinalizeTokenDeposit", vec!["Deposit ", " arrived: "]),
    ] {
        let tx = first(&site, kind, |tx| tx["code"] == 0);
        let document = read(&site, &path(&tx)).await;
        for word in words {
            assert!(document.text.contains(word), "{kind}: no {word}: {}", document.text);
        }
        if kind.contains("channel") {
            let links = document.links();
            assert!(links.iter().any(|link| link.starts_with("/ibc/")), "{kind}: {links:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_ethereum_that_a_message_only_carries_has_a_sentence() {
    let site = Site::indexed("cosmos-evm", &[&LEDGER]).await;
    let list = site.json("/indexer/tx/v1/txs?pagination.limit=1000");
    let is_carried = |tx: &&Value| {
        tx["tx"]["body"]["messages"][0]["@type"] == "/cosmos.evm.vm.v1.MsgEthereumTx" && tx["code"] == 0
    };
    let (mut read_pages, mut created, mut sent) = (0, 0, 0);
    for tx in list["txs"].as_array().unwrap().iter().filter(is_carried).step_by(4) {
        let text = read(&site, &path(tx)).await.text;
        assert!(!text.contains(": ethereum tx."), "{text}");
        read_pages += 1;
        created += usize::from(text.contains(" created the contract "));
        sent += usize::from(text.contains(" sent "));
    }
    assert!(
        read_pages > 80 && created > 0 && sent > 10,
        "{read_pages} pages, {created} created, {sent} sent"
    );
}
