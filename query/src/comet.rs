//! The chain as CometBFT's RPC shows it: transactions with their bytes and proofs, and searches, as JSON of final bytes.
//!
//! [`Indexer::comet`] takes one snapshot for a request, or for all calls of a batch. No node is called.
//!
//! | CometBFT | method |
//! |---|---|
//! | `tx` | [`CometView::tx`] |
//! | `tx_search` | [`CometView::tx_search`] |
//! | `block_search` | [`CometView::block_search`] |

mod block_search;
mod proof;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::hash::Hash;
use schema::tx::Txs;
use store::Table as _;
use web::http_error::HttpError;

use crate::api::{block, tx};
use crate::indexer::{Indexer, View};
use crate::node_text::since;
use crate::page_writer::PageWriter;
use crate::tx_parts::{self, TxParts};
use crate::tx_search::{self, Place};

pub use crate::node_text::go_hex;
pub use crate::tx_search::Error;

/// Transactions of a page, at most.
const MAX_PER_PAGE: i64 = 100;

/// Transactions of a page without a number.
const PER_PAGE: u64 = 30;

/// The parameters of a search.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// Conditions, joined by `AND`.
    pub query: &'a str,
    /// Whether a transaction has the proof that its block has it.
    pub prove: bool,
    /// The number of the page, from 1; the first one if it is absent.
    pub page: Option<i64>,
    /// Transactions of a page; 30 if it is absent or less than 1, and at most 100.
    pub per_page: Option<i64>,
    /// `asc`, `desc`, or empty for the usual order.
    pub order_by: &'a str,
}

/// The chain in one snapshot.
pub struct CometView<'a> {
    indexer: &'a Indexer,
    view: View<'a>,
}

/// The hashes of the transactions of a block, and the sequence of the first one.
struct BlockTxs {
    height: u64,
    first: u64,
    hashes: Vec<Hash>,
}

impl Indexer {
    /// The chain as CometBFT's RPC shows it.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn comet(&self) -> Result<CometView<'_>, HttpError> {
        Ok(CometView { indexer: self, view: self.view()? })
    }
}

