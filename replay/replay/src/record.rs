//! Recorder of a live node: every height of a range, all data that a replay needs, and the state answers that an index
//! requests.
//!
//! # Invariants
//!
//! * Heights are written byte for byte as the node sent them.
//! * A failed request is retried or ends the recording; it is never written as a reply.
//! * An interrupted recording continues only on the same chain.

mod source;

use std::path::Path;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use node::retry::{Backoff, until};
use node::{Endpoints, Limits, Node, Observer};

use self::source::Source;
use crate::Error;
use crate::exchange_log::ExchangeLog;
use crate::recording::{RecordingWriter, Summary};

/// Settings of a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The recording's name.
    pub name: String,
    /// The chain's virtual machine, as in [`Summary::vm`].
    pub vm: &'static str,
    /// The denomination of fees, if the chain does not report it (an EVM chain does).
    pub fee_denom: String,
    /// Heights requested concurrently.
    pub in_flight: usize,
    /// The zstd level of the files, 1 to 22; a higher level is smaller and slower.
    pub level: i32,
    /// The bounds of the clients.
    pub limits: Limits,
}

impl RecordOptions {
    /// Eight heights at once, zstd level 19.
    pub fn named(name: impl Into<String>, vm: &'static str) -> Self {
        let (fee_denom, limits) = (String::new(), Limits::default());
        Self { name: name.into(), vm, fee_denom, in_flight: 8, level: 19, limits }
    }

    fn is_evm(&self) -> bool {
        self.vm == "evm"
    }
}

/// Records the heights `from` to `to`, waiting for heights that do not exist yet, then the state.
///
/// Needs the `CometBFT` and REST addresses, and the JSON-RPC's on an EVM chain. Calls `on_height` after each written
/// height. In a directory with an interrupted recording of the same chain, it continues after its last height. Fails on
/// a permanent error of the node; other errors are retried.
pub async fn record(
    endpoints: Endpoints,
    dir: &Path,
    from: u64,
    to: u64,
    options: &RecordOptions,
    on_height: impl FnMut(u64),
) -> Result<Summary, Error> {
    let mut recorder = Recorder::open(endpoints, dir, from, to, options).await?;
    recorder.heights(on_height).await?;
    recorder.finish().await
}

/// A recording in progress: first [`Recorder::heights`], then the requests of an indexer to [`Recorder::node`], and
/// [`Recorder::finish`].
pub struct Recorder {
    endpoints: Endpoints,
    source: Source,
    chain_id: String,
    writer: RecordingWriter,
    next: u64,
    to: u64,
    options: RecordOptions,
    exchanges: Arc<ExchangeLog>,
}

impl Recorder {
    /// Opens a directory for the heights `from` to `to`, continuing an interrupted recording.
    pub async fn open(
        endpoints: Endpoints,
        dir: &Path,
        from: u64,
        to: u64,
        options: &RecordOptions,
    ) -> Result<Self, Error> {
        let source = Source::new(endpoints.clone(), options.limits)?;
        let info = until(Backoff::default(), "node_info", || source.rest.node_info()).await?;
        if options.is_evm() {
            source.agrees_on_fees(&options.fee_denom).await?;
        }
        let writer = RecordingWriter::open(dir, options.is_evm())?;
        let next = match writer.last() {
            None => from,
            Some(last) => {
                source.same_chain(dir, last, from, to).await?;
                last.height + 1
            }
        };
        let (options, exchanges) = (options.clone(), Arc::default());
        Ok(Self { endpoints, source, chain_id: info.chain_id, writer, next, to, options, exchanges })
    }

    /// The chain's id.
    pub fn chain_id(&self) -> &str {
        &self.chain_id
    }

    /// Writes the heights, waiting for heights that do not exist yet.
    pub async fn heights(&mut self, mut on_height: impl FnMut(u64)) -> Result<(), Error> {
        let (source, evm) = (&self.source, self.options.is_evm());
        let heights = stream::iter(self.next..=self.to).map(|height| source.height(height, evm));
        let mut heights = heights.buffered(self.options.in_flight.max(1));
        while let Some(height) = heights.try_next().await? {
            self.writer.append(&height)?;
            on_height(height.height);
        }
        Ok(())
    }

    /// Clients whose answers about state become part of the recording.
    pub fn node(&self) -> Result<Node, Error> {
        let exchanges = Arc::clone(&self.exchanges);
        let observer: Observer = Arc::new(move |exchange| exchanges.record(exchange));
        // Descriptors by gRPC would not be recorded.
        let endpoints = Endpoints { grpc: Vec::new(), ..self.endpoints.clone() };
        Ok(Node::observed(endpoints, self.options.limits, &observer)?)
    }

    /// Writes the state and the files.
    pub async fn finish(mut self) -> Result<Summary, Error> {
        let (evm, options) = (self.options.is_evm(), &self.options);
        let fee_denom = self.source.state(&mut self.writer, self.to, evm).await?;
        self.exchanges.write(&mut self.writer, self.to)?;
        let fee_denom = fee_denom.as_deref().unwrap_or(&options.fee_denom);
        let about = Summary::about(&options.name, &self.chain_id, options.vm, fee_denom);
        finish(self.writer, about, options.level).await
    }
}

/// Compresses on a separate thread: a long recording takes a minute.
async fn finish(writer: RecordingWriter, about: Summary, level: i32) -> Result<Summary, Error> {
    let stopped = |e: tokio::task::JoinError| Error::Response {
        call: "writing the files".to_owned(),
        message: format!("{e}; run it again to go on"),
    };
    tokio::task::spawn_blocking(move || writer.finish(about, level)).await.map_err(stopped)?
}
