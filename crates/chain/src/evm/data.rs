//! The responses to EVM messages in the result data of a transaction: the part of their result that a header covers.
//!
//! `TxMsgData.msg_responses` has one response per message. Those of `minievm.evm.v1` contain the logs of the call, then
//! those of the EVM messages that the called contracts sent (`minievm:x/evm/keeper/context.go`). Logs of other Cosmos
//! messages (bank sends, fees, IBC receives) are not included.

use crate::wire::{Value, bytes_field, fields};

/// A response: its type and the numbers of its fields `contract_addr` and `logs`.
const RESPONSES: [(&[u8], Option<u32>, u32); 3] = [
    (b"/minievm.evm.v1.MsgCallResponse", None, 2),
    (b"/minievm.evm.v1.MsgCreateResponse", Some(2), 3),
    (b"/minievm.evm.v1.MsgCreate2Response", Some(2), 3),
];

/// The outcome of all EVM messages of a transaction, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EvmData<'d> {
    /// The logs, as the node wrote them into the data.
    pub(crate) logs: Vec<DataLog<'d>>,
    /// The contract that the last creating message created.
    pub(crate) created: Option<&'d [u8]>,
}

/// A log; every member is text in hex.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DataLog<'d> {
    pub(crate) address: &'d [u8],
    pub(crate) topics: Vec<&'d [u8]>,
    pub(crate) data: &'d [u8],
}

impl<'d> EvmData<'d> {
    /// Reads result data; messages of other types are skipped.
    pub(crate) fn read(data: &'d [u8]) -> Self {
        let mut all = Self::default();
        for any in repeated(data, 2) {
            let Some(any) = fields(any) else { continue };
            let (url, value) = (bytes_field(&any, 1), bytes_field(&any, 2));
            let response = RESPONSES.iter().find(|response| Some(response.0) == url);
            let (Some((_, created, logs)), Some(value)) = (response, value) else { continue };
            all.add(value, *created, *logs);
        }
        all
    }

    fn add(&mut self, response: &'d [u8], created: Option<u32>, logs: u32) {
        for (number, value) in fields(response).unwrap_or_default() {
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

/// The response to an Ethereum transaction of cosmos/evm or ethermint: all of its outcome.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EthereumResponse<'d> {
    /// The logs; their `data` is bytes, not text.
    pub(crate) logs: Vec<DataLog<'d>>,
    /// True if the EVM failed: its error is in the response.
    pub(crate) failed: bool,
    pub(crate) gas_used: u64,
    /// The block's time in seconds; 0 where nodes do not report it.
    pub(crate) block_time: u64,
}

/// Their types.
const ETHEREUM: [&[u8]; 2] =
    [b"/cosmos.evm.vm.v1.MsgEthereumTxResponse", b"/ethermint.evm.v1.MsgEthereumTxResponse"];

impl<'d> EthereumResponse<'d> {
    /// The responses in result data, in the order of their messages.
    pub(crate) fn read_all(data: &'d [u8]) -> Vec<Self> {
        let any = |any: &'d [u8]| {
            let any = fields(any)?;
            let is_one = bytes_field(&any, 1).is_some_and(|url| ETHEREUM.contains(&url));
            is_one.then(|| Self::read(bytes_field(&any, 2).unwrap_or_default()))
        };
        let all: Vec<_> = repeated(data, 2).filter_map(any).collect();
        if !all.is_empty() {
            return all;
        }
        // Before cosmos-sdk 0.46, with the type of the message instead of its response's.
        let old = |message: &'d [u8]| {
            let message = fields(message)?;
            let is_one = bytes_field(&message, 1).is_some_and(|kind| kind.ends_with(b".MsgEthereumTx"));
            is_one.then(|| Self::read(bytes_field(&message, 2).unwrap_or_default()))
        };
        repeated(data, 1).filter_map(old).collect()
    }

    fn read(response: &'d [u8]) -> Self {
        let mut read = Self::default();
        for (number, value) in fields(response).unwrap_or_default() {
            match (number, value) {
                (2, Value::Bytes(log)) => read.logs.push(DataLog::read(log)),
                (4, Value::Bytes(error)) => read.failed = !error.is_empty(),
                (5, Value::Varint(gas)) => read.gas_used = gas,
                (8, Value::Varint(time)) => read.block_time = time,
                _ => {}
            }
        }
        read
    }
}

fn repeated(message: &[u8], wanted: u32) -> impl Iterator<Item = &[u8]> {
    let found = fields(message).unwrap_or_default().into_iter();
    found.filter_map(move |(number, value)| match value {
        Value::Bytes(bytes) if number == wanted => Some(bytes),
        _ => None,
    })
}
