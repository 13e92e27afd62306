//! Recorded chains indexed once for all tests, and servers of them.

use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use chain::metadata::{Metadata, Said};
use grpc::v1::index_service_client::IndexServiceClient;
use query::Indexer;
use replay::{Options, Recording};
use schema::bridge::BRIDGE;
use schema::bridge_output::{self, L1Proposal, L1Replies};
use schema::index_writer::{Rest, Writer};
use schema::ledger::LEDGER;
use schema::packets::PACKETS;
use schema::tokens::{self, Described, TOKENS};
use schema::undo::Horizon;
use store::{MemStore, Store};
use testkit::{indexed, recording};
use tokio::sync::OnceCell;
use tonic::transport::{Channel, Endpoint};
use web::app::App;
use web::limits::Limits;
use web::serve::server::Server;

/// Far longer than anything takes here: only a failing test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) type Client = IndexServiceClient<Channel>;

/// The JSON API of a recorded chain.
pub(crate) async fn app(chain: &str) -> Arc<App<Indexer>> {
    Arc::new(App::new(indexer(chain).await, query::ENDPOINTS).unwrap())
}

/// The indexer API's state of a recorded chain.
pub(crate) async fn indexer(chain: &str) -> Indexer {
    let store = Arc::new(MemStore::new());
    let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
    let last = recording.last();
    index(recording, Options::default(), &store).await;
    tokens(&*store, last);
    outputs(&*store);
    indexed::indexer(store).unwrap()
}

/// Indexes a recorded chain, its movements of tokens, its packets and its bridge too.
pub(crate) async fn index(recording: Arc<Recording>, options: Options, store: &Arc<MemStore>) {
    let mut config = indexed::config(&recording).unwrap();
    config.indexes = vec![&BRIDGE, &LEDGER, &PACKETS];
    indexed::index_as(config, recording, options, Arc::clone(store) as _).await.unwrap();
}

/// Writes two outputs, as a layer one would list them.
fn outputs(store: &dyn Store) {
    let mut writer = Writer::new(store, &BRIDGE, Horizon::DEFAULT).unwrap();
    let proposal = |l2_block| L1Proposal { l2_block, root: vec![7; 32], l1_height: 9, l1_time: 1 };
    let outputs = vec![(1, proposal(25)), (2, proposal(32))];
    let replies = L1Replies { bridge: 1, finalization_seconds: 20, outputs, ..L1Replies::default() };
    writer.amend(store, |txn| bridge_output::apply(txn, &replies).map(drop)).unwrap();
}

/// Builds the index of tokens, and describes the first one: a recording has no reply about most.
fn tokens(store: &dyn Store, last: u64) {
    let mut writer = Writer::new(store, &TOKENS, Horizon::DEFAULT).unwrap();
    while writer.advance(store, last).unwrap() != Rest::None {}
    let open = tokens::open_questions(&*store.snapshot().unwrap(), 0, 1).unwrap();
    let metadata = Metadata {
        name: Said::Value("a name".to_owned()),
        symbol: Said::TooLong,
        decimals: Said::Value(6),
        ..Metadata::default()
    };
    for (token, first) in open {
        let described = Described { number: first.number, token, metadata: metadata.clone(), height: last };
        writer.amend(store, |txn| tokens::describe(txn, &described).map(drop)).unwrap();
    }
}

/// The JSON API of the recorded EVM chain.
pub(crate) async fn evm() -> Arc<App<Indexer>> {
    static EVM: OnceCell<Arc<App<Indexer>>> = OnceCell::const_new();
    Arc::clone(EVM.get_or_init(|| app("evm-scenario")).await)
}

/// Serves an index that has its database already.
pub(crate) fn serve(app: Arc<App<Indexer>>, limits: Limits) -> Server {
    serve_when(Arc::new(OnceLock::from(app)), limits, || Ok(()))
}

pub(crate) fn serve_when(
    index: grpc::Index,
    limits: Limits,
    ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
) -> Server {
    grpc::start(TcpListener::bind("127.0.0.1:0").unwrap(), index, ready, limits, 2).unwrap()
}

fn endpoint(server: &Server) -> Endpoint {
    Endpoint::from_shared(format!("http://{}", server.address())).unwrap()
}

/// A connection of its own.
pub(crate) async fn connect(server: &Server) -> Channel {
    endpoint(server).connect().await.unwrap()
}

/// A connection of its own, opened by its first request.
pub(crate) fn connect_later(server: &Server) -> Channel {
    endpoint(server).connect_lazy()
}

pub(crate) async fn client(server: &Server) -> Client {
    Client::new(connect(server).await).max_decoding_message_size(grpc::MAX_RESPONSE)
}

/// Repeats `attempt` until it gives a value.
pub(crate) async fn eventually<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = attempt().await {
            return value;
        }
        assert!(Instant::now() < deadline, "it does not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
