//! A recorded chain in memory: the raw replies of a node per height, and its replies about state.
//!
//! # Invariants
//!
//! - All texts are the node's own, byte for byte.
//! - Heights are dense from first to last.
//! - Memory is the text of the heights once, plus the replies about state; an extended recording has the text compressed.

mod accounts;
mod block;
mod bridging;
mod events;
mod extension;
mod heights;
mod lines;
mod state;
mod write;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Error;
use accounts::Accounts;
pub use block::{Height, Trace};
pub(crate) use block::{items, raw_txs};
pub(crate) use bridging::Bridging;
pub(crate) use events::{Event, Indexed};
pub use extension::Extension;
use heights::Heights;
pub use state::{BotReply, Outcome, RestReply, StateReplies};
pub(crate) use state::{cometbft_path, query_pairs};
pub use write::{Line, RecordingWriter};

/// The version of the recording format that this code reads and writes.
pub const FORMAT: u32 = 1;

pub(crate) const SUMMARY_FILE: &str = "recording.json";
pub(crate) const BLOCKS_FILE: &str = "blocks.ndjson.zst";
pub(crate) const STATE_FILE: &str = "state.ndjson.zst";
/// Further replies, taken after the last height; few recordings have it.
const EXTRA_FILE: &str = "extra.ndjson.zst";

/// The [`Summary::vm`] of an EVM chain that is not a rollup: it has no heights, only answers over JSON-RPC.
const ETHEREUM: &str = "ethereum";

/// `recording.json`: identity and size of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The format, [`FORMAT`].
    pub format: u32,
    /// The recording's name.
    pub name: String,
    /// The chain's id.
    pub chain_id: String,
    /// `evm`, `move`, `wasm`, `none`, or `ethereum` for an EVM chain that is not a rollup.
    pub vm: String,
    /// The first recorded height; 0 if there are none.
    pub first_height: u64,
    /// The last recorded height.
    pub last_height: u64,
    /// Raw transactions in all blocks.
    pub txs: u64,
    /// EVM receipts in all blocks.
    pub evm_txs: u64,
    /// Call frames in all traces.
    pub trace_frames: u64,
    /// The denomination of fees; empty if unknown to the recorder.
    pub fee_denom: String,
    /// Lines of kind `rest` and `eth_call` in the state file.
    pub state_queries: u64,
}

impl Summary {
    /// The summary of a recording before it is written: the counts and heights are 0 until [`RecordingWriter::finish`]
    /// sets them.
    pub fn about(name: &str, chain_id: &str, vm: &str, fee_denom: &str) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            chain_id: chain_id.to_owned(),
            vm: vm.to_owned(),
            first_height: 0,
            last_height: 0,
            txs: 0,
            evm_txs: 0,
            trace_frames: 0,
            fee_denom: fee_denom.to_owned(),
            state_queries: 0,
        }
    }
}

/// Location of a transaction: its height and its position in the block.
pub(crate) type Place = (u64, usize);

/// A recorded chain, opened.
#[derive(Debug)]
pub struct Recording {
    summary: Summary,
    heights: Heights,
    state: Arc<StateReplies>,
    /// The height above which the history is forged, not recorded.
    forked_above: Option<u64>,
    /// Computed heights after the recorded ones.
    extension: Option<Arc<dyn Extension>>,
    txs: OnceLock<HashMap<[u8; 32], Place>>,
    eth_txs: OnceLock<HashMap<String, Place>>,
    indexed: OnceLock<Vec<Indexed>>,
    bridging: OnceLock<Vec<Bridging>>,
    hashes: OnceLock<HashMap<String, u64>>,
    accounts: OnceLock<Accounts>,
    tx_counts: OnceLock<Vec<u64>>,
}

