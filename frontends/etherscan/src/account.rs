//! Module `account`: the lists of an account.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chain::evm::transaction::Summary;
use query::evm::TokenReply;
use query::evm::history::{CallsOf, Parties, Standard, TransferRow, TransfersOf};
use serde::Serialize;

use crate::decoded::Abis;
use crate::outcome::{Failure, NO_TRANSACTIONS, Outcome, Success};
use crate::reads::Reads;
use crate::row::{Common, created, decimal, flag, push};

/// A transaction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tx<'a> {
    block_number: &'a str,
    time_stamp: &'a str,
    hash: &'a str,
    nonce: &'a str,
    block_hash: &'a str,
    transaction_index: &'a str,
    from: &'a str,
    to: &'a str,
    value: String,
    gas: &'a str,
    gas_price: &'a str,
    is_error: &'a str,
    #[serde(rename = "txreceipt_status")]
    status: &'a str,
    input: String,
    contract_address: &'a str,
    cumulative_gas_used: &'a str,
    gas_used: &'a str,
    confirmations: &'a str,
    method_id: &'a str,
    function_name: &'a str,
}

/// An internal call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Internal<'a> {
    block_number: String,
    time_stamp: String,
    hash: &'a str,
    from: &'a str,
    to: &'a str,
    value: String,
    contract_address: &'a str,
    input: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    gas: String,
    gas_used: String,
    trace_id: &'a str,
    is_error: &'a str,
    err_code: &'a str,
    transaction_hash: &'a str,
    index: String,
    call_type: &'a str,
}

/// A transfer. Members that a standard does not have are left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Transfer<'a> {
    block_number: &'a str,
    time_stamp: &'a str,
    hash: &'a str,
    nonce: &'a str,
    block_hash: &'a str,
    from: String,
    contract_address: &'a str,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(rename = "tokenID", skip_serializing_if = "Option::is_none")]
    token_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_value: Option<String>,
    token_name: &'a str,
    token_symbol: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_decimal: Option<String>,
    transaction_index: &'a str,
    gas: &'a str,
    gas_price: &'a str,
    gas_used: &'a str,
    cumulative_gas_used: &'a str,
    input: &'a str,
    confirmations: &'a str,
    log_index: String,
    method_id: &'a str,
    function_name: &'a str,
}

pub(crate) fn txlist(reads: &Reads<'_>) -> Outcome {
    let (account, window) = (reads.form.one_address("address")?, reads.window()?);
    let (mut rows, head, mut abis) = (Vec::new(), reads.view.head(), Abis::new(reads.contracts));
    reads.view.txs_of(account, parties(reads)?, &window, &mut |row| {
        let (common, summary, receipt) = (Common::of(row, head), row.tx.summary(), row.receipt);
        let succeeded = receipt.status != "0x0";
        let tx = Tx {
            block_number: &common.height,
            time_stamp: &common.timestamp,
            hash: &receipt.transaction_hash,
            nonce: &common.nonce,
            block_hash: &receipt.block_hash,
            transaction_index: &common.index,
            from: &receipt.from,
            to: &receipt.to,
            value: summary.value.to_string(),
            gas: &common.gas,
            gas_price: &common.gas_price,
            is_error: flag(!succeeded),
            status: flag(succeeded),
            input: format!("0x{}", hex::encode(summary.input)),
            contract_address: created(receipt),
            cumulative_gas_used: &common.cumulative_gas_used,
            gas_used: &common.gas_used,
            confirmations: &common.confirmations,
            method_id: &common.method_id,
            function_name: &function_name(&mut abis, &summary),
        };
        push(&mut rows, &tx)
    })?;
    Ok(Success::list(rows, NO_TRANSACTIONS))
}

/// Blockscout's parameter of `txlist`.
fn parties(reads: &Reads<'_>) -> Result<Parties, Failure> {
    match reads.form.get("filter_by") {
        None => Ok(Parties::All),
        Some("from") => Ok(Parties::Sent),
        Some("to") => Ok(Parties::Received),
        Some(_) => Err(Failure::Text("Error! Invalid filter_by: from or to is expected".to_owned())),
    }
}

