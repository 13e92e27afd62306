//! A transaction by the ABIs of the contracts that it called and that logged.

use std::collections::HashMap;
use std::sync::LazyLock;

use alloy_json_abi::AbiItem;
use chain::evm::Log;
use chain::evm::dialect::Dialect;
use query::Indexer;
use query::evm::Error;
use serde_json::{Value, json};
use web::http_error::HttpError;

use crate::abi::{Abi, Signature};
use crate::contracts::Contracts;
use crate::form::{Form, bytes};
use crate::reads::Reads;

/// Logs of a transaction that are explained.
const MAX_LOGS: usize = 1000;

/// Contracts whose files are read for a request; what others call has no name.
const MAX_CONTRACTS: usize = 256;

/// What a call or a log of an unknown contract probably is.
static STANDARDS: LazyLock<Abi> = LazyLock::new(|| Abi::new(&standards()));

/// The functions and events of `standards.txt`. A line that is none is left out, which a test would see.
fn standards() -> Value {
    let lines = include_str!("standards.txt").lines().filter(|line| !line.starts_with('#'));
    let items = lines.filter_map(|line| AbiItem::parse(line).ok());
    items.filter_map(|item| serde_json::to_value(item).ok()).collect::<Vec<_>>().into()
}

/// The ABIs of contracts, each with that of the contract behind it if it is a proxy.
pub(crate) struct Abis<'a> {
    reads: &'a Reads<'a>,
    known: HashMap<[u8; 20], Vec<Abi>>,
}

impl<'a> Abis<'a> {
    pub(crate) fn new(reads: &'a Reads<'a>) -> Self {
        Self { reads, known: HashMap::new() }
    }

    /// Those of a contract; none if nothing is known of it. A file that cannot be used is in the log, and no reason to show less of
    /// the rest.
    pub(crate) fn of(&mut self, contract: [u8; 20]) -> &[Abi] {
        if self.known.len() >= MAX_CONTRACTS && !self.known.contains_key(&contract) {
            return &[];
        }
        let reads = self.reads;
        self.known.entry(contract).or_insert_with(|| {
            let found = reads.contract(&contract).unwrap_or_default();
            let behind = found.as_ref().and_then(|proxy| bytes::<20>(proxy.implementation()));
            let behind = behind.and_then(|target| reads.contract(&target).unwrap_or_default());
            found.iter().chain(&behind).map(|contract| Abi::new(contract.abi())).collect()
        })
    }

    /// The function that a call of a contract calls.
    pub(crate) fn function(&mut self, contract: [u8; 20], input: &[u8]) -> Option<&Signature> {
        self.of(contract).iter().find_map(|abi| abi.function(input))
    }
}

/// What the ABIs of `contracts` say of the EVM transaction with this hash, as `/indexer/evm/v1/decoded/{hash}`; `None` if there is
/// none.
///
/// # Errors
/// If the index cannot be read.
pub fn decoded(
    index: &Indexer,
    contracts: Option<&Contracts>,
    hash: &str,
) -> Result<Option<Value>, HttpError> {
    let Some(hash) = bytes(hash) else { return Ok(None) };
    let (view, form) = (index.evm(Dialect::Fixed)?, Form::default());
    tx(&Reads { view, form: &form, contracts }, &hash).map_err(|error| match error {
        Error::Failed(error) => error,
        other => HttpError::internal(format!("{other:?}")),
    })
}

