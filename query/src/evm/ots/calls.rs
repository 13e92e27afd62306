//! The calls of a transaction as Otterscan shows them: from the user's own call down.
//!
//! minievm traces a transaction as one synthetic call, below which are those of its ante handler (decimals and fee), the user's own
//! and those that return the fee. Only a Cosmos transaction is shown by all of them.

use chain::evm::Receipt;
use schema::internal_tx::Calls;
use serde::{Deserialize, Serialize};

use super::super::tx::{Found, damaged, parse};
use super::super::{Error, EvmView, LogLimits};
use crate::api;

/// Maximum bytes of a transaction's calls that are read for a response.
const MAX_READ: usize = 64 << 20;

/// `transfer(address,uint256)`.
const TRANSFER: &str = "0xa9059cbb";

/// Callers of the chain itself: no account, and the module of the EVM.
const CHAIN: [&str; 2] =
    ["0x0000000000000000000000000000000000000000", "0x0000000000000000000000000000000000000001"];

/// Which calls are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// All below the user's own.
    #[default]
    Node,
    /// Those of users and contracts: without the calls by which the chain moves a native value, which is a token here.
    Clean,
}

/// A call as it is stored.
#[derive(Deserialize)]
struct Frame {
    parent_index: i64,
    index: u64,
    #[serde(rename = "type")]
    kind: String,
    from: String,
    to: String,
    input: String,
    output: String,
    value: String,
}

/// An entry of `ots_traceTransaction`.
#[derive(Serialize)]
struct Entry<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    depth: u64,
    from: &'a str,
    to: &'a str,
    value: Option<String>,
    input: &'a str,
    output: &'a str,
}

/// An entry of `ots_getInternalOperations`.
#[derive(Serialize)]
struct Operation<'a> {
    #[serde(rename = "type")]
    kind: u8,
    from: &'a str,
    to: &'a str,
    value: String,
}

/// A call that is shown, with its distance from the user's own.
struct Shown<'f> {
    depth: u64,
    frame: &'f Frame,
}

impl<'f> Shown<'f> {
    fn entry(&self) -> Entry<'f> {
        let Self { depth, frame } = *self;
        Entry {
            kind: &frame.kind,
            depth,
            from: address(&frame.from),
            to: address(&frame.to),
            value: (!matches!(&*frame.kind, "STATICCALL" | "DELEGATECALL")).then(|| quantity(&frame.value)),
            input: &frame.input,
            output: &frame.output,
        }
    }

    /// What it does besides calling; `None` if nothing.
    fn operation(&self) -> Option<Operation<'f>> {
        let (frame, value) = (self.frame, quantity(&self.frame.value));
        let kind = match &*frame.kind {
            "CALL" if value != "0x0" => 0,
            "SELFDESTRUCT" => 1,
            "CREATE" => 2,
            "CREATE2" => 3,
            _ => return None,
        };
        Some(Operation { kind, from: address(&frame.from), to: address(&frame.to), value })
    }
}

impl EvmView<'_> {
    /// `ots_traceTransaction`: all calls of a transaction, each before those that it makes. None if it failed before its execution.
    /// `None` if there is no such transaction.
    pub fn trace(&self, hash: &[u8; 32], which: Frames) -> Result<Option<Vec<u8>>, Error> {
        let Some(found) = self.find(hash)? else { return Ok(None) };
        let frames = self.frames(hash, &found)?;
        let shown = shown(&frames, &found, which)?;
        written(shown.iter().map(Shown::entry)).map(Some)
    }

    /// `ots_getInternalOperations`: the calls below the user's own that move a value, create a contract or destroy one. `None` if
    /// there is no such transaction.
    pub fn internal_operations(&self, hash: &[u8; 32], which: Frames) -> Result<Option<Vec<u8>>, Error> {
        let Some(found) = self.find(hash)? else { return Ok(None) };
        let frames = self.frames(hash, &found)?;
        // A Cosmos transaction has no call of its own that is shown elsewhere.
        let is_stand_in = !found.tx.summary().is_signed;
        let shown = shown(&frames, &found, which)?;
        let below = shown.iter().filter(|call| call.depth > 0 || is_stand_in);
        written(below.filter_map(Shown::operation)).map(Some)
    }

    /// `ots_getTransactionError`: what a failed transaction returned; nothing if it did not, or did not fail. `None` if there is no
    /// such transaction.
    pub fn revert_data(&self, hash: &[u8; 32]) -> Result<Option<String>, Error> {
        let Some(found) = self.find(hash)? else { return Ok(None) };
        if parse(0, &found.receipt)?.status != "0x0" {
            return Ok(Some("0x".to_owned()));
        }
        let frames = self.frames(hash, &found)?;
        let output = shown(&frames, &found, Frames::Node)?.first().map(|root| root.frame.output.clone());
        Ok(Some(output.unwrap_or_else(|| "0x".to_owned())))
    }

    /// The account that created `contract` in this transaction, by its calls; `None` if no call did.
    pub(super) fn creator_by_calls(
        &self,
        hash: &[u8; 32],
        found: &Found,
        contract: &str,
    ) -> Result<Option<String>, Error> {
        let frames = self.frames(hash, found)?;
        let created =
            frames.into_iter().rev().find(|frame| frame.kind.starts_with("CREATE") && frame.to == contract);
        Ok(created.map(|frame| frame.from))
    }

    /// The calls of a transaction, in their order.
    fn frames(&self, hash: &[u8; 32], found: &Found) -> Result<Vec<Frame>, Error> {
        let height = api::evm_tx::height(0, &found.receipt)?;
        let Some((seq, record)) = api::evm_tx::find(self.indexer, &self.view, hash)? else {
            return Ok(Vec::new());
        };
        let run = api::internal_tx::frames(self.indexer, &self.view, hash, (seq, &record))?;
        if run.len == 0 {
            let lane = self.view.calls()?;
            // Without a lane of calls there is no row of one.
            if lane.height == 0 {
                return Err(Error::Off("internal_txs"));
            }
            return Err(Error::NoCalls { height, is_late: lane.height < height });
        }
        let (mut frames, mut read) = (Vec::new(), 0);
        self.each::<Calls>(run.first..run.first + run.len, |seq, record| {
            read += record.len();
            if read > MAX_READ {
                return Err(Error::TooLarge);
            }
            frames.push(serde_json::from_slice(record).map_err(|error| damaged::<Calls>(seq, &error))?);
            Ok(())
        })?;
        Ok(frames)
    }
}

