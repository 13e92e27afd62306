//! Calls, logs and reverts by the ABIs of the contracts that were called and that logged.

use std::collections::HashMap;
use std::sync::LazyLock;

use alloy_json_abi::AbiItem;
use chain::evm::Log;
use chain::evm::dialect::Dialect;
use query::Indexer;
use query::evm::Error;
use query::v1::InternalTx;
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

/// Bytes of a selector, and of a word.
const SELECTOR: usize = 4;
const WORD: usize = 32;

/// What a call, a log or a revert of an unknown contract probably is.
static STANDARDS: LazyLock<Abi> = LazyLock::new(|| Abi::new(&standards()));

/// The functions, events and errors of `standards.txt`. A line that is none is left out, which a test would see.
fn standards() -> Value {
    let lines = include_str!("standards.txt").lines().filter(|line| !line.starts_with('#'));
    let items = lines.filter_map(|line| AbiItem::parse(line).ok());
    items.filter_map(|item| serde_json::to_value(item).ok()).collect::<Vec<_>>().into()
}

/// The ABIs of contracts, each with that of the contract behind it if it is a proxy.
pub(crate) struct Abis<'a> {
    contracts: Option<&'a Contracts>,
    known: HashMap<[u8; 20], Vec<Abi>>,
}

impl<'a> Abis<'a> {
    pub(crate) fn new(contracts: Option<&'a Contracts>) -> Self {
        Self { contracts, known: HashMap::new() }
    }

    /// Those of a contract; none if nothing is known of it. A file that cannot be used is in the log, and no reason to show less of
    /// the rest.
    pub(crate) fn of(&mut self, contract: [u8; 20]) -> &[Abi] {
        if self.known.len() >= MAX_CONTRACTS && !self.known.contains_key(&contract) {
            return &[];
        }
        let Some(contracts) = self.contracts else { return &[] };
        self.known.entry(contract).or_insert_with(|| {
            let found = contracts.get_logged(&contract).unwrap_or_default();
            let behind = found.as_ref().and_then(|proxy| bytes::<20>(proxy.implementation()));
            let behind = behind.and_then(|target| contracts.get_logged(&target).unwrap_or_default());
            found.iter().chain(&behind).map(|contract| Abi::new(contract.abi())).collect()
        })
    }

    /// The function that a call of a contract calls.
    pub(crate) fn function(&mut self, contract: [u8; 20], input: &[u8]) -> Option<&Signature> {
        self.of(contract).iter().find_map(|abi| abi.function(input))
    }
}

/// What the ABIs of `contracts` say of the calls of a transaction: of each an object with `function` and `guess` of the call, and `error`,
/// which is null unless its output is an error that an ABI has. Errors pass through the contracts that call, so that each contract's errors
/// explain the others' too.
pub fn calls(contracts: Option<&Contracts>, calls: &[InternalTx]) -> Vec<Value> {
    let mut abis = Abis::new(contracts);
    let parties: Vec<_> = calls.iter().filter_map(|call| bytes::<20>(&call.to)).collect();
    let explain = |call: &InternalTx| {
        let (to, input) = (bytes::<20>(&call.to), digits(&call.input));
        let own = to.and_then(|to| Some(abis.function(to, &input)?.shown.clone()));
        // Of a standard's function only with its arguments: four bytes alone say little.
        let guess = || STANDARDS.function(&input).filter(|it| it.arguments(&input).is_some());
        let is_guess = own.is_none();
        let function = own.or_else(|| Some(guess()?.shown.clone()));
        json!({
            "guess": is_guess && function.is_some(),
            "function": function,
            "error": error(&mut abis, to, &parties, &digits(&call.output)),
        })
    };
    calls.iter().map(explain).collect()
}

/// The error in an output: by the ABI of the contract, else by one of `parties`, else by a standard. Null if it is none.
fn error(abis: &mut Abis<'_>, contract: Option<[u8; 20]>, parties: &[[u8; 20]], output: &[u8]) -> Value {
    // What a function returns has no selector before its words.
    if output.len() % WORD != SELECTOR {
        return Value::Null;
    }
    let read = |abi: &Abi| {
        let error = abi.error(output)?;
        Some((error.shown.clone(), error.arguments(output)?))
    };
    let mut known = contract.iter().chain(parties);
    let known = known.find_map(|of| abis.of(*of).iter().find_map(read));
    let is_guess = known.is_none();
    match known.or_else(|| read(&STANDARDS)) {
        Some((error, arguments)) => json!({ "error": error, "arguments": arguments, "guess": is_guess }),
        None => Value::Null,
    }
}