impl CometView<'_> {
    /// `ResultTx` of the transaction with this hash.
    ///
    /// # Errors
    /// If there is none, or if its bytes do not follow from what is stored.
    pub fn tx(&self, hash: &[u8], prove: bool) -> Result<Vec<u8>, Error> {
        if hash.is_empty() {
            return Err(Error::Invalid("transaction hash cannot be empty".to_owned()));
        }
        let from = self.indexer.identity.start_height;
        let unknown = || Error::Invalid(format!("tx ({}) not found{}", hex::encode_upper(hash), since(from)));
        let known = Hash::try_from(hash).map_err(|_| unknown())?;
        let (seq, record) = tx::find(self.indexer, &self.view, &known, b"")?.ok_or_else(unknown)?;
        let mut out = Vec::with_capacity(record.len() * 3 / 2);
        self.write_tx(seq, &TxParts::of(seq, &record)?, prove, &mut None, &mut out)?;
        Ok(out)
    }

    /// `ResultTxSearch`.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub fn tx_search(&self, search: Search<'_>) -> Result<Vec<u8>, Error> {
        let (indexer, view) = (self.indexer, &self.view);
        tx_search::parse(search.query).map_err(Error::Invalid)?;
        let descending = search.is_descending(false)?;
        let place = Place { page: search.page.unwrap_or(1), limit: search.limit(), descending };
        let found = tx_search::search(indexer, view, search.query, place)?;
        let mut page = PageWriter::new(br#"{"txs":["#.to_vec(), found.seqs.len(), indexer.page_bytes);
        let (mut one, mut block, mut seqs, mut failed) = (Vec::new(), None, found.seqs.iter(), None);
        let written = tx_parts::each(indexer, view, &found.seqs, &mut page, |page, parts| {
            one.clear();
            let seq = seqs.next().copied().unwrap_or_default();
            if let Err(error) = self.write_tx(seq, parts, search.prove, &mut block, &mut one) {
                failed = Some(error);
                return Ok(std::ops::ControlFlow::Break(()));
            }
            page.record(&one)
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if written < found.seqs.len() {
            return Err(Error::Refused(format!(
                "the {} transactions of the page have more than {} bytes: ask for fewer, with per_page={written}",
                found.seqs.len(),
                indexer.page_bytes
            )));
        }
        let (mut body, _) = page.finish(false);
        body.extend_from_slice(format!(r#"],"total_count":"{}"}}"#, found.total).as_bytes());
        Ok(body)
    }

    /// `ResultBlockSearch` of a search that finds no block.
    ///
    /// # Errors
    /// As [`Error`] says; blocks are not stored whole, so a search that finds some is refused.
    pub fn block_search(&self, search: Search<'_>) -> Result<Vec<u8>, Error> {
        block_search::find_none(self.indexer, &self.view, search.query)?;
        search.is_descending(true)?;
        tx_search::skipped(0, search.page.unwrap_or(1), search.limit()).map_err(Error::Invalid)?;
        Ok(br#"{"blocks":[],"total_count":"0"}"#.to_vec())
    }

    /// Appends a `ResultTx`; `block` has the hashes of the last block that was read for a proof.
    fn write_tx(
        &self,
        seq: u64,
        parts: &TxParts<'_>,
        prove: bool,
        block: &mut Option<BlockTxs>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let damaged = || {
            HttpError::internal(format!(
                "table `{}`: the record {seq} is none of a transaction",
                Txs::SPEC.name
            ))
        };
        let (hash, height) = parts.hash().zip(parts.height()).ok_or_else(damaged)?;
        let first = block::at(&self.view, height)?.ok_or_else(damaged)?.first_tx;
        let index = seq.saturating_sub(first);
        let raw = match parts.tx_json() {
            Some(json) => self.indexer.registries.raw_tx(self.view.snapshot(), &hash, json)?,
            None => None,
        };
        let raw = raw.ok_or_else(|| {
            Error::Refused(format!(
                "the bytes of the transaction {} do not follow from its JSON, and only that is stored: ask a node",
                hex::encode_upper(hash)
            ))
        })?;
        parts.write_result(index, out).ok_or_else(damaged)?;
        let raw = STANDARD.encode(raw);
        out.extend_from_slice(format!(r#","tx":"{raw}""#).as_bytes());
        if prove {
            let txs = match block.take().filter(|block| block.height == height) {
                Some(block) => block,
                None => self.block_txs(height)?,
            };
            let place = usize::try_from(seq.saturating_sub(txs.first)).unwrap_or(usize::MAX);
            let proof = proof::proof(&txs.hashes, place).ok_or_else(damaged)?;
            let aunts: Vec<_> =
                proof.aunts.iter().map(|aunt| format!("\"{}\"", STANDARD.encode(aunt))).collect();
            out.extend_from_slice(
                format!(
                    r#","proof":{{"root_hash":"{}","data":"{raw}","proof":{{"total":"{}","index":"{index}","leaf_hash":"{}","aunts":[{}]}}}}"#,
                    hex::encode_upper(proof.root),
                    txs.hashes.len(),
                    STANDARD.encode(proof.leaf),
                    aunts.join(",")
                )
                .as_bytes(),
            );
            *block = Some(txs);
        }
        out.push(b'}');
        Ok(())
    }

    /// The hashes of the transactions of the block at `height`.
    fn block_txs(&self, height: u64) -> Result<BlockTxs, Error> {
        let missing = || HttpError::internal(format!("block {height} is missing"));
        let block = block::at(&self.view, height)?.ok_or_else(missing)?;
        let seqs: Vec<u64> = (block.first_tx..block.first_tx.saturating_add(block.txs)).collect();
        let mut hashes = Vec::with_capacity(seqs.len());
        // Nothing is written to it: it counts the work.
        let mut page = PageWriter::new(Vec::new(), seqs.len(), usize::MAX);
        tx_parts::each(self.indexer, &self.view, &seqs, &mut page, |_, parts| {
            hashes.extend(parts.hash());
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok(BlockTxs { height, first: block.first_tx, hashes })
    }
}

impl Search<'_> {
    fn is_descending(&self, usual: bool) -> Result<bool, Error> {
        match self.order_by {
            "" => Ok(usual),
            "asc" => Ok(false),
            "desc" => Ok(true),
            _ => Err(Error::Invalid("expected order_by to be either `asc` or `desc` or empty".to_owned())),
        }
    }

    fn limit(&self) -> u64 {
        let asked = self.per_page.filter(|number| *number > 0).map(|number| number.min(MAX_PER_PAGE));
        asked.and_then(|number| u64::try_from(number).ok()).unwrap_or(PER_PAGE)
    }
}
