//! Stored records of transactions in the forms of a node: `Tx` and `TxResponse` of its REST interface, `ResultTx` of CometBFT's.

use std::borrow::Cow;
use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::hash::Hash;
use memchr::memmem;
use schema::records::{self, Step};
use schema::tx::Txs;
use serde::Deserialize;
use serde_json::value::RawValue;
use store::Table as _;
use web::http_error::HttpError;
use web::limits::lane;

use crate::indexer::{Indexer, View};
use crate::page_writer::{More, PageWriter};

/// The beginning of the JSON of a transaction within a record.
const TYPED: &[u8] = br#"{"@type":"/cosmos.tx.v1beta1.Tx","#;

/// The beginning, up to the memo, and the end of the JSON that is stored for bytes that are no transaction, as the vote data of an L1:
/// that of an empty one.
const EMPTY: (&[u8], &[u8]) =
    (br#"{"@type":"/cosmos.tx.v1beta1.Tx","body":{"messages":[],"memo":""#, br#""signatures":[]}"#);

/// The memo that a node prints for them.
const UNDECODED: &[u8] = b"decode failed tx";

/// The parts of a record that the forms have in another order.
///
/// Found by the members that [`chain::record::write_tx_record`] writes between them: no text contains one, because its quotes
/// are escaped.
pub(crate) struct TxParts<'a> {
    /// In hex.
    hash: &'a [u8],
    height: &'a [u8],
    /// From the comma before `codespace` to the value of `gas_used`.
    result: &'a [u8],
    /// The transaction, with its `@type`.
    tx: Cow<'a, [u8]>,
    /// To the second.
    time: &'a [u8],
    /// The events, and the end of the record.
    events: &'a [u8],
}

