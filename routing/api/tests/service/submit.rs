//! The relay of signed transactions, with those of the recorded chains.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Timestamp;
use proto::tx::{Message as _, TxRaw};
use replay::Call;
use routing_api::Config;
use serde_json::{Value, json};

use crate::client::recorded::{Chains, L1, L2, PLAYED_L1, example};
use crate::client::{ASK, Client};

const SUBMIT: &str = "/v2/tx/submit";
/// A transfer to the rollup, and the height of its block.
const HASH: &str = "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9";
const HEIGHT: u64 = 525;

fn relaying(registry: registry::Registry) -> Client {
    Client::with(registry, Config { query_timeout: ASK, submit: true, ..Config::default() })
}

/// The signed bytes of the transfer, in base64.
fn signed() -> String {
    let height = PLAYED_L1.height(HEIGHT).unwrap();
    let raw = height.raw_txs().unwrap();
    let is_it = |raw: &&std::borrow::Cow<'_, str>| {
        let bytes = STANDARD.decode(raw.as_bytes()).unwrap();
        chain::hash::to_hex(&chain::hash::tx_hash(&bytes)).eq_ignore_ascii_case(HASH)
    };
    raw.iter().find(is_it).unwrap().clone().into_owned()
}

async fn poll(client: &Client) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let now = Timestamp::from_unix_nanos(i64::try_from(now).unwrap());
    client.service().tracker().poll_due(now).await.unwrap();
}

#[tokio::test]
async fn a_signed_transaction_is_relayed_unchanged_and_followed_to_its_end() {
    let chains = Chains::start().await;
    chains.l1.show(HEIGHT - 1).unwrap();
    let client = relaying(chains.registry());
    let answer = client.post(SUBMIT, &json!({ "chain_id": L1, "tx": signed() })).await.ok();
    assert_eq!(answer["tx_hash"], HASH);
    assert_eq!(answer["explorer_link"], format!("https://explorer.example.org/{L1}/txs/{HASH}"));
    assert_eq!(chains.l1.call_count(Call::BroadcastTx), 1);
    let status = format!("/v2/tx/status?chain_id={L1}&tx_hash={HASH}");
    assert_eq!(client.get(&status).await.ok()["state"], "STATE_SUBMITTED");

    // The same bytes again: the mempool has them.
    chains.l1.show(PLAYED_L1.last()).unwrap();
    client.post(SUBMIT, &json!({ "chain_id": L1, "tx": signed() })).await.ok();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        poll(&client).await;
        let state = client.get(&status).await.ok()["state"].clone();
        if state == "STATE_COMPLETED_SUCCESS" {
            break;
        }
        assert!(Instant::now() < deadline, "{state}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_is_no_signed_transaction_of_the_chain_is_not_relayed() {
    let chains = Chains::start().await;
    let client = relaying(chains.registry());
    let tx = TxRaw::decode(STANDARD.decode(signed()).unwrap().as_slice()).unwrap();
    let encode = |tx: &TxRaw| STANDARD.encode(tx.encode_to_vec());
    let unsigned = encode(&TxRaw { signatures: Vec::new(), ..tx.clone() });
    let without_message = encode(&TxRaw { body_bytes: Vec::new(), ..tx.clone() });
    let changed = encode(&TxRaw { signatures: vec![vec![7; 65]], ..tx });
    let large = STANDARD.encode(vec![0; (512 << 10) + 1]);
    let signed = signed();
    let cases: [(&str, &str, (u16, u64), &str); 9] = [
        ("nowhere-1", &signed, (404, 5), "chain ID not supported"),
        (
            "31337",
            &signed,
            (400, 3),
            "invalid chain_id: `31337` is an EVM chain, on which the wallet broadcasts",
        ),
        (L1, "?", (400, 3), "tx must be base64 encoded"),
        (L1, "AAAA", (400, 3), "invalid tx: no cosmos.tx.v1beta1.TxRaw ("),
        (L1, "CgA=", (400, 3), "invalid tx: it has no message"),
        (L1, &without_message, (400, 3), "invalid tx: it has no message"),
        (L1, &unsigned, (400, 3), "invalid tx: 0 signatures of 1 signers"),
        (L1, &large, (400, 3), "invalid tx: 524289 bytes, at most 524288"),
        // The log of the node's CheckTx.
        (L1, &changed, (400, 3), "the recording has no such transaction: invalid request"),
    ];
    for (chain, tx, code, why) in cases {
        let (status, grpc, message) =
            client.post(SUBMIT, &json!({ "chain_id": chain, "tx": tx })).await.refusal();
        assert_eq!((status, grpc), code, "{message}");
        assert!(message.starts_with(why), "{message}");
    }
    assert_eq!(chains.l1.call_count(Call::BroadcastTx), 1);
    for name in ["chain_id", "tx"] {
        let mut ask = json!({ "chain_id": L1, "tx": signed });
        ask[name] = Value::Null;
        assert_eq!(client.post(SUBMIT, &ask).await.refusal().1, 3);
    }
}

#[tokio::test]
async fn nothing_is_relayed_to_a_node_of_another_chain_or_without_the_setting() {
    let chains = Chains::start().await;
    let ask = json!({ "chain_id": L2, "tx": signed() });
    let swapped = example().with_endpoints(|_| {
        Some(registry::Endpoints { rpc: vec![chains.l1.comet_url()], ..registry::Endpoints::default() })
    });
    let (status, code, message) = relaying(swapped).post(SUBMIT, &ask).await.refusal();
    assert_eq!((status, code), (503, 14));
    assert_eq!(message, "no node of chain `e2e-l2-1` accepted the transaction");
    assert_eq!(chains.l1.call_count(Call::BroadcastTx), 0);
    assert_eq!(chains.client().post(SUBMIT, &ask).await.refusal().0, 501);
    assert_eq!(chains.l2.call_count(Call::BroadcastTx), 0);
}

#[tokio::test]
async fn a_node_that_is_down_is_an_error_of_which_the_user_can_try_again() {
    let chains = Chains::start().await;
    let client = relaying(chains.registry());
    chains.l1.down();
    let (status, _, message) =
        client.post(SUBMIT, &json!({ "chain_id": L1, "tx": signed() })).await.refusal();
    assert_eq!(status, 503, "{message}");
}