pub(crate) fn txlistinternal(reads: &Reads<'_>) -> Outcome {
    let of = match (reads.form.hash("txhash")?, reads.form.address("address")?) {
        (Some(hash), _) => CallsOf::Tx(hash),
        (None, Some(account)) => CallsOf::Account(account),
        (None, None) => CallsOf::All,
    };
    let (mut rows, window) = (Vec::new(), reads.window()?);
    let is_complete = reads.view.calls_of(of, &window, &mut |row| {
        let (frame, receipt) = (row.frame, row.tx.receipt);
        let (creates, failed) = (frame.creates(), row.error.is_some() || receipt.status == "0x0");
        let kind = match &*frame.kind {
            "SELFDESTRUCT" => "suicide".to_owned(),
            kind => kind.to_ascii_lowercase(),
        };
        let call = Internal {
            block_number: row.tx.height.to_string(),
            time_stamp: row.tx.timestamp.to_string(),
            hash: &receipt.transaction_hash,
            from: &frame.from,
            to: if creates { "" } else { &frame.to },
            value: frame.value().to_string(),
            contract_address: if creates { &frame.to } else { "" },
            input: if creates { &frame.input } else { "" },
            kind: &kind,
            gas: frame.gas().to_string(),
            gas_used: frame.gas_used().to_string(),
            trace_id: row.path,
            is_error: flag(failed),
            err_code: row.error.unwrap_or_default(),
            transaction_hash: &receipt.transaction_hash,
            index: frame.index.to_string(),
            call_type: if kind == "call" { "call" } else { "" },
        };
        push(&mut rows, &call)
    })?;
    if is_complete {
        return Ok(Success::list(rows, NO_TRANSACTIONS));
    }
    let message = "Some internal transactions within this block range have not yet been processed";
    Ok(Success::Marked("2", message, [b"[", &rows[..], b"]"].concat()))
}

pub(crate) fn tokentx(reads: &Reads<'_>) -> Outcome {
    transfers(reads, Standard::Erc20)
}

pub(crate) fn tokennfttx(reads: &Reads<'_>) -> Outcome {
    transfers(reads, Standard::Erc721)
}

pub(crate) fn token1155tx(reads: &Reads<'_>) -> Outcome {
    transfers(reads, Standard::Erc1155)
}

fn transfers(reads: &Reads<'_>, standard: Standard) -> Outcome {
    let (account, contract) = (reads.form.address("address")?, reads.form.address("contractaddress")?);
    if account.is_none() && contract.is_none() {
        return Err(Failure::Text("Error! Missing address or contract address".to_owned()));
    }
    let (mut rows, window, head) = (Vec::new(), reads.window()?, reads.view.head());
    let (of, mut abis) = (TransfersOf { standard, account, contract }, Abis::new(reads.contracts));
    let mut tokens: HashMap<[u8; 20], TokenReply> = HashMap::new();
    reads.view.transfers_of(&of, &window, &mut |row| {
        let (common, name) = (Common::of(row.tx, head), function_name(&mut abis, &row.summary));
        let contract = row.log.address_bytes().unwrap_or_default();
        let token = match tokens.entry(contract) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(reads.view.token_texts(standard, contract)?),
        };
        push(&mut rows, &transfer(row, standard, &common, (&name, token)))
    })?;
    Ok(Success::list(rows, NO_TRANSACTIONS))
}

fn transfer<'a>(
    row: &'a TransferRow<'_>,
    standard: Standard,
    common: &'a Common,
    (function_name, token): (&'a str, &'a TokenReply),
) -> Transfer<'a> {
    let (receipt, transfer) = (row.tx.receipt, row.transfer);
    let amount = transfer.amount.map(|amount| amount.to_string());
    let address = |bytes: &[u8; 20]| format!("0x{}", hex::encode(bytes));
    Transfer {
        block_number: &common.height,
        time_stamp: &common.timestamp,
        hash: &receipt.transaction_hash,
        nonce: &common.nonce,
        block_hash: &receipt.block_hash,
        from: address(&transfer.from),
        contract_address: &row.log.address,
        to: address(&transfer.to),
        value: amount.clone().filter(|_| standard == Standard::Erc20),
        token_id: transfer.id.map(|id| id.to_string()),
        token_value: amount.filter(|_| standard == Standard::Erc1155),
        token_name: &token.name,
        token_symbol: &token.symbol,
        token_decimal: match standard {
            Standard::Erc20 => {
                Some(token.known_decimals().map_or_else(String::new, |places| places.to_string()))
            }
            Standard::Erc721 => Some("0".to_owned()),
            Standard::Erc1155 => None,
        },
        transaction_index: &common.index,
        gas: &common.gas,
        gas_price: &common.gas_price,
        gas_used: &common.gas_used,
        cumulative_gas_used: &common.cumulative_gas_used,
        input: "deprecated",
        confirmations: &common.confirmations,
        log_index: decimal(&row.log.log_index),
        method_id: &common.method_id,
        function_name,
    }
}

/// The name of the function that a transaction calls; empty if it is not known.
fn function_name(abis: &mut Abis<'_>, tx: &Summary<'_>) -> String {
    let to = tx.to.filter(|_| tx.is_signed && tx.input.len() >= 4);
    let function = to.and_then(|to| abis.function(to, tx.input));
    function.map(|function| function.shown.clone()).unwrap_or_default()
}

/// The blocks of a validator: there is no miner to pay.
pub(crate) fn getminedblocks(reads: &Reads<'_>) -> Outcome {
    reads.form.one_address("address")?;
    Ok(Success::Marked("0", "No blocks found", b"[]".to_vec()))
}