/// The calls that are shown: the user's own and all below it.
fn shown<'f>(frames: &'f [Frame], found: &Found, which: Frames) -> Result<Vec<Shown<'f>>, Error> {
    let tx = found.tx.summary();
    let is_stand_in = !tx.is_signed;
    let root = if is_stand_in || tx.is_root {
        0
    } else {
        match own_call(frames, &parse(0, &found.receipt)?, tx.input) {
            Some(root) => root.index,
            None => return Ok(Vec::new()),
        }
    };
    // By index: the distance of each call that is shown; of those that are not, and all below them, none.
    let mut depths: Vec<Option<u64>> = vec![None; frames.len()];
    let (mut shown, mut moved) = (Vec::new(), vec![false; frames.len()]);
    for (place, frame) in frames.iter().enumerate() {
        let parent = usize::try_from(frame.parent_index).ok().filter(|parent| *parent < place);
        let above = parent.and_then(|parent| depths[parent]);
        let depth = if frame.index == root {
            Some(0)
        } else if is_dispatched(frame.parent_index, frame.index, root, &frame.from) {
            Some(1)
        } else {
            above.map(|depth| depth + 1)
        };
        let is_hidden = which == Frames::Clean
            && frame.index != root
            && parent.is_some_and(|parent| {
                CHAIN.contains(&&*frame.from)
                    || !moved[parent] && moves(&frames[parent], frame) && {
                        moved[parent] = true;
                        true
                    }
            });
        depths[place] = depth.filter(|_| !is_hidden);
        let Some(depth) = depths[place] else { continue };
        match (is_stand_in, depth) {
            // The synthetic call is none.
            (true, 0) => {}
            (true, _) => shown.push(Shown { depth: depth - 1, frame }),
            (false, _) => shown.push(Shown { depth, frame }),
        }
    }
    Ok(shown)
}

/// The call that the user made: the last one below the synthetic one with his address, receiver and data.
fn own_call<'f>(frames: &'f [Frame], receipt: &Receipt<'_>, input: &[u8]) -> Option<&'f Frame> {
    let input = hex::encode(input);
    let is_own = |frame: &&Frame| {
        let to_same = if receipt.to.is_empty() {
            frame.kind.starts_with("CREATE")
        } else {
            frame.to.eq_ignore_ascii_case(&receipt.to)
        };
        frame.parent_index == 0
            && to_same
            && frame.from.eq_ignore_ascii_case(&receipt.from)
            && frame.input.strip_prefix("0x") == Some(&input)
    };
    frames.iter().rev().find(is_own)
}

/// True for the call of a message that a contract gave to the precompile of Cosmos messages: the chain executes it after the user's
/// own call `root`, next to it, and its caller is the contract. All other calls there are of the chain itself.
pub(in crate::evm) fn is_dispatched(parent_index: i64, index: u64, root: u64, from: &str) -> bool {
    root > 0 && parent_index == 0 && index > root && !CHAIN.contains(&from)
}

/// True if `call` is how the chain moves the value of `parent`: a transfer of the fee token from its caller to its receiver.
fn moves(parent: &Frame, call: &Frame) -> bool {
    let receiver = parent.to.strip_prefix("0x").unwrap_or_default();
    let transfer = call.input.strip_prefix(TRANSFER).and_then(|rest| rest.strip_prefix(&"0".repeat(24)));
    call.kind == "CALL"
        && call.from == parent.from
        && quantity(&parent.value) != "0x0"
        && transfer.is_some_and(|rest| rest.starts_with(receiver))
}

/// An address; a creation that failed has none.
fn address(text: &str) -> &str {
    if text.is_empty() { CHAIN[0] } else { text }
}

/// Bytes as a quantity.
fn quantity(bytes: &str) -> String {
    let digits = bytes.strip_prefix("0x").unwrap_or(bytes).trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

/// A JSON array, as long as a response may be.
fn written(rows: impl Iterator<Item = impl Serialize>) -> Result<Vec<u8>, Error> {
    let mut out = vec![b'['];
    for row in rows {
        if out.len() > 1 {
            out.push(b',');
        }
        let json = serde_json::to_vec(&row).map_err(web::http_error::HttpError::internal)?;
        out.extend_from_slice(&json);
        if out.len() > LogLimits::default().bytes {
            return Err(Error::TooLarge);
        }
    }
    out.push(b']');
    Ok(out)
}
