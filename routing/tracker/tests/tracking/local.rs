//! A tracker whose chains are indexed by its own process, with nodes that have no index at all.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chain::comet::{parse_block, parse_results};
use chain::hash::{Hash, tx_hash};
use node::{FoundEvent, TxSearchHit};
use replay::Recording;
use serde_json::Value;
use tracker::{BridgeStep, IndexedTx, LocalIndex, PacketStep};

use crate::expected::expected;
use crate::whole::{afterwards, check_end, comparable};
use crate::world::{L1, L2, RECORDED_L1, RECORDED_L2, Services, World};

/// Every transaction of the recorded chains, as an index has them.
#[derive(Default)]
pub(crate) struct Recorded {
    txs: HashMap<(&'static str, Hash), IndexedTx>,
    /// Of successful ones, by chain, type of event, port, channel and sequence.
    steps: HashMap<(&'static str, String, String, String, u64), Hash>,
    /// The same of the bridge.
    bridge_steps: HashMap<(&'static str, BridgeStep), Hash>,
    reads: AtomicUsize,
}

impl Recorded {
    fn new() -> Self {
        Self::of(&RECORDED_L1, &RECORDED_L2)
    }

    /// Of any recorded pair.
    pub(crate) fn of(l1: &Recording, l2: &Recording) -> Self {
        let mut all = Self::default();
        all.add(L1, l1);
        all.add(L2, l2);
        all
    }

    fn add(&mut self, chain: &'static str, recording: &Recording) {
        for of in recording.heights() {
            let (block, results) =
                (parse_block(&of.block).unwrap(), parse_results(&of.block_results).unwrap());
            let bodies: Vec<Value> =
                of.rest_txs.as_ref().map_or(Vec::new(), |txs| serde_json::from_slice(txs).unwrap());
            for (at, (raw, result)) in block.raw_txs().unwrap().iter().zip(&results.txs_results).enumerate() {
                let hash = tx_hash(raw);
                let messages = bodies.get(at).and_then(|tx| tx["body"]["messages"].as_array());
                let messages = messages.into_iter().flatten();
                let tx = TxSearchHit {
                    hash,
                    height: of.height,
                    index: u32::try_from(at).unwrap(),
                    code: result.code,
                    codespace: result.codespace.to_string(),
                    log: result.log.to_string(),
                    events: result.events.iter().map(event).collect(),
                    messages: messages.map(|message| message["@type"].as_str().unwrap().to_owned()).collect(),
                };
                for event in tx.events.iter().filter(|_| tx.code == 0) {
                    let end = if matches!(&*event.kind, "recv_packet" | "write_acknowledgement") {
                        "dst"
                    } else {
                        "src"
                    };
                    let text = |key: &str| event.get(key).map(str::to_owned);
                    let (port, channel) =
                        (text(&format!("packet_{end}_port")), text(&format!("packet_{end}_channel")));
                    if let (Some(port), Some(channel), Some(sequence)) =
                        (port, channel, text("packet_sequence"))
                    {
                        let key = (chain, event.kind.clone(), port, channel, sequence.parse().unwrap());
                        self.steps.entry(key).or_insert(hash);
                    }
                    if let Some(step) = bridge_step(event) {
                        // The last one: an output may be proposed again.
                        self.bridge_steps.insert((chain, step), hash);
                    }
                }
                self.txs.insert((chain, hash), (tx, block.header.time));
            }
        }
    }

    fn chain(name: &str) -> &'static str {
        if name.contains("-l1-") { L1 } else { L2 }
    }
}

fn bridge_step(of: &FoundEvent) -> Option<BridgeStep> {
    let number = |key: &str| of.get(key)?.parse::<u64>().ok();
    let bridge = || number("bridge_id");
    Some(match &*of.kind {
        "finalize_token_deposit" => BridgeStep::Finalized { l1_sequence: number("l1_sequence")? },
        "propose_output" => BridgeStep::Proposed { bridge: bridge()?, output: number("output_index")? },
        "finalize_token_withdrawal" => {
            BridgeStep::Claimed { bridge: bridge()?, l2_sequence: number("l2_sequence")? }
        }
        _ => return None,
    })
}

fn event(of: &chain::comet::Event<'_>) -> FoundEvent {
    let attributes = of.attributes.iter();
    let attributes = attributes.map(|attribute| (attribute.key.to_string(), attribute.value.to_string()));
    FoundEvent { kind: of.kind.to_string(), attributes: attributes.collect() }
}

impl LocalIndex for Recorded {
    fn tx(&self, chain: &str, hash: Hash) -> Result<Option<IndexedTx>, String> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.txs.get(&(Self::chain(chain), hash)).cloned())
    }

