//! What the result data of a transaction says of its EVM messages: the part of their outcome that a header covers.
//!
//! `TxMsgData.msg_responses` holds one answer a message. Those of `minievm.evm.v1` name the logs of the call, then
//! those of the EVM messages that the called contracts sent on (`minievm:x/evm/keeper/context.go`). Logs of other
//! Cosmos messages (bank sends, fees, IBC receives) are not there.

use crate::wire::{Value, bytes_field, fields};

/// A message's answer: its type and the numbers of its fields `contract_addr` and `logs`.
const ANSWERS: [(&[u8], Option<u64>, u64); 3] = [
    (b"/minievm.evm.v1.MsgCallResponse", None, 2),
    (b"/minievm.evm.v1.MsgCreateResponse", Some(2), 3),
    (b"/minievm.evm.v1.MsgCreate2Response", Some(2), 3),
];

/// The outcome of all EVM messages of a transaction, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EvmData<'d> {
    /// The logs, as the node wrote them into the data.
    pub(crate) logs: Vec<DataLog<'d>>,
    /// The contract that the last creating message made.
    pub(crate) created: Option<&'d [u8]>,
}

/// A log; all of it is text in hex.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DataLog<'d> {
    pub(crate) address: &'d [u8],
    pub(crate) topics: Vec<&'d [u8]>,
    pub(crate) data: &'d [u8],
}

impl<'d> EvmData<'d> {
    /// Reads result data; what is no message of these types says nothing.
    pub(crate) fn read(data: &'d [u8]) -> Self {
        let mut all = Self::default();
        for response in repeated(data, 2) {
            let Some(any) = fields(response) else { continue };
            let (url, value) = (bytes_field(&any, 1), bytes_field(&any, 2));
            let known = ANSWERS.iter().find(|answer| Some(answer.0) == url);
            let (Some((_, created, logs)), Some(value)) = (known, value) else { continue };
            all.add(value, *created, *logs);
        }
        all
    }

    fn add(&mut self, answer: &'d [u8], created: Option<u64>, logs: u64) {
        for (number, value) in fields(answer).unwrap_or_default() {
            match value {
                Value::Bytes(log) if number == logs => self.logs.push(DataLog::read(log)),
                Value::Bytes(contract) if Some(number) == created => self.created = Some(contract),
                _ => {}
            }
        }
    }
}

impl<'d> DataLog<'d> {
    fn read(log: &'d [u8]) -> Self {
        let mut read = Self::default();
        for (number, value) in fields(log).unwrap_or_default() {
            match (number, value) {
                (1, Value::Bytes(address)) => read.address = address,
                (2, Value::Bytes(topic)) => read.topics.push(topic),
                (3, Value::Bytes(data)) => read.data = data,
                _ => {}
            }
        }
        read
    }
}

fn repeated(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    let found = fields(message).unwrap_or_default().into_iter();
    found.filter_map(move |(number, value)| match value {
        Value::Bytes(bytes) if number == wanted => Some(bytes),
        _ => None,
    })
}
