//! A recorded pair of a layer one and its rollup, and the rollup's index of the bridge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chain::bridge::BridgeEvent;
use chain::comet::{order, parse_block, parse_results};
use chain::hash::tx_hash;
use ingest::config::Bridge;
use ingest::{Config, Ingest};
use query::Indexer;
use replay::{Addresses, Fault, Options, Recording, ReplayNode};
use schema::bridge::BRIDGE;
use schema::bridge_output::{self, L1Claims};
use schema::opchild;
use store::{MemStore, Snapshot, Store};
use testkit::{indexed, recording};
use tokio::sync::watch;
use web::app::App;

pub(crate) static INDEX: schema::index::Index = BRIDGE;

/// A pair of recorded chains, and the index of the rollup.
pub(crate) struct Pair {
    pub(crate) l1: Arc<Recording>,
    pub(crate) l2: Arc<Recording>,
    pub(crate) store: Arc<dyn Store>,
}

/// What a layer one had at a height.
#[derive(Default)]
pub(crate) struct L1 {
    /// The last blocks of outputs that are not deleted, by number.
    pub(crate) outputs: BTreeMap<u64, u64>,
    /// The transactions that claimed withdrawals.
    pub(crate) claimed: BTreeMap<u64, String>,
}

impl Pair {
    pub(crate) fn open(name: &str) -> Self {
        let open = |chain: &str| Arc::new(Recording::open(&recording(&format!("{name}/{chain}"))).unwrap());
        Self { l1: open("l1"), l2: open("l2"), store: Arc::new(MemStore::new()) }
    }

    /// What the layer one has at a height of bridge 1.
    pub(crate) fn l1_at(&self, height: u64) -> L1 {
        let mut state = L1::default();
        for block in self.l1.heights().iter().filter(|block| block.height <= height) {
            let raw = parse_block(&block.block).unwrap().raw_txs().unwrap();
            for (place, event) in order::in_order(&parse_results(&block.block_results).unwrap()) {
                match BridgeEvent::read(event) {
                    Some(BridgeEvent::Proposed(proposal)) if proposal.bridge == 1 => {
                        state.outputs.insert(proposal.output, proposal.l2_block);
                    }
                    Some(BridgeEvent::Deleted { bridge: 1, output, .. }) => {
                        state.outputs.split_off(&output);
                    }
                    Some(BridgeEvent::Claim(claim)) if claim.bridge == 1 => {
                        let tx = hex::encode_upper(tx_hash(&raw[place.unwrap()]));
                        state.claimed.insert(claim.sequence, tx);
                    }
                    _ => {}
                }
            }
        }
        state
    }

    /// Indexes the rollup up to a height, while the layer one is at another one, until all is known that it says.
    pub(crate) async fn index(&self, l1_height: u64, l2_height: u64) {
        self.index_in(Arc::clone(&self.store), (l1_height, l2_height)).await.unwrap();
    }

    /// As [`Self::index`], in a store that may reject commits: then with the error that ended it.
    pub(crate) async fn index_in(
        &self,
        store: Arc<dyn Store>,
        heights: (u64, u64),
    ) -> Result<(), ingest::Error> {
        self.index_with(store, heights, &[], |_| true).await
    }

    /// As [`Self::index_in`], with faults of the layer one, until the database also passes `is_filled`.
    pub(crate) async fn index_with(
        &self,
        store: Arc<dyn Store>,
        (l1_height, l2_height): (u64, u64),
        faults: &[Fault],
        is_filled: impl Fn(&dyn Snapshot) -> bool,
    ) -> Result<(), ingest::Error> {
        let play = async |recording: &Arc<Recording>, up_to, faults| {
            let options = Options { up_to: Some(up_to), faults, ..Options::default() };
            ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap()
        };
        let l1 = play(&self.l1, l1_height, faults.to_vec()).await;
        let l2 = play(&self.l2, l2_height, Vec::new()).await;
        let bridge = Bridge { l1: vec![l1.rest_url().parse().unwrap()], poll: Duration::from_millis(20) };
        let config = Config {
            indexes: vec![&INDEX],
            bridge: Some(bridge),
            internal_txs: false,
            rich_list: false,
            ..indexed::config(&self.l2).unwrap()
        };
        let expected = self.l1_at(l1_height);
        let last = expected.outputs.keys().next_back().copied().unwrap_or_default();
        let covered = expected.outputs.values().copied().filter(|l2_block| *l2_block <= l2_height).max();
        let covered = covered.unwrap_or_default();
        let is_indexed = |(_, l2_block): &(&u64, &u64)| **l2_block <= l2_height;
        let compared = expected.outputs.iter().filter(is_indexed).map(|(number, _)| *number).max();
        let compared = compared.unwrap_or_default();
        let is_done = || {
            let snapshot = self.store.snapshot().unwrap();
            let height = BRIDGE.state(&*snapshot).unwrap().map_or(0, |state| state.height);
            let state = bridge_output::l1_state(&*snapshot).unwrap().unwrap_or_default();
            // Only withdrawals with a proof are asked about.
            let is_claimed = |sequence: &u64| {
                let withdrawal = opchild::withdrawal(&*snapshot, *sequence).unwrap();
                let has_proof = withdrawal.is_some_and(|withdrawal| withdrawal.height() <= covered);
                !has_proof || store::table::read::<L1Claims>(&*snapshot, sequence).unwrap().is_some()
            };
            (height, state.last_output, state.compared) == (l2_height, last, compared)
                && expected.claimed.keys().all(is_claimed)
                && is_filled(&*snapshot)
        };
        let node = Arc::new(indexed::clients(&l2).unwrap());
        let ingest = Ingest::prepare(config, node, store).await?;
        let (stop, stopped) = watch::channel(false);
        let reached = async {
            // Nothing announces what the layer one says.
            while !is_done() {
                tokio::task::yield_now().await;
            }
            stop.send_replace(true);
        };
        let run = async {
            tokio::pin!(reached);
            let ended = ingest.run(stopped);
            tokio::pin!(ended);
            tokio::select! {
                outcome = &mut ended => return outcome,
                () = &mut reached => {}
            }
            ended.await
        };
        tokio::time::timeout(Duration::from_mins(2), run).await.unwrap()
    }

    pub(crate) fn app(&self) -> App<Indexer> {
        App::new(indexed::indexer(Arc::clone(&self.store)).unwrap(), query::ENDPOINTS).unwrap()
    }
}