impl Recording {
    /// Reads a recording's directory into memory.
    ///
    /// Fails if a file is missing or incomplete, a line or the format version is invalid, or the heights are not dense
    /// from `first_height` to `last_height`.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let summary = read_summary(&dir.join(SUMMARY_FILE))?;
        let heights =
            if summary.vm == ETHEREUM { Vec::new() } else { read_heights(&dir.join(BLOCKS_FILE), &summary)? };
        let mut state = StateReplies::default();
        lines::for_each_line(&dir.join(STATE_FILE), |line| state.add(line))?;
        let extra = dir.join(EXTRA_FILE);
        if extra.exists() {
            lines::for_each_line(&extra, |line| state.add(line))?;
        }
        Ok(Self::new(summary, heights, Arc::new(state)))
    }

    /// The same chain under another name, with its last heights replaced by these.
    pub(crate) fn with_last(&self, name: String, last: &[Height]) -> Result<Self, Error> {
        let heights: Vec<Height> = self.heights.iter().collect();
        let (same, old) = heights.split_at(heights.len().saturating_sub(last.len()));
        let (old, new) = (counted(old)?, counted(last)?);
        let mut summary = Summary { name, ..self.summary.clone() };
        summary.txs = (summary.txs + new.txs).saturating_sub(old.txs);
        summary.evm_txs = (summary.evm_txs + new.evm_txs).saturating_sub(old.evm_txs);
        summary.trace_frames = (summary.trace_frames + new.trace_frames).saturating_sub(old.trace_frames);
        let recording = Self::new(summary, [same, last].concat(), Arc::clone(&self.state));
        Ok(Self { forked_above: self.forked_above, ..recording })
    }

    fn new(summary: Summary, heights: Vec<Height>, state: Arc<StateReplies>) -> Self {
        Self {
            summary,
            heights: Heights::Text(heights),
            state,
            forked_above: None,
            extension: None,
            txs: OnceLock::new(),
            eth_txs: OnceLock::new(),
            indexed: OnceLock::new(),
            bridging: OnceLock::new(),
            hashes: OnceLock::new(),
            accounts: OnceLock::new(),
            tx_counts: OnceLock::new(),
        }
    }

    /// The same, with a history above `height` that was not recorded.
    pub(crate) fn forking_above(self, height: u64) -> Self {
        let lowest = self.forked_above.map_or(height, |above| above.min(height));
        Self { forked_above: Some(lowest), ..self }
    }

    /// Whether the state of a height is that of a history that was not recorded.
    pub(crate) fn is_forked_at(&self, height: u64) -> bool {
        self.forked_above.is_some_and(|above| height > above)
    }

    /// The same chain with the heights of `extension` after the recorded ones, under the `summary` of both.
    ///
    /// Searches by hash, event or account find only what was recorded. Fails if the recorded heights cannot be
    /// compressed.
    pub fn extended(self, summary: Summary, extension: Arc<dyn Extension>) -> std::io::Result<Self> {
        Ok(Self { summary, extension: Some(extension), heights: self.heights.compressed()?, ..self })
    }

    /// The extension, and its first height, if `height` is in it.
    pub(crate) fn extension_at(&self, height: u64) -> Option<(&dyn Extension, u64)> {
        let first = self.first() + self.heights.len() as u64;
        self.extension.as_deref().filter(|_| height >= first).map(|extension| (extension, first))
    }

    /// Identity and size of the recording.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Whether the chain is a rollup with an EVM, and so has a JSON-RPC besides the other services.
    pub fn is_evm(&self) -> bool {
        self.summary.vm == "evm"
    }

    /// Whether it is an EVM chain that is not a rollup: it has a JSON-RPC, but no other services and no heights.
    pub fn is_ethereum(&self) -> bool {
        self.summary.vm == ETHEREUM
    }

    /// Whether answers of the bridge's executor were recorded.
    pub fn has_executor(&self) -> bool {
        !self.state.bots().is_empty()
    }

    /// The first recorded height.
    pub fn first(&self) -> u64 {
        self.summary.first_height
    }

    /// The last recorded height.
    pub fn last(&self) -> u64 {
        self.summary.last_height
    }

    /// The replies about a height, if it was recorded or is computed. The copy shares the text.
    pub fn height(&self, height: u64) -> Option<Height> {
        if let Some((extension, _)) = self.extension_at(height) {
            return extension.height(height);
        }
        self.recorded(height)
    }

    /// The replies about a recorded height.
    pub(crate) fn recorded(&self, height: u64) -> Option<Height> {
        let index = height.checked_sub(self.first())?;
        self.heights.get(usize::try_from(index).ok()?)
    }

    /// All recorded heights, in order; none of an extended recording, whose heights are compressed.
    pub fn heights(&self) -> &[Height] {
        self.heights.text()
    }

    /// Copies of all recorded heights, in order.
    pub(crate) fn recorded_heights(&self) -> impl DoubleEndedIterator<Item = Height> {
        self.heights.iter()
    }

    /// The replies about state.
    pub fn state(&self) -> &StateReplies {
        &self.state
    }

    /// Location of the transaction with this SHA-256. The first call hashes every recorded transaction.
    pub(crate) fn place_of_tx(&self, hash: &[u8; 32]) -> Option<Place> {
        self.txs.get_or_init(|| self.index_txs()).get(hash).copied()
    }

    /// All transactions with their events, in order. The first call reads the results of every height.
    pub(crate) fn indexed(&self) -> &[Indexed] {
        self.indexed.get_or_init(|| events::index(self.heights.iter()))
    }

    /// The events that change the state of IBC and of the bridge, in order. The first call reads the results of every
    /// height.
    pub(crate) fn bridging(&self) -> &[Bridging] {
        self.bridging.get_or_init(|| bridging::index(self.heights.iter()))
    }

    /// The height of the block with this hash, upper-case hex. The first call reads every block.
    pub(crate) fn height_of_block(&self, hash: &str) -> Option<u64> {
        let read = |height: Height| height.head().map(|head| (head.hash.to_owned(), height.height)).ok();
        self.hashes.get_or_init(|| self.heights.iter().filter_map(read).collect()).get(hash).copied()
    }

    /// Location of the receipt of this EVM hash (lower case, `0x`). The first call reads every recorded receipt.
    pub(crate) fn place_of_receipt(&self, hash: &str) -> Option<Place> {
        self.eth_txs.get_or_init(|| self.index_receipts()).get(hash).copied()
    }

    /// Number of raw transactions of a height; 0 if it was not recorded. The first call reads every block.
    pub(crate) fn txs_at(&self, height: u64) -> u64 {
        let count = |height: Height| height.raw_txs().map_or(0, |txs| txs.len() as u64);
        let counts = self.tx_counts.get_or_init(|| self.heights.iter().map(count).collect());
        if let Some((extension, _)) = self.extension_at(height) {
            return extension.txs_at(height);
        }
        let index = height.checked_sub(self.first()).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| counts.get(index).copied()).unwrap_or(0)
    }

    /// Accounts: their sequences, and the node's own JSON of them. The first call reads the results of
    /// every height.
    pub(crate) fn accounts(&self) -> &Accounts {
        self.accounts.get_or_init(|| Accounts::collect(self.heights.iter(), &self.state))
    }

    fn index_txs(&self) -> HashMap<[u8; 32], Place> {
        let mut index = HashMap::new();
        for height in self.heights.iter() {
            let raw_txs = height.raw_txs().unwrap_or_else(|e| {
                tracing::warn!(
                    height = height.height,
                    "the transactions of this block cannot be looked up: {e}"
                );
                Vec::new()
            });
            for (i, raw) in raw_txs.iter().enumerate() {
                match STANDARD.decode(raw.as_bytes()) {
                    Ok(bytes) => {
                        index.insert(Sha256::digest(bytes).into(), (height.height, i));
                    }
                    Err(e) => tracing::warn!(height = height.height, tx = i, "not base64: {e}"),
                }
            }
        }
        index
    }

    fn index_receipts(&self) -> HashMap<String, Place> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Receipt {
            transaction_hash: String,
        }
        let mut index = HashMap::new();
        for height in self.heights.iter() {
            let receipts = height.eth_receipts.as_deref().unwrap_or(b"[]");
            match serde_json::from_slice::<Vec<Receipt>>(receipts) {
                Ok(receipts) => {
                    let places = receipts.into_iter().enumerate();
                    index.extend(places.map(|(i, receipt)| (receipt.transaction_hash, (height.height, i))));
                }
                Err(e) => {
                    tracing::warn!(
                        height = height.height,
                        "the receipts of this block cannot be looked up: {e}"
                    );
                }
            }
        }
        index
    }
}