    fn packet(&self, chain: &str, step: PacketStep<'_>) -> Result<Option<IndexedTx>, String> {
        let PacketStep { event, port, channel, sequence } = step;
        let key = (Self::chain(chain), event.to_owned(), port.to_owned(), channel.to_owned(), sequence);
        self.steps.get(&key).map_or(Ok(None), |hash| self.tx(chain, *hash))
    }

    fn bridge(&self, chain: &str, step: BridgeStep) -> Result<Option<IndexedTx>, String> {
        let hash = self.bridge_steps.get(&(Self::chain(chain), step));
        hash.map_or(Ok(None), |hash| self.tx(chain, *hash))
    }
}

/// An index that fails.
struct Broken;

impl LocalIndex for Broken {
    fn tx(&self, _: &str, _: Hash) -> Result<Option<IndexedTx>, String> {
        Err("a row is damaged".to_owned())
    }

    fn packet(&self, _: &str, _: PacketStep<'_>) -> Result<Option<IndexedTx>, String> {
        Err("a row is damaged".to_owned())
    }

    fn bridge(&self, _: &str, _: BridgeStep) -> Result<Option<IndexedTx>, String> {
        Err("a row is damaged".to_owned())
    }
}

/// The recorded transfers over IBC only: each transaction with the transfers that it started.
fn over_ibc() -> Vec<((String, String), Vec<String>)> {
    let is_ibc = |hop: &Value| !hop["ibc_transfer"].is_null();
    let is_over_ibc = |transfer: &Value| transfer["transfer_sequence"].as_array().unwrap().iter().all(is_ibc);
    let all = expected().into_iter();
    let all = all.filter(|(_, transfers)| transfers.iter().all(is_over_ibc));
    all.map(|(key, transfers)| {
        let mut texts: Vec<String> = transfers.iter().map(ToString::to_string).collect();
        texts.sort();
        (key, texts)
    })
    .collect()
}

async fn tracked(index: Arc<dyn LocalIndex>, faults: &[&str]) -> World {
    let world = World::whole(Services::All).await;
    world.play(faults, faults);
    world.tracker().read_from(index);
    let now = afterwards();
    for ((chain, hash), _) in over_ibc() {
        world.tracker().track(&chain, &hash, now).unwrap();
    }
    world.tracker().poll_due(now).await.unwrap();
    world
}

#[tokio::test]
async fn nodes_without_an_index_and_without_results_of_blocks_are_enough() {
    let index = Arc::new(Recorded::new());
    let world = tracked(Arc::clone(&index) as _, &["no-index", "discard-abci-responses"]).await;
    let transfers = over_ibc();
    assert!(transfers.len() > 30, "{}", transfers.len());
    for ((chain, hash), wanted) in transfers {
        assert_eq!(comparable(&world.status(&chain, &hash)), wanted, "{chain} {hash}");
    }
    assert!(index.reads.load(Ordering::Relaxed) > 90);
}

#[tokio::test]
async fn without_executor_and_indexes_of_nodes_every_transfer_reaches_its_recorded_end() {
    let world = World::whole(Services::All).await;
    let faults = ["no-index", "discard-abci-responses", "executor:502"];
    world.play(&faults, &faults);
    world.tracker().read_from(Arc::new(Recorded::new()));
    let now = afterwards();
    for (chain, hash) in expected().keys() {
        world.tracker().track(chain, hash, now).unwrap();
    }
    world.tracker().poll_due(now).await.unwrap();
    check_end(&world);
}

#[tokio::test]
async fn an_index_that_cannot_be_read_is_as_none() {
    let world = tracked(Arc::new(Broken), &[]).await;
    for ((chain, hash), wanted) in over_ibc() {
        assert_eq!(comparable(&world.status(&chain, &hash)), wanted, "{chain} {hash}");
    }
}