/// The bytes of a text in hex; none if it is not one.
fn digits(text: &str) -> Vec<u8> {
    hex::decode(text.strip_prefix("0x").unwrap_or_default()).unwrap_or_default()
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
    let (mut found, mut abis) = (None, Abis::new(reads.contracts));
    reads.view.tx_of(hash, &mut |row| {
        let summary = row.tx.summary();
        let call = summary.to.filter(|_| summary.is_signed && summary.input.len() >= 4).map(|to| {
            let read =
                |function: &Signature| (function.shown.clone(), function.arguments(summary.input), false);
            // Of a standard's function only with its arguments: four bytes alone say little.
            let guess = || {
                let function = STANDARDS.function(summary.input)?;
                Some((function.shown.clone(), Some(function.arguments(summary.input)?), true))
            };
            let function = abis.function(to, summary.input).map(read).or_else(guess);
            let (function, arguments, is_guess) = function
                .map_or((None, None, false), |(shown, arguments, guess)| (Some(shown), arguments, guess));
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
    fn each_line_of_the_standards_has_a_selector_or_a_topic_of_its_own() {
        let is_item = |line: &&str| !line.starts_with('#') && !line.is_empty();
        let lines: Vec<&str> = include_str!("standards.txt").lines().filter(is_item).collect();
        let items: Vec<AbiItem<'_>> = lines.iter().map(|line| AbiItem::parse(line).expect(line)).collect();
        let (functions, events, errors) = STANDARDS.counts();
        assert_eq!(functions + events + errors, items.len(), "two lines have the same selector or topic");
        assert!(functions > 140 && events > 40 && errors > 60, "{functions} {events} {errors}");
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

    #[test]
    fn an_error_is_read_by_the_abi_of_a_contract_of_the_transaction_or_by_a_standard() {
        let folder = tempfile::tempdir().unwrap();
        let contracts = Contracts::new(folder.path().to_owned());
        let abi = json!([{ "type": "error", "name": "TooMuch", "inputs": [{ "type": "uint256", "name": "limit" }] }]);
        contracts.add_bytes(&[2; 20], abi.to_string().as_bytes()).unwrap();
        let selector = |text: &str| hex::encode(&<sha3::Keccak256 as sha3::Digest>::digest(text)[..4]);
        let (one, two) = (format!("0x{}", "01".repeat(20)), format!("0x{}", "02".repeat(20)));
        let own = format!("0x{}{:064x}", selector("TooMuch(uint256)"), 9);
        let usual = format!("0xe450d38c{:064x}{:064x}{:064x}", 7, 5, 6);
        // As long as words, so that a function returned it.
        let returned = format!("{usual}{}", "0".repeat(56));
        let call = |to: &str, output: &str| {
            let [to, input, output] = [to, "0x70a08231", output].map(str::to_owned);
            InternalTx { to, input, output, ..InternalTx::default() }
        };
        let explained = calls(
            Some(&contracts),
            &[call(&one, &own), call(&two, &own), call(&one, &usual), call(&one, &returned), call("", "0x")],
        );
        for explained in &explained[..2] {
            assert_eq!(explained["error"]["error"], "TooMuch(uint256 limit)", "it passed through the caller");
            assert_eq!(explained["error"]["arguments"][0]["value"], "9");
            assert_eq!(explained["error"]["guess"], false);
        }
        let usual = &explained[2]["error"];
        assert_eq!(
            usual["error"],
            "ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)"
        );
        assert_eq!((&usual["arguments"][2]["value"], &usual["guess"]), (&json!("6"), &json!(true)));
        assert_eq!((&explained[3]["error"], &explained[4]["error"]), (&Value::Null, &Value::Null));
        assert_eq!(explained[0]["function"], Value::Null, "without its argument it may be another function");
    }
}
