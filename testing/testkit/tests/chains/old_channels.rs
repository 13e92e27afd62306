//! Channels that were opened before the first block of the index: the node is asked for their states.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use ingest::{Config, Ingest};
use replay::Recording;
use replay::answers::HttpReply;
use schema::index::Index;
use schema::packets::{self, PACKETS};
use serde_json::Value;
use store::{MemStore, Store};
use testkit::overridden_node::OverriddenNode;
use testkit::{indexed, oracle, recording};
use tokio::sync::watch;
use web::app::App;

use crate::transfers::get;

static INDEX: Index = PACKETS;

const CHANNELS: &str = "/ibc/core/channel/v1/channels";

/// Indexes a recorded chain until its node was asked for channels, and until none is unknown if it replies.
async fn index(name: &str, replies: bool) -> Arc<dyn Store> {
    let chain = Arc::new(Recording::open(&recording(name)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    let node = OverriddenNode::start(Arc::clone(&chain), move |exchange| {
        if !exchange.request.uri().path().starts_with(CHANNELS) {
            return exchange.answer;
        }
        counter.fetch_add(1, Ordering::Relaxed);
        let refused = || {
            let body = r#"{"code":2,"message":"some fault","details":[]}"#;
            HttpReply { status: StatusCode::INTERNAL_SERVER_ERROR, body: body.into() }
        };
        if replies { exchange.answer } else { refused() }
    });
    let node = node.await.unwrap();
    let config = Config {
        indexes: vec![&INDEX],
        internal_txs: false,
        rich_list: false,
        ..indexed::config(&chain).unwrap()
    };
    let ingest =
        Ingest::prepare(config, Arc::new(node.clients().unwrap()), Arc::clone(&store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let is_done = || {
        let snapshot = store.snapshot().unwrap();
        let height = PACKETS.state(&*snapshot).unwrap().map_or(0, |state| state.height);
        let unknown = packets::unknown_channels(&*snapshot, 1_000).unwrap();
        height == chain.last() && asked.load(Ordering::Relaxed) > 0 && unknown.is_empty() == replies
    };
    let reached = async {
        // Nothing announces the replies.
        while !is_done() {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let both = async { tokio::join!(ingest.run(stopped), reached).0.unwrap() };
    tokio::time::timeout(Duration::from_mins(2), both).await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_says_the_state_of_channels_that_are_older_than_the_index() {
    for name in ["bridge-cases/l1"] {
        let [with, without] = [index(name, true).await, index(name, false).await]
            .map(|store| App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap());
        let lists = oracle::extra_lines(name, CHANNELS).unwrap();
        let expected = lists.iter().find(|line| line["path"] == CHANNELS);
        let expected = expected.unwrap()["answer"]["channels"].as_array().unwrap();
        let (mut filled, mut known) = (0, 0);
        let target = "/indexer/ibc/v1/channels?pagination.limit=1000";
        let (ours, unfilled) = (get(&with, target), get(&without, target));
        for (channel, before) in
            ours["channels"].as_array().unwrap().iter().zip(unfilled["channels"].as_array().unwrap())
        {
            let same = |one: &&Value| {
                one["channel_id"] == channel["channel_id"] && one["port_id"] == channel["port_id"]
            };
            // A client of IBC v2 is no channel.
            let Some(theirs) = expected.iter().find(same) else { continue };
            for member in ["state", "ordering", "version", "counterparty"] {
                assert_eq!(channel[member], theirs[member], "{name} {channel} {member}");
            }
            // A node that fails leaves unknown what no event says.
            if before == channel {
                known += 1;
                continue;
            }
            filled += 1;
            for member in ["state", "ordering", "version"] {
                assert!(before[member] == "" || before[member] == channel[member], "{name} {before}");
            }
        }
        // Of the first chain one channel is older than the index. The others lack an ordering.
        println!("{name}: {filled} filled, {known} known by events");
        assert!(filled > 0 && known > 0, "{name}");
    }
}
