//! What Otterscan reads beside Ethereum's methods: blocks with their fees, pages of a block and of an account, the calls of a
//! transaction. Source: the methods `ots_*` of erigon, level 8 (`rpc/jsonrpc/otterscan_*.go`).
//!
//! # Invariants
//! * A page is never cut within a block, and pages of both directions have each transaction once.
//! * Calls that are not indexed are an error, never an empty list.

mod calls;
mod contract;
mod involved;
mod lists;
mod search;

use std::sync::atomic::Ordering;

use chain::U256;
use chain::evm::fee_paid::fee_paid;
use schema::block::Block;
use schema::evm_tx::EvmTxs;
use schema::tx::Txs;
use serde_json::{Map, Value, json};
use web::http_error::HttpError;

use super::tx::{evm_seqs, parse};
use super::{Error, EvmView};

pub use self::calls::Frames;
pub(super) use self::calls::is_dispatched;
pub use self::involved::Side;

/// Digits of the first four bytes of call data, which name a function, with their prefix.
const SELECTOR: usize = 10;

impl EvmView<'_> {
    /// `erigon_getHeaderByNumber`: the header of the block at `height`. `None` above the head.
    pub fn header_only(&self, height: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut header) = self.block_members(height)? else { return Ok(None) };
        for member in ["transactions", "uncles", "withdrawals", "size"] {
            header.remove(member);
        }
        Ok(Some(text(&Value::Object(header))))
    }

    /// `ots_getBlockDetails`: the block at `height` without its transactions, with their number and the fees that they paid in wei.
    /// `None` above the head.
    pub fn block_details(&self, height: u64) -> Result<Option<Vec<u8>>, Error> {
        let (Some(mut members), Some(block)) = (self.block_members(height)?, self.stored(height)?) else {
            return Ok(None);
        };
        members.remove("transactions");
        members.insert("transactionCount".to_owned(), block.evm_txs.into());
        members.insert("logsBloom".to_owned(), Value::Null);
        let none = json!({ "blockReward": "0x0", "uncleReward": "0x0", "issuance": "0x0" });
        let fees = format!("{:#x}", self.fees(&block)?);
        Ok(Some(text(&json!({ "block": members, "issuance": none, "totalFees": fees }))))
    }

    /// `ots_getBlockTransactions`: the page `page` of `size` transactions of the block at `height`, counted from the end of the block
    /// and ascending within the page, with their receipts without logs. Call data is cut to the name of the function. `None` above
    /// the head.
    pub fn block_page(&self, height: u64, page: u64, size: u64) -> Result<Option<Vec<u8>>, Error> {
        let (Some(mut members), Some(block)) = (self.block_members(height)?, self.stored(height)?) else {
            return Ok(None);
        };
        let end = block.evm_txs.saturating_sub(page.saturating_mul(size));
        let first = evm_seqs(&block).start;
        let seqs: Vec<u64> = (first + end.saturating_sub(size)..first + end).collect();
        let (mut txs, mut receipts) = (Vec::with_capacity(seqs.len()), Vec::with_capacity(seqs.len()));
        for (seq, found) in seqs.iter().zip(self.found(&block, &seqs)?) {
            let mut tx: Map<String, Value> = object(&self.json(&found)?)?;
            if let Some(Value::String(input)) = tx.get_mut("input") {
                input.truncate(SELECTOR);
            }
            txs.push(Value::Object(tx));
            let mut receipt = Vec::new();
            self.write_receipt(&mut receipt, *seq, &found.receipt)?;
            let mut receipt = object(&receipt)?;
            receipt.insert("logs".to_owned(), Value::Null);
            receipt.insert("logsBloom".to_owned(), Value::Null);
            receipts.push(Value::Object(receipt));
        }
        members.insert("transactions".to_owned(), txs.into());
        members.insert("transactionCount".to_owned(), block.evm_txs.into());
        members.insert("logsBloom".to_owned(), Value::Null);
        Ok(Some(text(&json!({ "fullblock": members, "receipts": receipts }))))
    }

    /// The members of the block at `height`, with the hashes of its transactions.
    fn block_members(&self, height: u64) -> Result<Option<Map<String, Value>>, Error> {
        self.block(height, false)?.map(|block| object(&block)).transpose()
    }

    /// What the transactions of a block paid as fees; Cosmos transactions, whose gas has no price for Ethereum, are left out.
    fn fees(&self, block: &Block) -> Result<U256, Error> {
        let (mut receipts, mut next, mut fees) = (Vec::new(), 0, U256::ZERO);
        self.each::<EvmTxs>(evm_seqs(block), |_, receipt| {
            receipts.push(receipt.to_vec());
            Ok(())
        })?;
        self.each::<Txs>(block.first_tx..block.first_tx + block.txs, |_, record| {
            let Some(receipt) = receipts.get(next) else { return Ok(()) };
            let receipt = parse(block.first_evm_tx + next as u64, receipt)?;
            let hash = receipt.hash().map_err(HttpError::internal)?;
            let Some(tx) = self.rebuilt(record, &hash) else { return Ok(()) };
            next += 1;
            let summary = tx.summary();
            if summary.is_signed {
                let decimals = self.indexer.fee_decimals.load(Ordering::Relaxed);
                let most = summary.gas_price.saturating_mul(U256::from(summary.gas_limit));
                fees = fees.saturating_add(fee_paid(record, &receipt, most, decimals));
            }
            Ok(())
        })?;
        Ok(fees)
    }
}

/// The members of an object that was made here.
fn object(json: &[u8]) -> Result<Map<String, Value>, Error> {
    serde_json::from_slice(json).map_err(|error| Error::Failed(HttpError::internal(error)))
}

fn text(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}
