//! Streams: rows, cursors, reorganisations and ends.

use std::sync::Arc;

use grpc::v1::{
    Block, ListBlocksRequest, ListTransfersByAccountRequest, ListTxsByAccountRequest, PageRequest, Reorg,
    StreamStart, WatchBlocksRequest, WatchEvmTxsRequest, WatchTransfersRequest, WatchTxsRequest,
    watch_blocks_response, watch_transfers_response, watch_txs_response,
};
use prost_reflect::{DescriptorPool, MethodDescriptor};
use replay::{Options, Recording};
use schema::rewind::rewind;
use store::MemStore;
use testkit::{indexed, recording};
use tonic::{Code, Status, Streaming};
use web::app::App;
use web::limits::Limits;
use web::serve::server::Server;

use crate::indexed::{Client, PATIENCE, client, connect, eventually, evm, index, serve};

/// An index of the recorded EVM chain up to a height, and what is left of it.
struct Growing {
    recording: Arc<Recording>,
    store: Arc<MemStore>,
    server: Server,
}

impl Growing {
    async fn up_to(height: u64) -> Self {
        Self::with(height, |recording, options, store| async move {
            indexed::index(recording, options, store as _).await.unwrap();
        })
        .await
    }

    async fn with<F: Future<Output = ()>>(
        height: u64,
        index: impl Fn(Arc<Recording>, Options, Arc<MemStore>) -> F,
    ) -> Self {
        let recording = Arc::new(Recording::open(&recording("evm-scenario")).unwrap());
        let store = Arc::new(MemStore::new());
        let options = Options { up_to: Some(height), ..Options::default() };
        index(Arc::clone(&recording), options, Arc::clone(&store)).await;
        let indexer = indexed::indexer(Arc::clone(&store) as _).unwrap();
        let server = serve(Arc::new(App::new(indexer, query::ENDPOINTS).unwrap()), Limits::default());
        Self { recording, store, server }
    }

    async fn grow(&self) {
        let store = Arc::clone(&self.store);
        indexed::index(Arc::clone(&self.recording), Options::default(), store as _).await.unwrap();
    }
}

async fn next<T>(stream: &mut Streaming<T>) -> Result<T, Status> {
    tokio::time::timeout(PATIENCE, stream.message()).await.unwrap().map(|message| message.unwrap())
}

async fn watch_blocks(client: &mut Client, cursor: &str) -> Streaming<grpc::v1::WatchBlocksResponse> {
    let request = WatchBlocksRequest { cursor: cursor.to_owned() };
    client.watch_blocks(request).await.unwrap().into_inner()
}

