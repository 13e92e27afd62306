//! Comparison of one receipt with the values that follow from its transaction, member by member.
//!
//! Quantities are compared as numbers and hex without regard to case. The parent module lists the members that are not
//! compared.

use alloy::primitives::U256;

use super::logs;
use crate::comet::TxResult;
use crate::eth_form::EthForm;
use crate::evm::{Log, Receipt};
use crate::evm_data::EvmData;
use crate::evm_log::bytes;

/// The expected content of a receipt.
pub(super) struct Expected<'e> {
    /// The Ethereum transaction; `None` for a stand-in.
    pub(super) form: Option<&'e EthForm>,
    pub(super) result: &'e TxResult<'e>,
    /// The logs of the events; empty if the transaction failed.
    pub(super) logs: &'e [Log<'e>],
}

/// A member with another value.
pub(super) struct Wrong {
    pub(super) member: &'static str,
    pub(super) actual: String,
    pub(super) expected: String,
}

/// The position in the block of the next receipt.
pub(super) struct Place<'r> {
    pub(super) height: u64,
    block_hash: &'r str,
    index: u64,
    gas: u64,
    logs: u64,
}

impl<'r> Place<'r> {
    /// The position of the first receipt, whose `blockHash` all others must equal. Positions count from 1, or from 0 if
    /// the first one is 0.
    pub(super) fn before(height: u64, receipts: &'r [Receipt<'_>]) -> Self {
        let first = receipts.first();
        let from_zero = first.is_some_and(|first| quantity(&first.transaction_index) == Some(0));
        let block_hash = first.map_or("", |first| &*first.block_hash);
        Self { height, block_hash, index: u64::from(!from_zero), gas: 0, logs: 0 }
    }

    /// Checks the receipt at this position, and advances.
    pub(super) fn check(&mut self, receipt: &Receipt<'_>, expected: &Expected<'_>) -> Result<(), Wrong> {
        let Expected { form, result, logs } = expected;
        // The node's conversion reinterprets the bits as well.
        let gas = result.gas_used.cast_unsigned();
        self.gas = self.gas.wrapping_add(gas);
        number("blockNumber", &receipt.block_number, self.height)?;
        same("blockHash", &receipt.block_hash, self.block_hash)?;
        number("transactionIndex", &receipt.transaction_index, self.index)?;
        number("status", &receipt.status, u64::from(result.code == 0))?;
        number("gasUsed", &receipt.gas_used, gas)?;
        number("cumulativeGasUsed", &receipt.cumulative_gas_used, self.gas)?;
        number("type", &receipt.kind, form.map_or(0, |form| u64::from(form.kind)))?;
        let price = form.map_or(U256::ZERO, |form| form.fee_cap);
        let actual = receipt.effective_gas_price.strip_prefix("0x");
        if actual.and_then(|digits| U256::from_str_radix(digits, 16).ok()) != Some(price) {
            return wrong("effectiveGasPrice", &receipt.effective_gas_price, format!("{price:#x}"));
        }
        check_parties(receipt, expected)?;
        self.check_logs(receipt, logs)?;
        self.index += 1;
        Ok(())
    }

    fn check_logs(&mut self, receipt: &Receipt<'_>, logs: &[Log<'_>]) -> Result<(), Wrong> {
        if receipt.logs.len() != logs.len() {
            return wrong("logs", &format!("{} logs", receipt.logs.len()), format!("{} logs", logs.len()));
        }
        for (at, (log, event)) in (0_u64..).zip(receipt.logs.iter().zip(logs)) {
            if let Some((member, actual, expected)) = logs::difference(log, event) {
                return wrong(member, actual, expected.to_owned());
            }
            same("logs[].blockNumber", &log.block_number, &receipt.block_number)?;
            same("logs[].blockHash", &log.block_hash, &receipt.block_hash)?;
            same("logs[].transactionHash", &log.transaction_hash, &receipt.transaction_hash)?;
            same("logs[].transactionIndex", &log.transaction_index, &receipt.transaction_index)?;
            if quantity(&log.log_index) != Some(at) {
                number("logs[].logIndex", &log.log_index, self.logs + at)?;
            }
            if log.removed {
                return wrong("logs[].removed", "true", "false".to_owned());
            }
        }
        self.logs += receipt.logs.len() as u64;
        same("logsBloom", &receipt.logs_bloom, &logs::bloom(logs))
    }
}

/// `from`, `to` and `contractAddress`.
fn check_parties(receipt: &Receipt<'_>, expected: &Expected<'_>) -> Result<(), Wrong> {
    let Expected { form, result, .. } = expected;
    let from = form.map_or([0; 20], |form| form.sender);
    // A wrong signature has no sender: the address that a node recovers from it is arbitrary.
    let unauthorized = result.code == UNAUTHORIZED && result.codespace == SDK;
    if bytes(&receipt.from) != Some(from) && !unauthorized {
        return wrong("from", &receipt.from, address(&from));
    }
    let to = form.and_then(|form| form.to);
    if to.is_some_and(|to| bytes(&receipt.to) != Some(to)) || to.is_none() != receipt.to.is_empty() {
        return wrong("to", &receipt.to, to.as_ref().map(address).unwrap_or_default());
    }
    let creates = form.is_some_and(|form| form.to.is_none()) && result.code == 0;
    let actual = receipt.contract_address.as_deref().unwrap_or_default();
    let created = if creates { created(result) } else { String::new() };
    same("contractAddress", actual, &created)
}

/// The SDK's code for a wrong signature, `ErrUnauthorized` of its `types/errors`. In the codespaces of modules the same
/// number means something else: in minievm's `x/evm`, a failed creation.
const UNAUTHORIZED: u32 = 4;
const SDK: &str = "sdk";

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

fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn number(member: &'static str, actual: &str, expected: u64) -> Result<(), Wrong> {
    if quantity(actual) == Some(expected) { Ok(()) } else { wrong(member, actual, format!("{expected:#x}")) }
}

fn same(member: &'static str, actual: &str, expected: &str) -> Result<(), Wrong> {
    if actual.eq_ignore_ascii_case(expected) { Ok(()) } else { wrong(member, actual, expected.to_owned()) }
}

fn wrong<T>(member: &'static str, actual: &str, expected: String) -> Result<T, Wrong> {
    Err(Wrong { member, actual: actual.to_owned(), expected })
}

fn address(address: &[u8; 20]) -> String {
    format!("0x{}", hex::encode(address))
}
