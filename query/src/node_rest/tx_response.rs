//! Stored records of transactions in the two forms of a node: `Tx` and `TxResponse`.

use std::borrow::Cow;
use std::ops::ControlFlow;

use memchr::memmem;
use schema::records::{self, Step};
use schema::tx::Txs;
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
pub(super) struct TxParts<'a> {
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
    pub(super) fn of(seq: u64, record: &'a [u8]) -> Result<Self, HttpError> {
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

    /// Appends the `Tx`, which has no type outside of an `Any`.
    pub(super) fn write_tx(&self, out: &mut Vec<u8>) {
        if let Some(rest) = self.tx.strip_prefix(TYPED) {
            out.push(b'{');
            out.extend_from_slice(rest);
        } else {
            out.extend_from_slice(&self.tx);
        }
    }

    /// Appends the `TxResponse`.
    pub(super) fn write_response(&self, out: &mut Vec<u8>) {
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

/// The texts before and after the first `mark`.
fn split<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memmem::find(text, mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Calls `write` with the records `seqs` until the page takes no more. Returns how many it took.
pub(super) fn each(
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
