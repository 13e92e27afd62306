//! The heights of the longer chain: blocks, computed on demand, and the chain of their hashes in a file.
//!
//! The file is written once, in order, when the chain is opened: it needs the raw transactions and the data of
//! results, but no JSON.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chain::Vm;
use chain::comet::TxResult;
use chain::comet::proof::{data_hash, results_hash};
use replay::Recording;
use replay::recording::{Extension, Height, Outcome, RestReply, Summary, Trace};

use crate::accounts::Accounts;
use crate::auth::Auth;
use crate::cache::Cache;
use crate::cosmos::{self, Metadata};
use crate::evm_template::Place;
use crate::frame::{EthTotals, Frame, Link};
use crate::recorded::raw_txs;
use crate::schedule::{BlockSizes, Schedule};
use crate::starting_balances::starting_balances;
use crate::template::Template;
use crate::values::Values;
use crate::workload::Workload;
use crate::{Error, evm};

/// Maximum bytes of computed blocks in memory: enough for the heights that an indexer requests at a time.
const CACHE: usize = 32 << 20;

/// The computed heights of a chain.
#[derive(Debug)]
pub(crate) struct Synthesized {
    pub(crate) vm: Vm,
    pub(crate) prefix: String,
    pub(crate) schedule: Schedule,
    pub(crate) workload: Workload,
    pub(crate) metadata: Option<Metadata>,
    /// Balances of the recorded senders after the recording, by asset and address, as far as they were recorded.
    pub(crate) balances: BTreeMap<(String, [u8; 20]), u128>,
    frame: Frame,
    links: File,
    blocks: Cache,
}

/// Extends a recording to `txs` transactions in all.
///
/// Takes some seconds for a million transactions, to compute the hashes of the blocks. Fails if the recording has that
/// many already, or no transactions that can be copied.
pub fn extend(recording: Recording, txs: u64, sizes: BlockSizes) -> Result<Recording, Error> {
    let summary = recording.summary().clone();
    let more = txs.checked_sub(summary.txs).filter(|more| *more > 0);
    let more = more.ok_or(Error::Short { wanted: txs, recorded: summary.txs })?;
    let synthesized = Synthesized::new(&recording, more, sizes)?;
    let summary = Summary {
        name: format!("{}, extended to {txs} transactions", summary.name),
        last_height: synthesized.schedule.last(),
        txs,
        evm_txs: summary.evm_txs + if synthesized.vm == Vm::Evm { more } else { 0 },
        trace_frames: summary.trace_frames + synthesized.workload.frames(more),
        ..summary
    };
    Ok(recording.extended(summary, Arc::new(synthesized))?)
}

impl Synthesized {
    fn new(recording: &Recording, txs: u64, sizes: BlockSizes) -> Result<Self, Error> {
        let summary = recording.summary();
        let fail = |reason: String| Error::Recording { name: summary.name.clone(), reason };
        let vm: Vm =
            summary.vm.parse().map_err(|_| fail(format!("its virtual machine is {}", summary.vm)))?;
        let last = recording.heights().last().ok_or_else(|| fail("it has no blocks".to_owned()))?;
        let frame = Frame::after(last).map_err(|e| fail(format!("height {}: {e}", last.height)))?;
        let prefix =
            prefix(recording).ok_or_else(|| fail("the prefix of its addresses is unknown".to_owned()))?;
        let (candidates, metadata, first_token) = match vm {
            Vm::Evm => {
                let (candidates, first_token) = evm::candidates(recording, &prefix);
                (candidates, None, first_token)
            }
            _ => cosmos::candidates(recording, vm, &prefix),
        };
        if candidates.iter().all(|candidate| candidate.kind.needs_a_mint()) {
            return Err(fail("none of its transactions can be copied".to_owned()));
        }
        let accounts = Accounts::new(&prefix, txs);
        let workload = Workload::new(candidates, &sequences(recording, &prefix), first_token, accounts);
        let mut synthesized = Self {
            vm,
            schedule: Schedule::new(summary.last_height + 1, txs, sizes),
            balances: starting_balances(recording, vm, &workload),
            workload,
            metadata,
            prefix,
            frame,
            links: tempfile::tempfile()?,
            blocks: Cache::new(CACHE),
        };
        synthesized.links = synthesized.linked().map_err(|e| match e {
            Failure::Io(error) => Error::Io(error),
            Failure::Format(reason) => fail(reason),
        })?;
        Ok(synthesized)
    }

    /// The file of links: that of the last recorded height, then those of all heights.
    fn linked(&self) -> Result<File, Failure> {
        let mut file = BufWriter::new(tempfile::tempfile()?);
        let mut link = self.frame.link;
        file.write_all(&link.to_bytes())?;
        for height in self.schedule.first..=self.schedule.last() {
            let txs: Vec<(&Template, Values)> = self.txs(height).map(|tx| self.workload.tx(tx)).collect();
            let raw: Vec<Vec<u8>> = txs.iter().map(|(template, values)| template.raw(values)).collect();
            let header = self.frame.header(height, link, data_hash(&raw)).map_err(Failure::Format)?;
            let results: Vec<TxResult<'_>> = txs
                .iter()
                .map(|(template, values)| TxResult {
                    code: template.code,
                    data: template.data(values).map(Into::into),
                    gas_wanted: template.gas_wanted,
                    gas_used: template.gas_used,
                    ..TxResult::default()
                })
                .collect();
            let results = results_hash(&results).map_err(|e| Failure::Format(e.to_string()))?;
            let totals = EthTotals {
                count: txs.len(),
                gas_used: txs.iter().map(|(template, _)| template.gas_used.cast_unsigned()).sum(),
                bloom: txs
                    .iter()
                    .map(|(template, values)| template.bloom(values))
                    .fold(alloy::primitives::Bloom::default(), |a, b| a | b),
            };
            let eth_block =
                self.frame.eth_block(height, &link.eth_block, &totals).map_err(Failure::Format)?;
            link = Link {
                block: header.hash,
                results,
                eth_block: eth_block.map(|(_, hash)| hash).unwrap_or_default(),
            };
            file.write_all(&link.to_bytes())?;
        }
        file.into_inner().map_err(|e| Failure::Io(e.into_error()))
    }

