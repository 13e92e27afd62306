//! `cairn replay`: a replay node with one port per service.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use ::replay::{Addresses, Fault, Options, Pace, Recording, ReplayNode};
use humantime::Duration as Time;
use synthesize::BlockSizes;

use crate::settings::sources::{LOG, Sources};
use crate::{logging, output, runtime, shutdown};

/// Flags of `cairn replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Directory of the recording
    dir: PathBuf,
    /// Where the CometBFT RPC listens; port 0 takes a free one, here and below
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:26657")]
    comet: SocketAddr,
    /// Where the Cosmos REST listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1317")]
    rest: SocketAddr,
    /// Where the EVM JSON-RPC listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8545")]
    json_rpc: SocketAddr,
    /// Where the executor of the rollup's bridge listens, if the recording has answers of one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3000")]
    executor: SocketAddr,
    /// Height that is shown at first; those above it are held back
    #[arg(long, value_name = "HEIGHT")]
    up_to: Option<u64>,
    /// Shows one height more each time, as in 500ms, from --up-to or the first one on
    #[arg(long, value_name = "TIME")]
    block_every: Option<Time>,
    /// Plays another history above this height, forged from the recording
    #[arg(long, value_name = "HEIGHT")]
    fork_at: Option<u64>,
    /// Which other history that is
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "fork_at")]
    fork_seed: u64,
    /// Extends the recording to this number of transactions by computed blocks that hashes verify: see
    /// testing/recordings/README.md
    #[arg(long, value_name = "NUMBER", conflicts_with = "fork_at")]
    synthesize: Option<u64>,
    /// Transactions in each of the computed blocks, of which three in ten are empty: 0-4, 100 or 5000
    #[arg(long, value_name = "NUMBER", default_value = "100", requires = "synthesize")]
    synthesize_block: BlockSizes,
    /// What goes wrong, as in delay=50ms@0.1, json-rpc:500@0.2 or comet:lie-txs; may be repeated; a wrong one is
    /// refused with a list of all
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    /// Which requests the faults hit; a random one is taken and printed if none is given
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Transactions that the node gives a second, each with its block, results and receipt. All replies that these
    /// options slow down are made one after another, so that traces and calls hold up blocks as they do on a real node
    #[arg(long, value_name = "NUMBER")]
    pace_txs: Option<NonZeroU32>,
    /// Transactions that it traces a second
    #[arg(long, value_name = "NUMBER")]
    pace_traces: Option<NonZeroU32>,
    /// Time that it takes for each eth_call, as in 1ms, in a batch too
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pace_call: Time,
    #[command(flatten)]
    log: Sources<LOG>,
}

/// Runs until a stop signal.
pub(crate) fn run(args: Replay) -> anyhow::Result<()> {
    let settings = args.log.settings()?;
    logging::start(&settings)?;
    let Replay { comet, rest, json_rpc, executor, .. } = args;
    let at = Addresses { comet, rest, json_rpc, executor };
    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one(()));
    let block_every = args.block_every.map(Into::into);
    let pace = Pace { txs: args.pace_txs, traces: args.pace_traces, call: *args.pace_call };
    let options = Options { up_to: args.up_to, block_every, faults: args.fault, seed, pace };
    let recorded = Recording::open(&args.dir)?;
    let recording = Arc::new(match (args.fork_at, args.synthesize) {
        (Some(at), _) => recorded.forked(at, args.fork_seed)?,
        (None, Some(txs)) => synthesize::extend(recorded, txs, args.synthesize_block)?,
        (None, None) => recorded,
    });
    runtime::block_on(async {
        let stop = shutdown::watch()?;
        let node = ReplayNode::start(recording, at, options).await?;
        output::print(&announcement(&node, seed)?)?;
        shutdown::stopped(&stop).await;
        let missing = node.missing();
        node.stop().await;
        if missing.count > 0 {
            tracing::warn!(count = missing.count, requests = ?missing.questions, "requests without a recorded answer");
        }
        Ok(())
    })
}

fn announcement(node: &ReplayNode, seed: u64) -> Result<String, std::fmt::Error> {
    let recording = node.recording();
    let about = recording.summary();
    let mut text = String::new();
    writeln!(text, "{}: chain {}, vm {}", about.name, about.chain_id, about.vm)?;
    if !recording.is_ethereum() {
        writeln!(text, "heights   {} to {}, showing {}", recording.first(), recording.last(), node.shown())?;
        writeln!(text, "comet     {}", node.comet_url())?;
        writeln!(text, "rest      {}", node.rest_url())?;
    }
    if recording.is_evm() || recording.is_ethereum() {
        writeln!(text, "json-rpc  {}", node.json_rpc_url())?;
    }
    if let Some(url) = node.executor_url() {
        writeln!(text, "executor  {url}")?;
    }
    writeln!(text, "seed      {seed}")?;
    Ok(text)
}
