//! Pages by cursors, and invalid requests.

use std::sync::Arc;

use grpc::v1::{
    GetBlockRequest, GetTxRequest, ListTokensByCollectionRequest, ListTxsByAccountRequest, ListTxsRequest,
    PageRequest,
};
use tonic::Code;
use web::app::App;
use web::limits::Limits;

use crate::indexed::{client, evm, indexer, serve};

#[expect(clippy::unnecessary_wraps, reason = "the type of the member")]
fn page(key: &str, limit: u32, reverse: bool) -> Option<PageRequest> {
    Some(PageRequest { key: key.to_owned(), limit, reverse: Some(reverse), ..PageRequest::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_lead_through_a_list_and_back() {
    let server = serve(evm().await, Limits::default());
    let mut client = client(&server).await;
    let mut txs = async |pagination| {
        let request = ListTxsRequest { pagination, msgs: Vec::new() };
        let response = client.list_txs(request).await.unwrap().into_inner();
        let hashes: Vec<_> = response.txs.into_iter().map(|tx| tx.txhash).collect();
        (hashes, response.pagination.unwrap())
    };
    let (all, whole) = txs(page("", 1000, false)).await;
    assert_eq!((all.len() as u64, whole.next_key.as_str()), (whole.total, ""));
    assert!(all.len() > 40, "{} transactions make no pages", all.len());

    let (mut forth, mut pages, mut key) = (Vec::new(), Vec::new(), String::new());
    loop {
        let (hashes, place) = txs(page(&key, 17, false)).await;
        assert_eq!(place.total, whole.total);
        assert_eq!(place.previous_key.is_empty(), forth.is_empty());
        forth.extend(hashes.clone());
        pages.push(hashes);
        if place.next_key.is_empty() {
            key = place.previous_key;
            break;
        }
        key = place.next_key;
    }
    assert_eq!(forth, all);
    pages.pop();
    while let Some(expected) = pages.pop() {
        let (hashes, place) = txs(page(&key, 17, false)).await;
        assert_eq!(hashes, expected);
        key = place.previous_key;
    }
    assert_eq!(key, "");

    let (newest, _) = txs(None).await;
    assert_eq!(newest.first(), all.last(), "the newest is first by default");
    let uncounted = PageRequest { offset: 2, limit: 1, count_total: Some(false), ..PageRequest::default() };
    let (third, place) = txs(Some(uncounted)).await;
    assert_eq!((third.as_slice(), place.total), (&newest[2..3], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_mean_the_same_as_in_the_json_interface() {
    let app = evm().await;
    let server = serve(Arc::clone(&app), Limits::default());
    let mut client = client(&server).await;
    for (limit, offset, reads) in [
        (0, 0, "pagination.limit=0"),
        (7, -1, "pagination.limit=7&pagination.offset=-1"),
        (7, 3, "pagination.limit=7&pagination.offset=3"),
        (u32::MAX, 0, "pagination.limit=4294967295"),
    ] {
        let pagination = Some(PageRequest { limit, offset, ..PageRequest::default() });
        let response = client.list_txs(ListTxsRequest { pagination, msgs: Vec::new() }).await;
        // A limit of 0 is how protobuf writes an absent one.
        let reads = if limit == 0 { reads.replace("pagination.limit=0", "") } else { reads.to_owned() };
        match (response, app.read(&format!("/indexer/tx/v1/txs?{reads}"))) {
            (Ok(message), Ok(reply)) => {
                let json: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
                let hashes: Vec<_> = message
                    .into_inner()
                    .txs
                    .into_iter()
                    .map(|tx| serde_json::Value::from(tx.txhash))
                    .collect();
                let txs = json["txs"].as_array().unwrap();
                assert_eq!(hashes, txs.iter().map(|tx| tx["txhash"].clone()).collect::<Vec<_>>(), "{reads}");
                assert_eq!(hashes.len(), if limit == 0 { 100 } else { 7 }, "{reads}");
            }
            (Err(status), Err(error)) => assert_eq!(status.message(), error.message(), "{reads}"),
            (response, _) => panic!("{reads}: only one of them refuses it: {response:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_cut_by_bytes_with_a_cursor_to_the_rest() {
    let indexer = indexer("evm-scenario").await.with_page_bytes(100_000);
    let server = serve(Arc::new(App::new(indexer, query::ENDPOINTS).unwrap()), Limits::default());
    let mut client = client(&server).await;
    let (mut key, mut seen, mut messages) = (String::new(), Vec::new(), 0);
    let total = loop {
        let request = ListTxsRequest { pagination: page(&key, 1000, false), msgs: Vec::new() };
        let message = client.list_txs(request).await.unwrap().into_inner();
        assert!(prost::Message::encoded_len(&message) < 200_000 || message.txs.len() == 1);
        seen.extend(message.txs.into_iter().map(|tx| tx.txhash));
        messages += 1;
        let place = message.pagination.unwrap();
        if place.next_key.is_empty() {
            break place.total;
        }
        key = place.next_key;
    };
    assert!(messages > 3, "{messages}");
    assert_eq!(seen.len() as u64, total, "each transaction is there once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_which_there_is_no_room_is_refused_and_smaller_ones_are_sent() {
    let server = serve(evm().await, Limits { response_bytes: 200_000, ..Limits::default() });
    let mut client = client(&server).await;
    let request = |limit| ListTxsRequest { pagination: page("", limit, true), msgs: Vec::new() };
    let status = client.list_txs(request(1000)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("the responses that others have not read leave 200000"), "{status}");
    for _ in 0..20 {
        assert_eq!(client.list_txs(request(5)).await.unwrap().into_inner().txs.len(), 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_names_the_parameter_and_the_value() {
    let server = serve(evm().await, Limits::default());
    let mut client = client(&server).await;

    let too_many = ListTxsRequest { pagination: page("", 1001, true), msgs: Vec::new() };
    let status = client.list_txs(too_many).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "pagination.limit must be between 1 and 1000: got 1001");

    let status = client.get_block(GetBlockRequest { height: 1 << 40 }).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("1099511627776"), "{status}");

    // The characters have a meaning in a target; the next one would name another endpoint.
    let status = client.get_tx(GetTxRequest { tx_hash: "by_height/1?a&b#c".to_owned() }).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("`by_height/1?a&b#c`"), "{status}");
    let empty = ListTxsByAccountRequest::default();
    let status = client.list_txs_by_account(empty).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("account is empty"), "{status}");

    let order = ListTokensByCollectionRequest {
        collection_addr: "0x1".to_owned(),
        order_by: 7,
        ..ListTokensByCollectionRequest::default()
    };
    let status = client.list_tokens_by_collection(order).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("order_by value 7"), "{status}");
}
