//! A recorded chain, served by a replay node and indexed: real sockets, the real pipeline, any engine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use ingest::{Config, Ingest, Verify};
use node::{Endpoints, Limits, Node};
use query::{Build, EmptyCursor, Indexer};
use replay::recording::Summary;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::call_errors::CALL_ERRORS;
use schema::contracts::CONTRACTS;
use schema::digest::TableDigest;
use schema::evm_block::BLOCKS;
use schema::logs::LOGS;
use schema::meta::{self, BlockLane, CallLane};
use schema::nft::Questions;
use schema::parties::PARTIES;
use store::key::All;
use store::{MemStore, Order, Store};
use tokio::sync::watch;

/// Timeout of indexing a recorded chain: enough for a debug build on two cores.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Timeout until a permanent error of a node is reported.
const ERROR_TIMEOUT: Duration = Duration::from_mins(1);

/// The configuration that indexes `recording`.
pub fn config(recording: &Recording) -> Result<Config> {
    config_of(recording.summary())
}

/// The configuration that indexes the recording with this summary.
pub fn config_of(summary: &Summary) -> Result<Config> {
    Ok(Config {
        chain_id: summary.chain_id.clone(),
        vm: summary.vm.parse()?,
        evm: None,
        prefix: None,
        start_height: None,
        internal_txs: true,
        rich_list: true,
        indexes: Vec::new(),
        bridge: None,
        // A recording answers only the recorded requests.
        reconcile_every: None,
        believe_after: ingest::config::BELIEVE_AFTER,
        look_ahead: ingest::config::LOOK_AHEAD,
        poll: Duration::from_millis(20),
        verify: Verify::Hashes,
        max_rewind: ingest::config::MAX_REWIND,
        undo: schema::undo::Horizon::DEFAULT,
        keep_trying: None,
    })
}

/// The addresses of a replay node.
pub fn endpoints(played: &ReplayNode) -> Result<Endpoints> {
    let url = |text: String| text.parse().context("a replay node's own address");
    Ok(Endpoints {
        comet: vec![url(played.comet_url())?],
        rest: vec![url(played.rest_url())?],
        json_rpc: if played.recording().is_evm() { vec![url(played.json_rpc_url())?] } else { Vec::new() },
        grpc: Vec::new(),
    })
}

/// Clients for a replay node.
pub fn clients(played: &ReplayNode) -> Result<Node> {
    Ok(Node::new(endpoints(played)?, Limits::default())?)
}

/// Serves `recording` with `options` and indexes all of it, every lane, into `store`. An unrecorded request is an
/// error.
pub async fn index(recording: Arc<Recording>, options: Options, store: Arc<dyn Store>) -> Result<()> {
    let config = config(&recording)?;
    index_as(config, recording, options, store).await
}

/// Like [`index`], with another configuration. Without `block_every`, it ends at `up_to`.
pub async fn index_as(
    config: Config,
    recording: Arc<Recording>,
    options: Options,
    store: Arc<dyn Store>,
) -> Result<()> {
    let last = match (options.up_to, options.block_every) {
        (Some(up_to), None) => up_to,
        _ => recording.last(),
    };
    let played = ReplayNode::start(recording, Addresses::default(), options).await?;
    index_from(clients(&played)?, config, store, last).await?;
    let missing = played.missing();
    ensure!(missing.count == 0, "requests that are not recorded: {:?}", missing.questions);
    played.stop().await;
    Ok(())
}

/// Indexes `recording` with the optional indexes that JSON-RPC reads, in memory, and with calls and their errors if `calls` is true. Unrecorded
/// requests count as failed.
pub async fn index_for_json_rpc(recording: Arc<Recording>, calls: bool) -> Result<Arc<dyn Store>> {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let mut indexes = vec![&BLOCKS, &CONTRACTS, &LOGS, &PARTIES];
    indexes.extend(calls.then_some(&CALL_ERRORS));
    let config = Config { indexes, internal_txs: calls, rich_list: false, ..config(&recording)? };
    let last = recording.last();
    let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await?;
    let ingest = Ingest::prepare(config, Arc::new(clients(&played)?), Arc::clone(&store)).await?;
    let (stop, stopped) = watch::channel(false);
    let reached = async {
        // Headers arrive after their blocks, and nothing announces them.
        for index in [&BLOCKS, &LOGS, &CONTRACTS, &PARTIES] {
            while index.state(&*store.snapshot()?)?.is_none_or(|state| state.height < last) {
                tokio::task::yield_now().await;
            }
        }
        while calls && meta::read::<CallLane>(&*store.snapshot()?)?.is_none_or(|lane| lane.height < last) {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
        anyhow::Ok(())
    };
    let both = async { tokio::try_join!(async { Ok(ingest.run(stopped).await?) }, reached) };
    tokio::time::timeout(TIMEOUT, both).await.context("the ingest does not come to its end")??;
    played.stop().await;
    Ok(store)
}

/// Indexes the chain of `node` up to `last`, until no query about NFTs is pending.
pub async fn index_from(node: Node, config: Config, store: Arc<dyn Store>, last: u64) -> Result<()> {
    let ingest = Ingest::prepare(config, Arc::new(node), Arc::clone(&store)).await?;
    run_until(&ingest, last, || Ok(!has_questions(&*store)?)).await
}

/// Whether a query about NFTs is pending whose height is indexed.
pub fn has_questions(store: &dyn Store) -> Result<bool> {
    let snapshot = store.snapshot()?;
    let open = store::table::rows::<Questions>(&*snapshot, &All, Order::Asc, 1)?;
    let height = meta::read::<BlockLane>(&*snapshot)?.map_or(0, |lane| lane.height);
    Ok(open.first().is_some_and(|(place, _)| place.height <= height))
}

/// The error that ends `ingest`.
pub async fn failure(ingest: &Ingest) -> Result<ingest::Error> {
    let (_nobody, stopped) = watch::channel(false);
    let ended = tokio::time::timeout(ERROR_TIMEOUT, ingest.run(stopped)).await;
    match ended.context("the ingest does not come to its end")? {
        Ok(()) => bail!("the ingest ended without an error"),
        Err(error) => Ok(error),
    }
}

/// A hash of the content of each table of `store`: equal if and only if the indexed data is equal.
pub fn digest(store: &dyn Store) -> Result<Vec<TableDigest>> {
    Ok(schema::digest::tables(&*store.snapshot()?)?)
}

/// Runs `ingest` until every lane has reached `height`, and stops it.
pub async fn run_to(ingest: &Ingest, height: u64) -> Result<()> {
    run_until(ingest, height, || Ok(true)).await
}

async fn run_until(ingest: &Ingest, height: u64, done: impl Fn() -> Result<bool>) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    let mut progress = ingest.progress();
    let reached = async {
        while progress.done() < height || !done()? {
            progress.moved().await;
        }
        stop.send_replace(true);
        anyhow::Ok(())
    };
    let both = async { tokio::try_join!(async { Ok(ingest.run(stopped).await?) }, reached) };
    tokio::time::timeout(TIMEOUT, both).await.context("the ingest does not come to its end")??;
    Ok(())
}

/// The indexer API over an indexed store.
pub fn indexer(store: Arc<dyn Store>) -> Result<Indexer> {
    let build = Build { version: "test".to_owned(), commit: "unknown".to_owned() };
    Ok(Indexer::open(store, build, EmptyCursor::Null)?)
}
