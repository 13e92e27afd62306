//! A replay node in a process of its own, the same program again, so that the figures of this process are those of what is
//! measured. Both share the machine's cores.

#![expect(clippy::print_stdout, reason = "the node prints its addresses")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use node::{Endpoints, Limits, Node};
use replay::recording::Summary;
use replay::{Addresses, Options, Recording, ReplayNode};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use crate::meter;
use crate::report::{line, megabytes, micros_each};

/// The argument that makes a target a replay node; a recording follows, and transactions and sizes of blocks if it is to be
/// extended.
const PLAY: &str = "play";

/// The first line of the node.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    summary: Summary,
    comet: String,
    rest: String,
    json_rpc: String,
}

/// Runs the node if this process is to be one, until the standard input ends; a target calls it first. True if it was one.
pub fn is_node() -> Result<bool> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [PLAY, recording] => play(Recording::open(&testkit::recording(recording))?)?,
        [PLAY, recording, txs, sizes] => {
            let recorded = Recording::open(&testkit::recording(recording))?;
            play(synthesize::extend(recorded, txs.parse()?, sizes.parse()?)?)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Answers until the standard input ends; then prints the number of requests without a reply.
fn play(recording: Recording) -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let node = ReplayNode::start(Arc::new(recording), Addresses::default(), Options::default());
    let node = runtime.block_on(node)?;
    let summary = node.recording().summary().clone();
    let (comet, rest, json_rpc) = (node.comet_url(), node.rest_url(), node.json_rpc_url());
    println!("{}", serde_json::to_string(&About { summary, comet, rest, json_rpc })?);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("{}", node.missing().count);
    runtime.block_on(node.stop());
    Ok(())
}

/// A replay node in another process.
pub struct NodeApart {
    about: About,
    process: Child,
    /// The node stops when it is closed.
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl NodeApart {
    /// Plays `recording`, extended to a number of transactions in blocks of these sizes if they are given.
    pub fn start(recording: &str, extended: Option<(u64, &str)>) -> Result<Self> {
        let started = Instant::now();
        let mut process = Command::new(std::env::current_exe()?);
        process.args([PLAY, recording]);
        if let Some((txs, sizes)) = extended {
            process.args([&txs.to_string(), sizes]);
        }
        let mut process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = process.stdin.take().context("no standard input")?;
        let mut stdout = BufReader::new(process.stdout.take().context("no standard output")?);
        let mut text = String::new();
        stdout.read_line(&mut text)?;
        let about: About = serde_json::from_str(&text).context("the replay node did not start")?;
        line(&format!("{}: computed in {:.1} s", about.summary.name, started.elapsed().as_secs_f64()));
        Ok(Self { about, process, stdin, stdout })
    }

    /// What is played.
    pub fn summary(&self) -> &Summary {
        &self.about.summary
    }

    /// Clients for the node.
    pub fn clients(&self) -> Result<Node> {
        let is_evm = self.about.summary.vm == "evm";
        let endpoints = Endpoints {
            comet: vec![self.about.comet.parse()?],
            rest: vec![self.about.rest.parse()?],
            json_rpc: if is_evm { vec![self.about.json_rpc.parse()?] } else { Vec::new() },
            grpc: Vec::new(),
        };
        Ok(Node::new(endpoints, Limits::default())?)
    }

    /// Prints the cost of the node and ends it.
    pub fn stop(mut self) -> Result<()> {
        let (cpu, peak) =
            (meter::process_cpu(self.process.id())?, meter::peak_resident_of(self.process.id())?);
        line(&format!(
            "replay node: {:.1} us CPU a transaction, to compute hashes at its start included; peak memory {:.0} MB",
            micros_each(cpu, self.about.summary.txs),
            megabytes(peak),
        ));
        drop(self.stdin);
        let mut missing = String::new();
        self.stdout.read_line(&mut missing)?;
        ensure!(missing.trim() == "0", "{} requests without an answer", missing.trim());
        ensure!(self.process.wait()?.success(), "the replay node failed");
        Ok(())
    }
}
