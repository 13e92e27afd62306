//! The events that a minievm reports of calls, of chains with cosmos/evm or ethermint, which report none of them: what reads events
//! of calls then reads one form of them.

use alloy::hex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::contract_created::EVENT as CREATED;
use super::data::{DataLog, EthereumResponse};
use super::ethereum_msg::EthereumMsg;
use super::{Log, hex_quantity};
use crate::comet::{Event, ResultsResponse};
use crate::serde_lenient::JsonText;
use crate::tx::DecodedTx;

/// Adds to the events of a block's transactions those of its Ethereum transactions: the called contract, the created one, and the
/// logs.
pub fn add_evm_events(txs: &[Option<DecodedTx>], results: &mut ResultsResponse<'_>) {
    for (tx, result) in txs.iter().zip(&mut results.txs_results).filter(|(_, result)| result.code == 0) {
        let messages = tx.as_ref().map(EthereumMsg::read_all).unwrap_or_default();
        if !messages.is_empty() {
            let data = result.data_bytes().unwrap_or_default();
            result.events.extend(events(&messages, &data));
        }
    }
}

/// The same events of the Ethereum transactions in a stored record; none if it has no such transactions.
pub fn events_of_record<'a>(record: &[u8]) -> Vec<Event<'a>> {
    if !is_in(record) {
        return Vec::new();
    }
    let Ok(Record { data, tx }) = serde_json::from_slice(record) else { return Vec::new() };
    events(&EthereumMsg::read_json(&tx.body.messages), &hex::decode(&*data).unwrap_or_default())
}

/// True if a stored record may have Ethereum transactions: a search is cheaper than parsing.
pub fn is_in(record: &[u8]) -> bool {
    memchr::memmem::find(record, b".MsgEthereumTx\"").is_some()
}

fn events<'a>(messages: &[EthereumMsg], data: &[u8]) -> Vec<Event<'a>> {
    let mut events = Vec::new();
    for (message, response) in messages.iter().zip(&EthereumResponse::read_all(data)) {
        let mut report = |kind, key, values: Vec<String>| {
            events.push(Event::of(kind, key, values).of_message(message.place));
        };
        if let Some(to) = message.envelope.as_ref().and_then(|envelope| envelope.to) {
            report("call", "contract", vec![hex::encode_prefixed(to)]);
        }
        if let Some(created) = message.created().filter(|_| !response.failed) {
            report(CREATED, "contract", vec![hex::encode_prefixed(created)]);
        }
        let logs = logs_of(response);
        if !logs.is_empty() {
            report("evm", "log", logs.iter().filter_map(|log| serde_json::to_string(log).ok()).collect());
        }
    }
    events
}

/// The logs of a response, in lower case.
pub(crate) fn logs_of<'a>(response: &EthereumResponse<'_>) -> Vec<Log<'a>> {
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

/// The members of a stored record that are read here.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Record<'a> {
    #[serde(default)]
    data: JsonText<'a>,
    tx: Tx<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Tx<'a> {
    body: Body<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Body<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}
