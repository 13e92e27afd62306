//! Recorded chains that provide seeds and chain rules.
//!
//! # Invariants
//!
//! - Recordings are opened once per process.
//! - The same recording gives the same seeds.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::evm::flavour::Flavour;
use ingest::derive::{Rules, WorkerPool};
use proto::json::Registry;
use replay::Recording;
use replay::recording::Outcome;
use schema::meta::Identity;
use schema::payload::{Chunk, Codec, Packed};
use schema::tx::Txs;
use serde::de::IgnoredAny;
use serde_json::Value;
use store::{MemStore, Store as _, Table as _};

/// A recorded chain with the state that deriving needs.
#[derive(Debug)]
pub struct Chain {
    /// The node's replies.
    pub recording: Arc<Recording>,
    /// The chain's rules, as ingest reads them from a node.
    pub rules: Rules,
    /// The codec of records.
    pub codec: Arc<Codec>,
    /// Worker threads that derive blocks.
    pub workers: WorkerPool,
}

const NAMES: [&str; 4] = ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l2"];

static CHAINS: LazyLock<Vec<Chain>> = LazyLock::new(|| NAMES.into_iter().map(Chain::open).collect());

/// One chain of each kind, including a rollup with packets and a bridge.
pub fn chains() -> &'static [Chain] {
    &CHAINS
}

impl Chain {
    fn open(name: &str) -> Self {
        let recording = Recording::open(&testkit::recording(name)).unwrap();
        let rules = Rules {
            vm: recording.summary().vm.parse().unwrap(),
            flavour: Flavour::MiniEvm,
            prefix: prefix(&recording),
            registry: Arc::new(Registry::from_descriptors(&descriptors(&recording)).unwrap()),
            descriptors: [0; 32],
            verified: false,
        };
        let codec = Arc::new(codec(&rules));
        let workers = WorkerPool::new(Arc::clone(&codec), rules.clone());
        Self { recording: Arc::new(recording), rules, codec, workers }
    }

    /// The bytes of all transactions, in chain order.
    pub fn txs(&self) -> impl Iterator<Item = Vec<u8>> {
        let heights = self.recording.heights().iter();
        let of_height = |height: &replay::recording::Height| -> Vec<Vec<u8>> {
            let txs = height.raw_txs().unwrap();
            txs.iter().map(|raw| STANDARD.decode(raw.as_bytes()).unwrap()).collect()
        };
        heights.flat_map(of_height)
    }

    /// The number of records in these chunks, which have as many as they state, each of them JSON.
    pub fn records(&self, chunks: &[Packed]) -> usize {
        let of_chunk = |packed: &Packed| {
            let mut chunk = Vec::new();
            self.codec.decode_into(Txs::SPEC, 1, &packed.payload.0, &mut chunk).unwrap();
            let records = Chunk::ranges(&chunk).expect("a chunk of ours");
            assert_eq!(records.len() as u64, packed.records);
            for record in &records {
                let read = serde_json::from_slice::<IgnoredAny>(&chunk[record.clone()]);
                assert!(read.is_ok(), "{read:?} in {}", String::from_utf8_lossy(&chunk));
            }
            records.len()
        };
        chunks.iter().map(of_chunk).sum()
    }
}

fn prefix(recording: &Recording) -> String {
    let answer = recording.state().rest("GET", "/cosmos/auth/v1beta1/bech32", None, None).unwrap();
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    answer["bech32_prefix"].as_str().unwrap().to_owned()
}

fn descriptors(recording: &Recording) -> Vec<u8> {
    let params = BTreeMap::from([("path".to_owned(), proto::reflection::PATH.to_owned())]);
    let Some(Outcome::Result(answer)) = recording.state().cometbft("abci_query", &params) else {
        panic!("every recording has the descriptors")
    };
    let answer: Value = serde_json::from_slice(answer).unwrap();
    STANDARD.decode(answer["response"]["value"].as_str().unwrap()).unwrap()
}

/// The dictionaries of a new database.
fn codec(rules: &Rules) -> Codec {
    let store = MemStore::new();
    let identity = Identity {
        format: schema::FORMAT,
        chain_id: "fuzzed".to_owned(),
        vm: rules.vm.to_string(),
        prefix: rules.prefix.clone(),
        start_height: 1,
    };
    schema::open::or_create(&store, &identity).unwrap();
    Codec::load(&*store.snapshot().unwrap()).unwrap()
}