async fn blocks_after(client: &mut Client, height: u64) -> Vec<Block> {
    let page = PageRequest { limit: 1000, reverse: Some(false), ..PageRequest::default() };
    let all = client.list_blocks(ListBlocksRequest { pagination: Some(page) }).await.unwrap().into_inner();
    all.blocks.into_iter().filter(|block| block.height > height).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn later_movements_of_an_account_arrive_as_in_its_list() {
    use watch_transfers_response::Event;
    let with_movements = |recording, options, store| async move { index(recording, options, &store).await };
    let growing = Growing::with(20, with_movements).await;
    let mut client = client(&growing.server).await;
    let (account, kind) =
        ("init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw".to_owned(), vec!["transfer".to_owned()]);
    let direction = vec!["in".to_owned()];
    let watched = WatchTransfersRequest {
        account: account.clone(),
        kind: kind.clone(),
        direction: direction.clone(),
        ..WatchTransfersRequest::default()
    };
    let mut stream = client.watch_transfers(watched.clone()).await.unwrap().into_inner();
    assert_eq!(next(&mut stream).await.unwrap().event, Some(Event::Start(StreamStart { height: 20 })));
    with_movements(Arc::clone(&growing.recording), Options::default(), Arc::clone(&growing.store)).await;
    let page = PageRequest { limit: 1000, reverse: Some(false), ..PageRequest::default() };
    let list = ListTransfersByAccountRequest {
        account,
        kind,
        direction,
        from_height: 21,
        pagination: Some(page),
        ..ListTransfersByAccountRequest::default()
    };
    let listed = client.list_transfers_by_account(list).await.unwrap().into_inner().transfers;
    assert!(listed.len() >= 3, "{}", listed.len());
    // What the bank calls a contract may be learned between the stream and the list.
    let unnamed = |event| match event {
        Some(Event::Transfer(mut transfer)) => {
            transfer.token.as_mut().unwrap().denom.clear();
            Some(Event::Transfer(transfer))
        }
        other => other,
    };
    let mut cursors = Vec::new();
    for transfer in &listed {
        let message = next(&mut stream).await.unwrap();
        assert_eq!(unnamed(message.event), unnamed(Some(Event::Transfer(transfer.clone()))));
        cursors.push(message.cursor);
    }
    let resumed = WatchTransfersRequest { cursor: cursors.swap_remove(0), ..watched };
    let mut resumed = client.watch_transfers(resumed).await.unwrap().into_inner();
    let second = next(&mut resumed).await.unwrap().event;
    assert_eq!(unnamed(second), unnamed(Some(Event::Transfer(listed[1].clone()))));
}

#[tokio::test(flavor = "multi_thread")]
async fn later_blocks_arrive_and_every_cursor_goes_on_after_its_block() {
    use watch_blocks_response::Event;
    let growing = Growing::up_to(200).await;
    let mut client = client(&growing.server).await;
    let mut stream = watch_blocks(&mut client, "").await;
    let start = next(&mut stream).await.unwrap();
    assert_eq!(start.event, Some(Event::Start(StreamStart { height: 200 })));
    growing.grow().await;

    let expected = blocks_after(&mut client, 200).await;
    assert_eq!(expected.len() as u64, growing.recording.last() - 200);
    let mut cursors = vec![start.cursor];
    for block in &expected {
        let message = next(&mut stream).await.unwrap();
        assert_eq!(message.event.as_ref(), Some(&Event::Block(block.clone())));
        cursors.push(message.cursor);
    }
    for (cursor, block) in cursors.iter().zip(&expected) {
        let again = next(&mut watch_blocks(&mut client, cursor).await).await.unwrap();
        assert_eq!(again.event, Some(Event::Block(block.clone())));
    }

    // Four blocks back: the block locator of a cursor has this one.
    let to = growing.recording.last() - 4;
    rewind(&*growing.store, to).unwrap();
    let reorg = next(&mut stream).await.unwrap();
    assert_eq!(reorg.event, Some(Event::Reorg(Reorg { height: to })));
    growing.grow().await;
    let again = next(&mut stream).await.unwrap();
    assert_eq!(again.event, Some(Event::Block(expected[expected.len() - 4].clone())));
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_select_the_transactions_of_the_list() {
    use watch_txs_response::Event;
    let growing = Growing::up_to(100).await;
    let mut client = client(&growing.server).await;
    let app = evm().await;
    let newest = app.read("/indexer/tx/v1/evm-txs?pagination.limit=1").unwrap();
    let newest: serde_json::Value = serde_json::from_slice(&newest.body).unwrap();
    let account = newest["txs"][0]["from"].as_str().unwrap().to_owned();
    let request = WatchTxsRequest { account: account.clone(), is_signer: true, ..WatchTxsRequest::default() };
    let mut stream = client.watch_txs(request).await.unwrap().into_inner();
    assert!(matches!(next(&mut stream).await.unwrap().event, Some(Event::Start(_))));
    let request = WatchEvmTxsRequest { account: account.clone(), ..WatchEvmTxsRequest::default() };
    let mut of_evm = client.watch_evm_txs(request).await.unwrap().into_inner();
    next(&mut of_evm).await.unwrap();
    growing.grow().await;

    let page = PageRequest { limit: 1000, reverse: Some(false), ..PageRequest::default() };
    let request = ListTxsByAccountRequest { account, is_signer: true, pagination: Some(page), msgs: vec![] };
    let all = client.list_txs_by_account(request).await.unwrap().into_inner().txs;
    let expected: Vec<_> = all.into_iter().filter(|tx| tx.height > 100).collect();
    assert!(!expected.is_empty());
    for tx in expected {
        assert_eq!(next(&mut stream).await.unwrap().event, Some(Event::Tx(tx)));
    }
    next(&mut of_evm).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_a_status() {
    let server = serve(evm().await, Limits::default());
    let mut client = client(&server).await;
    let request = WatchBlocksRequest { cursor: "!".to_owned() };
    let status = client.watch_blocks(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("last_event_id: !"), "{status}");
    let mut stream = watch_blocks(&mut client, "").await;
    next(&mut stream).await.unwrap();
    let stop = tokio::task::spawn_blocking(move || server.stop());
    let status = next(&mut stream).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unavailable, "the server stops; go on with the last cursor")
    );
    stop.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_have_a_limit_of_their_own() {
    for (limits, code) in [
        (Limits { streams_per_client: 1, ..Limits::default() }, Code::ResourceExhausted),
        (Limits { streams: 1, ..Limits::default() }, Code::Unavailable),
    ] {
        let server = serve(evm().await, limits);
        let mut first = Client::new(connect(&server).await);
        let mut stream = watch_blocks(&mut first, "").await;
        next(&mut stream).await.unwrap();
        let mut other = client(&server).await;
        let watch = async |client: &mut Client| client.watch_blocks(WatchBlocksRequest::default()).await;
        assert_eq!(watch(&mut other).await.unwrap_err().code(), code);
        drop((stream, first));
        eventually(async || watch(&mut other).await.ok()).await;
    }
}

#[test]
fn every_stream_of_the_json_interface_has_an_rpc() {
    let pool = DescriptorPool::decode(grpc::DESCRIPTORS).unwrap();
    let service = pool.get_service_by_name("cairn.index.v1.IndexService").unwrap();
    let rpcs = service.methods().filter(MethodDescriptor::is_server_streaming).count();
    let endpoints = query::ENDPOINTS.iter().copied().flatten();
    assert_eq!(rpcs, endpoints.filter(|of| of.path.starts_with("/indexer/stream/")).count());
}