/// A summary of counts only.
fn counted(heights: &[Height]) -> Result<Summary, Error> {
    let mut counts = Summary::about("", "", "", "");
    for height in heights {
        let odd = |message| Error::Fork { height: height.height, message };
        write::count(height, &mut counts).map_err(odd)?;
    }
    Ok(counts)
}

fn read_summary(path: &Path) -> Result<Summary, Error> {
    let text = fs::read(path).map_err(|e| Error::io("open", path, e))?;
    let summary: Summary = serde_json::from_slice(&text).map_err(|e| Error::file(path, e.to_string()))?;
    if summary.format != FORMAT {
        let message = format!("format {}; this program reads format {FORMAT}", summary.format);
        return Err(Error::file(path, message));
    }
    let no_heights = summary.first_height == 0 && summary.last_height == 0;
    let sound = if summary.vm == ETHEREUM { no_heights } else { summary.first_height > 0 };
    if !sound || summary.last_height < summary.first_height {
        let message = format!("heights {} to {} are not a range", summary.first_height, summary.last_height);
        return Err(Error::file(path, message));
    }
    Ok(summary)
}

fn read_heights(path: &Path, summary: &Summary) -> Result<Vec<Height>, Error> {
    let mut heights = Vec::new();
    let mut next = summary.first_height;
    lines::for_each_line(path, |line| {
        let height = Height::parse(line)?;
        if height.height != next || next > summary.last_height {
            let (first, last) = (summary.first_height, summary.last_height);
            return Err(format!(
                "height {} where {next} was expected ({SUMMARY_FILE} says {first} to {last})",
                height.height
            ));
        }
        next += 1;
        heights.push(height);
        Ok(())
    })?;
    if next <= summary.last_height {
        let message = format!("ends before height {next}; {SUMMARY_FILE} says up to {}", summary.last_height);
        return Err(Error::file(path, message));
    }
    Ok(heights)
}
