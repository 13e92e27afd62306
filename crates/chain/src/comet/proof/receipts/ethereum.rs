//! Receipts of chains with cosmos/evm or ethermint, which follow from a block and its results alone.
//!
//! Every `MsgEthereumTx` of a transaction that succeeded, or that exceeded the gas of its block, has a receipt. Its result and its logs
//! are in the result data, which the next header covers; only the block's base fee, on which the price depends, is in an
//! event. A node that has lost its EVM index, or never had the method, is not needed.

use alloy::primitives::{U256, hex};

use super::logs;
use super::{Executed, WrongReceipts};
use crate::comet::{Event, ResultsResponse};
use crate::evm::contract_created::EVENT as CREATED;
use crate::evm::data::{DataLog, EthereumResponse};
use crate::evm::ethereum_msg::EthereumMsg;
use crate::evm::{self, Log, Receipt, hex_quantity};
use crate::hash::{Hash, to_hex};
use crate::tx::DecodedTx;

/// The members of a block that its receipts depend on.
#[derive(Debug, Clone, Copy)]
pub struct EthereumBlock {
    /// Its height.
    pub height: u64,
    /// The hash of its `CometBFT` header, which is its Ethereum hash as well.
    pub hash: Hash,
    /// The base fee (EIP-1559) of a unit of gas; `None` without a fee market.
    pub base_fee: Option<U256>,
}

/// The text with which a transaction fails that does not fit into its block. Its fee is taken, so it is a transaction of the EVM.
const NO_ROOM: &str = "out of gas in location: block gas meter; gasWanted:";

/// The base fee in the events of a block: that of the EVM, whose units are wei, else that of the fee market.
pub fn base_fee(results: &ResultsResponse<'_>) -> Option<U256> {
    let of = |kind: &str| {
        let event = results.finalize_block_events.iter().rev().find(|event| event.kind == kind)?;
        whole(event.value("base_fee")?)
    };
    of("evm_fee_market").or_else(|| of("fee_market"))
}

/// The whole part of a decimal number.
fn whole(text: &str) -> Option<U256> {
    let digits = text.split('.').next().filter(|digits| !digits.is_empty())?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| U256::from_str_radix(digits, 10).ok()).flatten()
}

/// Derives the receipts of a block, whose transactions `txs` are with the results that the next header proves.
pub fn derive_ethereum_receipts<'a>(
    block: &EthereumBlock,
    txs: impl IntoIterator<Item = Executed<'a>>,
) -> Result<Vec<Receipt<'a>>, WrongReceipts> {
    let mut receipts: Vec<Receipt<'a>> = Vec::new();
    let mut gas_before = 0_u64;
    for executed in txs {
        let result = executed.result;
        let succeeded = result.code == 0;
        let Some(tx) = executed.tx.filter(|_| succeeded || result.log.contains(NO_ROOM)) else { continue };
        let (height, hash) = (block.height, || to_hex(&executed.hash));
        let messages =
            EthereumMsg::read_all(tx).map_err(|_| WrongReceipts::Envelope { height, tx: hash() })?;
        if messages.is_empty() {
            continue;
        }
        // Data that is not base64 is refused with the results.
        let data = result.data_bytes().unwrap_or_default();
        let responses = EthereumResponse::read_all(&data);
        if succeeded && responses.len() != messages.len() {
            let (responses, messages) = (responses.len(), messages.len());
            return Err(WrongReceipts::Responses { height, tx: hash(), responses, messages });
        }
        let is_alone = messages.len() == 1;
        for (at, message) in messages.iter().enumerate() {
            let response = responses.get(at).filter(|_| succeeded);
            let gas = match response {
                None => message.envelope.gas_limit,
                // The node reads the gas of a transaction that is alone in its Cosmos transaction from that one's result.
                Some(_) if is_alone => result.gas_used.cast_unsigned(),
                Some(response) => response.gas_used,
            };
            gas_before = gas_before.wrapping_add(gas);
            let place = (receipts.len() as u64, gas, gas_before);
            receipts.push(receipt(block, place, message, response));
        }
    }
    evm::normalise(&mut receipts);
    Ok(receipts)
}

fn receipt<'a>(
    block: &EthereumBlock,
    (index, gas_used, cumulative): (u64, u64, u64),
    message: &EthereumMsg,
    response: Option<&EthereumResponse<'_>>,
) -> Receipt<'a> {
    let EthereumMsg { envelope, sender } = message;
    let logs: Vec<Log<'a>> = response.map(logs_of).unwrap_or_default();
    Receipt {
        block_hash: hex::encode_prefixed(block.hash).into(),
        block_number: hex_quantity(block.height),
        contract_address: envelope.created(*sender).map(|created| hex::encode_prefixed(created).into()),
        cumulative_gas_used: hex_quantity(cumulative),
        effective_gas_price: format!("{:#x}", envelope.price(block.base_fee)).into(),
        from: hex::encode_prefixed(sender).into(),
        gas_used: hex_quantity(gas_used),
        logs_bloom: logs::bloom(&logs),
        logs,
        status: hex_quantity(u64::from(response.is_some_and(|response| !response.failed))),
        to: envelope.to.map(hex::encode_prefixed).unwrap_or_default().into(),
        transaction_hash: hex::encode_prefixed(envelope.hash).into(),
        transaction_index: hex_quantity(index),
        kind: hex_quantity(u64::from(envelope.kind)),
    }
}

/// The logs of a response, in lower case.
fn logs_of<'a>(response: &EthereumResponse<'_>) -> Vec<Log<'a>> {
    let time = response.block_time;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let log = |log: &DataLog<'_>| Log {
        address: text(log.address).into(),
        topics: log.topics.iter().map(|topic| text(topic).into()).collect(),
        data: hex::encode_prefixed(log.data).into(),
        block_timestamp: if time == 0 { "".into() } else { hex_quantity(time) },
        ..Log::default()
    };
    response.logs.iter().map(log).collect()
}

/// Adds to the events of a block's transactions what a minievm would report of their calls: the called contract, the created one,
/// and the logs. What reads events of calls then reads one form of them.
pub fn add_evm_events(txs: &[Option<DecodedTx>], results: &mut ResultsResponse<'_>) {
    for (tx, result) in txs.iter().zip(&mut results.txs_results).filter(|(_, result)| result.code == 0) {
        let messages = tx.as_ref().and_then(|tx| EthereumMsg::read_all(tx).ok()).unwrap_or_default();
        if messages.is_empty() {
            continue;
        }
        let data = result.data_bytes().unwrap_or_default();
        let events = &mut result.events;
        for (message, response) in messages.iter().zip(&EthereumResponse::read_all(&data)) {
            let EthereumMsg { envelope, sender } = message;
            if let Some(to) = envelope.to {
                events.push(Event::of("call", "contract", [hex::encode_prefixed(to)]));
            }
            if let Some(created) = envelope.created(*sender).filter(|_| !response.failed) {
                events.push(Event::of(CREATED, "contract", [hex::encode_prefixed(created)]));
            }
            let logs = logs_of(response);
            if !logs.is_empty() {
                events.push(Event::of(
                    "evm",
                    "log",
                    logs.iter().filter_map(|log| serde_json::to_string(log).ok()),
                ));
            }
        }
    }
}
