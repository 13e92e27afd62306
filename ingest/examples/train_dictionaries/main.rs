//! Trains the zstd dictionaries of new databases on the recordings of the repository, and writes them to `schema/dict`.
//! Run it (`make dictionaries`) when the form of a record changes; stored records keep the dictionary in their
//! database.
//!
//! The recorded chains were driven with the same keys, and so have the same accounts and contracts. Before training all
//! of them get pseudonyms, so that a dictionary helps other chains as much as it helps these.

#![expect(clippy::print_stdout, reason = "a tool that says what it wrote")]

mod pseudonyms;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use chain::Vm;
use chain::evm::flavour::Flavour;
use ingest::derive::{self, BlockResponses, EvmResponse, Rendered, Retraced, Rules, WorkerPool};
use pseudonyms::Pseudonyms;
use replay::recording::Trace;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::meta::Identity;
use schema::payload::{Chunk, Codec, Kind, Payload, training};
use schema::tx::Txs;
use store::{MemStore, Store as _, Table as _};

/// The training chains: every VM, bridge and IBC traffic. `evm-load` is left out, so that its measurements are
/// unbiased.
const CHAINS: [&str; 5] = ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l1", "l1-l2/l2"];

#[derive(Default)]
struct Samples {
    txs: Vec<Vec<u8>>,
    evm_txs: Vec<Vec<u8>>,
    calls: Vec<Vec<u8>>,
}

fn main() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut samples = Samples::default();
    for chain in CHAINS {
        let before = samples.txs.len();
        collect(&root.join("testing/recordings").join(chain), &mut samples)
            .with_context(|| chain.to_owned())?;
        println!("{chain}: {} transactions", samples.txs.len() - before);
    }
    let Samples { txs, evm_txs, calls } = samples;
    for (kind, mut samples) in Kind::ALL.into_iter().zip([txs, evm_txs, calls]) {
        let mut pseudonyms = Pseudonyms::default();
        for record in &samples {
            pseudonyms.add(record);
        }
        for (salt, record) in (0..).zip(&mut samples) {
            pseudonyms.apply(record, salt);
        }
        let dictionary = training::train(kind, &samples)?;
        let path = root.join("schema/dict").join(format!("{}.zdict", kind.table().name));
        std::fs::write(&path, &dictionary).with_context(|| path.display().to_string())?;
        println!("{}: {} bytes from {} records", path.display(), dictionary.len(), samples.len());
    }
    Ok(())
}

/// Adds the records of a recorded chain.
fn collect(dir: &Path, samples: &mut Samples) -> Result<()> {
    let recording = Arc::new(Recording::open(dir)?);
    let (vm, chain_id) = (recording.summary().vm.parse::<Vm>()?, recording.summary().chain_id.clone());
    let store = MemStore::new();
    let prefix = "init".to_owned();
    let identity = Identity {
        format: schema::FORMAT,
        chain_id,
        vm: vm.to_string(),
        prefix: prefix.clone(),
        start_height: recording.first(),
    };
    schema::open::or_create(&store, &identity)?;
    let codec = Arc::new(Codec::load(&*store.snapshot()?)?);
    let descriptors = descriptors(&recording)?;
    let registry = Arc::new(proto::json::Registry::from_descriptors(&descriptors)?);
    let rules =
        Rules { vm, flavour: Flavour::MiniEvm, prefix, registry, descriptors: [0; 32], verified: false };
    let workers = WorkerPool::new(Arc::clone(&codec), rules.clone());
    let plain = |payload: &Payload| -> Result<Vec<u8>> {
        let mut record = Vec::new();
        codec.decode_into(Txs::SPEC, 0, &payload.0, &mut record)?;
        Ok(record)
    };
    for height in recording.heights() {
        let answers = BlockResponses {
            height: height.height,
            block: &height.block,
            results: &height.block_results,
            evm: height.eth_receipts.as_deref().filter(|_| vm == Vm::Evm).map(EvmResponse::Unchecked),
        };
        let block = workers.with(|worker| derive::block(&answers, &Rendered::new(), &rules, worker))??;
        // Single records: trained on chunks, of which there are fewer, a dictionary saves 2 % less.
        for (chunks, samples) in
            [(&block.tx_records, &mut samples.txs), (&block.evm_tx_records, &mut samples.evm_txs)]
        {
            for packed in chunks {
                let chunk = plain(&packed.payload)?;
                let records = Chunk::ranges(&chunk).context("a chunk of our own does not decode")?;
                samples.extend(records.into_iter().map(|record| chunk[record].to_vec()));
            }
        }
        let hashes: Vec<_> = block.evm_txs.iter().map(|tx| tx.hash.into()).collect();
        let (Some(Trace::Result(trace)), false) = (&height.eth_trace, hashes.is_empty()) else { continue };
        let frames = workers
            .with(|worker| derive::frames(height.height, &hashes, Some(trace), &Retraced::new(), worker))??;
        for chunk in &frames.records {
            samples.calls.push(plain(&chunk.payload)?);
        }
    }
    Ok(())
}

/// The chain's descriptor set, as its node gives it.
fn descriptors(recording: &Arc<Recording>) -> Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let played =
            ReplayNode::start(Arc::clone(recording), Addresses::default(), Options::default()).await?;
        let set = testkit::indexed::clients(&played)?.descriptors().await?;
        played.stop().await;
        Ok(set.bytes.to_vec())
    })
}