    /// The link of a height, which the next header refers to.
    fn link(&self, height: u64) -> std::io::Result<Link> {
        let mut bytes = [0; Link::LEN];
        let place = (height + 1 - self.schedule.first) * Link::LEN as u64;
        self.links.read_exact_at(&mut bytes, place)?;
        Ok(Link::from_bytes(bytes))
    }

    /// The numbers of the transactions of a height.
    fn txs(&self, height: u64) -> std::ops::Range<u64> {
        self.schedule.txs_before(height)..self.schedule.txs_before(height + 1)
    }

    /// Transactions up to a height and with it.
    pub(crate) fn executed(&self, height: u64) -> u64 {
        self.schedule.txs_before(height + 1)
    }

    fn compute(&self, height: u64) -> Result<Height, Failure> {
        let (mut raw, mut quoted, mut hashes) = (Vec::new(), String::new(), Vec::new());
        let (start, end) = self.frame.results(height);
        let (mut results, mut receipts, mut traces) = (start.into_bytes(), vec![b'['], vec![b'[']);
        let (before, eth_hash) = (self.link(height - 1)?, hex::encode(self.link(height)?.eth_block));
        let txs = self.txs(height);
        let mut totals = EthTotals::default();
        results.extend_from_slice(if txs.is_empty() { b"null" } else { b"[" });
        for (position, tx) in (1..).zip(txs.clone()) {
            let (template, values) = self.workload.tx(tx);
            if position > 1 {
                quoted.push(',');
                for list in [&mut results, &mut receipts, &mut traces] {
                    list.push(b',');
                }
            }
            let bytes = template.raw(&values);
            quoted.push('"');
            STANDARD.encode_string(&bytes, &mut quoted);
            quoted.push('"');
            raw.push(bytes);
            template.render_result(&mut results, &values);
            totals.count += 1;
            totals.gas_used += template.gas_used.cast_unsigned();
            if self.vm == Vm::Evm {
                let place = Place { height, eth_block: &eth_hash, position, gas_so_far: totals.gas_used };
                let (hash, logs) = template.render_evm(&mut receipts, &mut traces, &values, place);
                hashes.push(format!("0x{}", hex::encode(hash)));
                totals.bloom |= logs;
            }
        }
        if !txs.is_empty() {
            results.push(b']');
        }
        results.extend_from_slice(end.as_bytes());
        for list in [&mut receipts, &mut traces] {
            list.push(b']');
        }
        let header = self.frame.header(height, before, data_hash(&raw)).map_err(Failure::Format)?;
        let eth_block = self.frame.eth_block(height, &before.eth_block, &totals).map_err(Failure::Format)?;
        let eth_block = eth_block.map(|(mut block, _)| {
            block["transactions"] = hashes.into();
            Bytes::from(block.to_string())
        });
        let is_evm = self.vm == Vm::Evm;
        Ok(Height {
            height,
            block: whole(self.frame.block(height, &header, &quoted).into_bytes()),
            block_results: whole(results),
            rest_txs: None,
            eth_block,
            eth_receipts: is_evm.then(|| whole(receipts)),
            eth_trace: (is_evm && !txs.is_empty()).then(|| Trace::Result(whole(traces))),
        })
    }
}

impl Extension for Synthesized {
    fn height(&self, height: u64) -> Option<Height> {
        if height < self.schedule.first || height > self.schedule.last() {
            return None;
        }
        self.blocks.get(height, || self.compute(height).ok())
    }

    fn txs_at(&self, height: u64) -> u64 {
        self.schedule.size(height)
    }

    fn rest(&self, path: &str, height: u64) -> Option<RestReply> {
        self.rest_state(path, height)
    }

    fn eth_call(&self, to: &str, data: &str, height: u64) -> Option<Outcome> {
        self.contract_state(to, data, height)
    }
}

/// Reasons why a block cannot be computed.
enum Failure {
    Io(std::io::Error),
    Format(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// A text without spare capacity, which would double the memory of the cache.
fn whole(text: Vec<u8>) -> Bytes {
    text.into_boxed_slice().into()
}

/// The prefix of account addresses, as the chain answered.
fn prefix(recording: &Recording) -> Option<String> {
    let answer = recording.state().rest("GET", "/cosmos/auth/v1beta1/bech32", None, None)?;
    let answer: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    answer["bech32_prefix"].as_str().map(str::to_owned)
}

/// The sequence of each signer after its last recorded transaction.
fn sequences(recording: &Recording, prefix: &str) -> BTreeMap<[u8; 20], u64> {
    let mut sequences = BTreeMap::new();
    for raw in recording.heights().iter().flat_map(raw_txs) {
        if let Some(auth) = Auth::parse(&raw)
            && let Some(account) = auth.account(prefix)
        {
            sequences.insert(account.address, auth.sequence + 1);
        }
    }
    sequences
}