/// What is known of a transaction; `None` if there is none.
pub(crate) fn tx(reads: &Reads<'_>, hash: &[u8; 32]) -> Result<Option<Value>, Error> {
    let (mut found, mut abis) = (None, Abis::new(reads));
    reads.view.tx_of(hash, &mut |row| {
        let summary = row.tx.summary();
        let call = summary.to.filter(|_| summary.is_signed && summary.input.len() >= 4).map(|to| {
            let read = |function: &Signature| {
                (function.shown.clone(), function.arguments(summary.input), false)
            };
            // Of a standard's function only with its arguments: four bytes alone say little.
            let guess = || {
                let function = STANDARDS.function(summary.input)?;
                Some((function.shown.clone(), Some(function.arguments(summary.input)?), true))
            };
            let function = abis.function(to, summary.input).map(read).or_else(guess);
            let (function, arguments, is_guess) = function.map_or((None, None, false), |(shown, arguments, guess)| {
                (Some(shown), arguments, guess)
            });
            json!({
                "contract": format!("0x{}", hex::encode(to)),
                "selector": format!("0x{}", hex::encode(&summary.input[..4])),
                "guess": is_guess,
                "function": function,
                "arguments": arguments,
            })
        });
        let logs: Vec<_> = row.receipt.logs.iter().take(MAX_LOGS).map(|log| of_log(&mut abis, log)).collect();
        let is_cut = row.receipt.logs.len() > MAX_LOGS;
        found = Some(json!({
            "hash": format!("0x{}", hex::encode(hash)), "call": call, "logs": logs, "more_logs": is_cut,
        }));
        Ok(())
    })?;
    Ok(found)
}

fn of_log(abis: &mut Abis<'_>, log: &Log<'_>) -> Value {
    let topics = log
        .topics
        .iter()
        .map(|topic| Log::topic_bytes(topic))
        .collect::<Option<Vec<_>>>()
        .unwrap_or_default();
    let data = hex::decode(log.data.strip_prefix("0x").unwrap_or(&log.data)).unwrap_or_default();
    let read = |event: &Signature| Some((event.shown.clone(), event.of_log(&topics, &data)?));
    let own = log
        .address_bytes()
        .and_then(|contract| abis.of(contract).iter().find_map(|abi| read(abi.event(&topics)?)));
    let guess = || read(STANDARDS.event(&topics)?);
    let is_own = own.is_some();
    let (event, arguments) = own.or_else(guess).map_or((None, None), |(event, all)| (Some(event), Some(all)));
    json!({
        "log_index": crate::row::decimal(&log.log_index),
        "contract": &*log.address,
        "guess": event.is_some() && !is_own,
        "event": event,
        "arguments": arguments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_standards_is_a_function_or_an_event_of_its_own() {
        let is_item = |line: &&str| !line.starts_with('#') && !line.is_empty();
        let lines: Vec<&str> = include_str!("standards.txt").lines().filter(is_item).collect();
        let items: Vec<AbiItem<'_>> = lines.iter().map(|line| AbiItem::parse(line).expect(line)).collect();
        let (functions, events) = STANDARDS.counts();
        assert_eq!(functions + events, items.len(), "two lines have the same selector or topic");
        assert!(functions > 140 && events > 40, "{functions} {events}");
    }

    #[test]
    fn known_selectors_are_those_of_their_functions() {
        for (selector, shown) in [
            ("a9059cbb", "transfer(address to, uint256 value)"),
            ("095ea7b3", "approve(address spender, uint256 value)"),
            ("d0e30db0", "deposit()"),
            ("42842e0e", "safeTransferFrom(address from, address to, uint256 tokenId)"),
            ("f242432a", "safeTransferFrom(address from, address to, uint256 id, uint256 value, bytes data)"),
            ("ac9650d8", "multicall(bytes[] data)"),
            ("38ed1739", "swapExactTokensForTokens("),
            ("414bf389", "exactInputSingle(("),
            ("04e45aaf", "exactInputSingle(("),
            ("3593564c", "execute(bytes commands, bytes[] inputs, uint256 deadline)"),
            ("82ad56cb", "aggregate3(("),
            ("1fad948c", "handleOps(("),
            ("765e827f", "handleOps(("),
            ("6a761202", "execTransaction("),
            ("c7c7f5b3", "send(("),
        ] {
            let function = STANDARDS.function(&hex::decode(selector).unwrap()).expect(selector);
            let shown = shown.split('(').next().unwrap();
            assert!(function.shown.starts_with(shown), "{selector}: {}", function.shown);
        }
    }
}
