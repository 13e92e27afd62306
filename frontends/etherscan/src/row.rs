//! The rows of lists. Numbers are decimal texts, addresses and hashes hex in lower case, and what is absent is an empty text.

use chain::U256;
use chain::evm::Receipt;
use query::evm::Error;
use query::evm::history::TxRow;
use serde::Serialize;

/// Maximum bytes of a list.
const MAX_BYTES: usize = 25_000_000;

/// Appends a row to those before.
pub(crate) fn push(out: &mut Vec<u8>, row: &impl Serialize) -> Result<(), Error> {
    if !out.is_empty() {
        out.push(b',');
    }
    // Rows have texts only: writing them to memory does not fail.
    let _ = serde_json::to_writer(&mut *out, row);
    if out.len() > MAX_BYTES { Err(Error::TooLarge) } else { Ok(()) }
}

/// The decimal form of a quantity in hex; what is no quantity is left as it is.
pub(crate) fn decimal(quantity: &str) -> String {
    let digits = quantity.strip_prefix("0x").unwrap_or(quantity);
    U256::from_str_radix(digits, 16).map_or_else(|_| quantity.to_owned(), |number| number.to_string())
}

/// The selector of call data; `0x` if there is none.
pub(crate) fn method_id(input: &[u8]) -> String {
    format!("0x{}", hex::encode(input.get(..4).unwrap_or_default()))
}

/// `"1"` for true.
pub(crate) fn flag(is: bool) -> &'static str {
    if is { "1" } else { "0" }
}

/// The contract that a transaction created, or an empty text.
pub(crate) fn created<'a>(receipt: &'a Receipt<'_>) -> &'a str {
    receipt.contract_address.as_deref().unwrap_or_default()
}

/// The members that rows of transactions and of transfers share, in their forms.
pub(crate) struct Common {
    pub(crate) height: String,
    pub(crate) timestamp: String,
    pub(crate) index: String,
    pub(crate) nonce: String,
    pub(crate) gas: String,
    pub(crate) gas_price: String,
    pub(crate) gas_used: String,
    pub(crate) cumulative_gas_used: String,
    pub(crate) confirmations: String,
    pub(crate) method_id: String,
}

impl Common {
    pub(crate) fn of(row: &TxRow<'_>, head: u64) -> Self {
        let (summary, receipt) = (row.tx.summary(), row.receipt);
        Self {
            height: row.height.to_string(),
            timestamp: row.timestamp.to_string(),
            index: decimal(&receipt.transaction_index),
            nonce: summary.nonce.to_string(),
            gas: summary.gas_limit.to_string(),
            gas_price: summary.gas_price.to_string(),
            gas_used: decimal(&receipt.gas_used),
            cumulative_gas_used: decimal(&receipt.cumulative_gas_used),
            confirmations: head.saturating_sub(row.height).to_string(),
            method_id: if summary.is_signed { method_id(summary.input) } else { "0x".to_owned() },
        }
    }
}
