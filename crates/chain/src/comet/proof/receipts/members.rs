//! The members of one receipt: those that follow from its transaction, and their comparison with a node's.
//!
//! Quantities are compared as numbers and hex without regard to case. Positions are compared in the forms of all versions
//! of the node: `transactionIndex` counts from 1, or from 0, and `logIndex` within the block, or within the transaction.

use alloy::primitives::U256;

use super::logs;
use crate::comet::TxResult;
use crate::evm::data::EvmData;
use crate::evm::eth_form::EthForm;
use crate::evm::{Log, Receipt, hex_quantity, quantity};
use crate::hash::Hash;

/// A member with another value.
pub(super) struct Wrong {
    pub(super) member: &'static str,
    pub(super) actual: String,
    pub(super) expected: String,
}

/// The place of a receipt in the chain.
pub(super) struct Place<'n> {
    pub(super) height: u64,
    pub(super) block_hash: &'n str,
    /// Position in the block, from 1.
    pub(super) index: u64,
    /// Gas used by the receipts before.
    pub(super) gas_before: u64,
}

/// The receipt of a transaction, but for the members that [`crate::evm::normalise`] writes. `form` is the Ethereum
/// transaction, `None` for a stand-in, and `sender` its signer.
pub(super) fn derived<'a>(
    place: &Place<'_>,
    hash: &Hash,
    (form, sender): (Option<&EthForm>, [u8; 20]),
    result: &TxResult<'_>,
    logs: Vec<Log<'a>>,
) -> Receipt<'a> {
    let creates = form.is_some_and(|form| form.to.is_none()) && result.code == 0;
    let price = form.map_or(U256::ZERO, |form| form.fee_cap);
    // The node's conversion reinterprets the bits as well.
    let gas = result.gas_used.cast_unsigned();
    Receipt {
        block_hash: place.block_hash.to_owned().into(),
        block_number: hex_quantity(place.height),
        contract_address: creates.then(|| created(result).into()),
        cumulative_gas_used: hex_quantity(place.gas_before.wrapping_add(gas)),
        effective_gas_price: format!("{price:#x}").into(),
        from: prefixed(&sender).into(),
        gas_used: hex_quantity(gas),
        logs_bloom: logs::bloom(&logs),
        logs,
        status: hex_quantity(u64::from(result.code == 0)),
        to: form.and_then(|form| form.to).map(|to| prefixed(&to)).unwrap_or_default().into(),
        transaction_hash: prefixed(hash).into(),
        transaction_index: hex_quantity(place.index),
        kind: hex_quantity(form.map_or(0, |form| u64::from(form.kind))),
    }
}

/// The forms in which a node numbers positions.
#[derive(Clone, Copy, Default)]
pub(super) struct Numbering {
    /// Transactions count from 0.
    txs_from_zero: bool,
    /// Logs before this receipt in its block.
    logs_before: u64,
}

impl Numbering {
    /// The numbering of `receipts`, all of one block.
    pub(super) fn from_receipts(receipts: &[Receipt<'_>]) -> Self {
        let first = receipts.first().and_then(|first| quantity(&first.transaction_index));
        Self { txs_from_zero: first == Some(0), logs_before: 0 }
    }

    /// Compares a node's receipt with the derived one, and advances.
    pub(super) fn compare(&mut self, actual: &Receipt<'_>, expected: &Receipt<'_>) -> Result<(), Wrong> {
        number("blockNumber", &actual.block_number, &expected.block_number)?;
        same("blockHash", &actual.block_hash, &expected.block_hash)?;
        let index = quantity(&expected.transaction_index).map(|index| index - u64::from(self.txs_from_zero));
        if quantity(&actual.transaction_index) != index {
            return wrong("transactionIndex", &actual.transaction_index, &expected.transaction_index);
        }
        number("status", &actual.status, &expected.status)?;
        number("gasUsed", &actual.gas_used, &expected.gas_used)?;
        number("cumulativeGasUsed", &actual.cumulative_gas_used, &expected.cumulative_gas_used)?;
        number("type", &actual.kind, &expected.kind)?;
        number("effectiveGasPrice", &actual.effective_gas_price, &expected.effective_gas_price)?;
        same("from", &actual.from, &expected.from)?;
        same("to", &actual.to, &expected.to)?;
        let contract =
            |receipt: &Receipt<'_>| receipt.contract_address.as_deref().unwrap_or_default().to_owned();
        same("contractAddress", &contract(actual), &contract(expected))?;
        self.compare_logs(actual, expected)?;
        same("logsBloom", &actual.logs_bloom, &expected.logs_bloom)
    }

    fn compare_logs(&mut self, actual: &Receipt<'_>, expected: &Receipt<'_>) -> Result<(), Wrong> {
        let (found, wanted) = (actual.logs.len(), expected.logs.len());
        if found != wanted {
            return wrong("logs", &format!("{found} logs"), &format!("{wanted} logs"));
        }
        for (at, (log, wanted)) in (0_u64..).zip(actual.logs.iter().zip(&expected.logs)) {
            if let Some((member, actual, expected)) = logs::difference(log, wanted) {
                return wrong(member, actual, expected);
            }
            same("logs[].blockNumber", &log.block_number, &actual.block_number)?;
            same("logs[].blockHash", &log.block_hash, &actual.block_hash)?;
            same("logs[].transactionHash", &log.transaction_hash, &actual.transaction_hash)?;
            same("logs[].transactionIndex", &log.transaction_index, &actual.transaction_index)?;
            let index = quantity(&log.log_index);
            if index != Some(at) && index != Some(self.logs_before + at) {
                return wrong("logs[].logIndex", &log.log_index, &wanted.log_index);
            }
            if log.removed {
                return wrong("logs[].removed", "true", "false");
            }
        }
        self.logs_before += found as u64;
        Ok(())
    }
}

/// The contract that the data contains. Exception: if the constructor of a creation sent further creations, the node
/// shows the last contract of the events (`minievm:indexer/utils.go`).
fn created(result: &TxResult<'_>) -> String {
    let mut events = result.events.iter().filter(|event| event.kind == "create");
    if let (Some(_), Some(second)) = (events.next(), events.next()) {
        let last = events.next_back().unwrap_or(second);
        return last.value("contract").map(ToString::to_string).unwrap_or_default();
    }
    let data = result.data_bytes().unwrap_or_default();
    String::from_utf8_lossy(EvmData::read(&data).created.unwrap_or_default()).into_owned()
}

fn prefixed(bytes: &[u8]) -> String {
    alloy::primitives::hex::encode_prefixed(bytes)
}

/// A gas price has up to 256 bits.
fn number(member: &'static str, actual: &str, expected: &str) -> Result<(), Wrong> {
    let read = |text: &str| U256::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let is_hex = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_equal = actual.strip_prefix("0x").is_some_and(is_hex) && read(actual) == read(expected);
    if is_equal { Ok(()) } else { wrong(member, actual, expected) }
}

fn same(member: &'static str, actual: &str, expected: &str) -> Result<(), Wrong> {
    if actual.eq_ignore_ascii_case(expected) { Ok(()) } else { wrong(member, actual, expected) }
}

fn wrong<T>(member: &'static str, actual: &str, expected: &str) -> Result<T, Wrong> {
    Err(Wrong { member, actual: actual.to_owned(), expected: expected.to_owned() })
}
