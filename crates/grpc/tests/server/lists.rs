//! Pages by cursors, and invalid requests.

use grpc::v1::{
    GetBlockRequest, GetTxRequest, ListTokensByCollectionRequest, ListTxsByAccountRequest, ListTxsRequest,
    PageRequest,
};
use tonic::Code;
use web::limits::Limits;

use crate::indexed::{client, evm, serve};

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
