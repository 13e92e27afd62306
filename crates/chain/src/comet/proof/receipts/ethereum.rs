//! Receipts of chains with cosmos/evm or ethermint, which follow from a block and its results alone.
//!
//! Every `MsgEthereumTx` of a transaction that succeeded, or that exceeded the gas of its block, has a receipt. Its result and its logs
//! are in the result data, which the next header covers; only the block's base fee, on which the price depends, is in an
//! event. A node that has lost its EVM index, or never had the method, is not needed.

use alloy::primitives::{U256, hex};

use super::logs;
use super::{Executed, WrongReceipts};
use crate::comet::{Event, ResultsResponse};
use crate::evm::data::EthereumResponse;
use crate::evm::ethereum_events::logs_of;
use crate::evm::ethereum_msg::EthereumMsg;
use crate::evm::log::bytes;
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
        let messages = EthereumMsg::read_all(tx);
        if messages.is_empty() {
            continue;
        }
        // Data that is not base64 is refused with the results.
        let data = result.data_bytes().unwrap_or_default();
        let responses = EthereumResponse::read_all(&data);
        if succeeded && responses.len() != messages.len() {
            return Err(WrongReceipts::Responses {
                height: block.height,
                tx: to_hex(&executed.hash),
                responses: responses.len(),
                messages: messages.len(),
            });
        }
        let is_alone = messages.len() == 1;
        for (at, message) in messages.iter().enumerate() {
            let response = responses.get(at).filter(|_| succeeded);
            let gas = match response {
                None => {
                    message.envelope.as_ref().map_or(result.gas_wanted.cast_unsigned(), |it| it.gas_limit)
                }
                // The node reads the gas of a transaction that is alone in its Cosmos transaction from that one's result.
                Some(_) if is_alone => result.gas_used.cast_unsigned(),
                Some(response) => response.gas_used,
            };
            gas_before = gas_before.wrapping_add(gas);
            let place = (receipts.len() as u64, gas, gas_before);
            receipts.push(receipt(block, place, message, (response, &result.events)));
        }
    }
    evm::normalise(&mut receipts);
    Ok(receipts)
}

fn receipt<'a>(
    block: &EthereumBlock,
    (index, gas_used, cumulative): (u64, u64, u64),
    message: &EthereumMsg,
    (response, events): (Option<&EthereumResponse<'_>>, &[Event<'_>]),
) -> Receipt<'a> {
    let EthereumMsg { hash, kind, envelope, sender, .. } = message;
    let to = match envelope {
        Some(envelope) => envelope.to,
        None => recipient(hash, events),
    };
    let price = envelope.as_ref().map(|envelope| envelope.price(block.base_fee)).unwrap_or_default();
    let logs: Vec<Log<'a>> = response.map(logs_of).unwrap_or_default();
    Receipt {
        block_hash: hex::encode_prefixed(block.hash).into(),
        block_number: hex_quantity(block.height),
        contract_address: message.created().map(|created| hex::encode_prefixed(created).into()),
        cumulative_gas_used: hex_quantity(cumulative),
        effective_gas_price: format!("{price:#x}").into(),
        from: hex::encode_prefixed(sender).into(),
        gas_used: hex_quantity(gas_used),
        logs_bloom: logs::bloom(&logs),
        logs,
        status: hex_quantity(u64::from(response.is_some_and(|response| !response.failed))),
        to: to.map(hex::encode_prefixed).unwrap_or_default().into(),
        transaction_hash: hex::encode_prefixed(hash).into(),
        transaction_index: hex_quantity(index),
        kind: hex_quantity(u64::from(*kind)),
    }
}

/// The recipient that the events of its Cosmos transaction name of the transaction `hash`.
fn recipient(hash: &Hash, events: &[Event<'_>]) -> Option<[u8; 20]> {
    let hash = hex::encode_prefixed(hash);
    let mut about = events.iter().filter(|event| event.kind == "ethereum_tx");
    about.find_map(|event| {
        let is_same = event.value("ethereumTxHash").is_some_and(|named| **named == *hash);
        bytes(event.value("recipient").filter(|_| is_same)?)
    })
}

/// The number of Ethereum transactions in `txs` whose type is unknown here.
pub fn unknown_types<'a>(txs: impl IntoIterator<Item = &'a DecodedTx>) -> usize {
    let unknown = |tx| EthereumMsg::read_all(tx).iter().filter(|message| message.envelope.is_none()).count();
    txs.into_iter().map(unknown).sum()
}