impl<'a> TxParts<'a> {
    /// The parts of the record `seq`.
    pub(crate) fn of(seq: u64, record: &'a [u8]) -> Result<Self, HttpError> {
        let parts = || {
            let rest = record.strip_prefix(br#"{"txhash":""#)?;
            let (hash, rest) = split(rest, br#"","height":""#)?;
            let (height, _) = split(rest, b"\"")?;
            let rest = rest.get(height.len() + 1..)?;
            let (result, rest) = split(rest, br#","tx":"#)?;
            let at = memmem::rfind(rest, br#","timestamp":""#)?;
            let (tx, rest) = rest.split_at(at);
            let tx = match tx.strip_prefix(EMPTY.0) {
                Some(rest) if rest.starts_with(b"\"") && rest.ends_with(EMPTY.1) => {
                    Cow::Owned([EMPTY.0, UNDECODED, rest].concat())
                }
                _ => Cow::Borrowed(tx),
            };
            let (time, events) = split(rest.strip_prefix(br#","timestamp":""#)?, b"\"")?;
            let time = time.strip_suffix(b"Z")?;
            let seconds = memchr::memchr(b'.', time).map_or(time, |dot| &time[..dot]);
            Some(Self { hash, height, result, tx, time: seconds, events })
        };
        parts().ok_or_else(|| {
            HttpError::internal(format!(
                "table `{}`: the record {seq} is none of a transaction",
                Txs::SPEC.name
            ))
        })
    }

    /// The hash; `None` if the record is damaged.
    pub(crate) fn hash(&self) -> Option<Hash> {
        let mut hash = [0; 32];
        hex::decode_to_slice(self.hash, &mut hash).ok()?;
        Some(hash)
    }

    /// The height; `None` if the record is damaged.
    pub(crate) fn height(&self) -> Option<u64> {
        std::str::from_utf8(self.height).ok()?.parse().ok()
    }

    /// The JSON of the transaction; `None` if its bytes were no transaction.
    pub(crate) fn tx_json(&self) -> Option<&str> {
        match &self.tx {
            Cow::Borrowed(json) => std::str::from_utf8(json).ok(),
            Cow::Owned(_) => None,
        }
    }

    /// Appends the members `hash`, `height`, `index` and `tx_result` of a `ResultTx`, without the brace behind them. `None` if the record is
    /// damaged; then `out` is unchanged.
    pub(crate) fn write_result(&self, index: u64, out: &mut Vec<u8>) -> Option<()> {
        let result = [b"{", self.result.strip_prefix(b",")?, b"}"].concat();
        let result: TxResult<'_> = serde_json::from_slice(&result).ok()?;
        let data = match hex::decode(result.data).ok()? {
            data if data.is_empty() => "null".to_owned(),
            data => format!("\"{}\"", STANDARD.encode(data)),
        };
        let events = self.events.strip_prefix(br#","events":"#)?.strip_suffix(b"}")?;
        let TxResult { codespace, code, log, info, gas_wanted, gas_used, .. } = result;
        let (hash, height) = (std::str::from_utf8(self.hash).ok()?, std::str::from_utf8(self.height).ok()?);
        let head = format!(
            r#"{{"hash":"{hash}","height":"{height}","index":{index},"tx_result":{{"code":{code},"data":{data},"log":{log},"info":{info},"gas_wanted":{gas_wanted},"gas_used":{gas_used},"events":"#
        );
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(events);
        out.extend_from_slice(br#","codespace":"#);
        out.extend_from_slice(codespace.get().as_bytes());
        out.push(b'}');
        Some(())
    }

    /// Appends the `Tx`, which has no type outside of an `Any`.
    pub(crate) fn write_tx(&self, out: &mut Vec<u8>) {
        if let Some(rest) = self.tx.strip_prefix(TYPED) {
            out.push(b'{');
            out.extend_from_slice(rest);
        } else {
            out.extend_from_slice(&self.tx);
        }
    }

    /// Appends the `TxResponse`.
    pub(crate) fn write_response(&self, out: &mut Vec<u8>) {
        let Self { hash, height, result, tx, time, events } = self;
        let parts: [&[u8]; 11] = [
            br#"{"height":""#,
            height,
            br#"","txhash":""#,
            hash,
            b"\"",
            result,
            br#","tx":"#,
            tx,
            br#","timestamp":""#,
            time,
            b"Z\"",
        ];
        for part in parts {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(events);
    }
}

/// The result of a transaction in a record.
#[derive(Deserialize)]
struct TxResult<'a> {
    #[serde(borrow)]
    codespace: &'a RawValue,
    code: u32,
    data: &'a str,
    #[serde(borrow, rename = "raw_log")]
    log: &'a RawValue,
    #[serde(borrow)]
    info: &'a RawValue,
    #[serde(borrow)]
    gas_wanted: &'a RawValue,
    #[serde(borrow)]
    gas_used: &'a RawValue,
}

/// The texts before and after the first `mark`.
fn split<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memmem::find(text, mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Calls `write` with the records `seqs` until the page takes no more. Returns how many it took.
pub(crate) fn each(
    indexer: &Indexer,
    view: &View<'_>,
    seqs: &[u64],
    page: &mut PageWriter,
    mut write: impl FnMut(&mut PageWriter, &TxParts<'_>) -> More,
) -> Result<usize, HttpError> {
    let (mut taken, mut failed) = (0, None);
    records::walk::<Txs>(view.snapshot(), &indexer.codec, seqs, &mut |step| {
        let more = match step {
            Step::Row(bytes) => page.row(bytes),
            Step::Record(record) => lane::spend(record.len() as u64)
                .and_then(|()| TxParts::of(seqs.get(taken).copied().unwrap_or_default(), record))
                .and_then(|parts| write(page, &parts))
                .inspect(|more| taken += usize::from(more.is_continue())),
        };
        more.unwrap_or_else(|error| {
            failed = Some(error);
            ControlFlow::Break(())
        })
    })
    .map_err(HttpError::internal)?;
    failed.map_or(Ok(taken), Err)
}
