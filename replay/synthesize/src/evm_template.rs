//! Receipt, trace, hash and bloom filter of an Ethereum transaction, with slots.

use alloy::primitives::{Bloom, U256};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::eth::{LegacyTx, accrue, word};
use crate::text::{Needle, Part, Slot, Text};
use crate::values::Values;
use crate::wire::{bytes, fields};

/// The place of a transaction in its block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) height: u64,
    /// The hash of the EVM's block, hex.
    pub(crate) eth_block: &'a str,
    /// From 1.
    pub(crate) position: u64,
    /// Gas of the block up to this transaction and with it.
    pub(crate) gas_so_far: u64,
}

/// The parts that only a transaction on an EVM has.
#[derive(Debug)]
pub(crate) struct EvmTemplate {
    chain_id: u64,
    gas_limit: u64,
    /// Hex; empty for a creation.
    to: Text,
    value: U256,
    /// Hex.
    input: Text,
    receipt: Text,
    trace: Text,
    /// The filter of all constant addresses and topics.
    bloom: Bloom,
    topics: Vec<Slot>,
    /// Whether the created contract logs.
    contract_logs: bool,
    pub(crate) frames: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptHead<'a> {
    transaction_hash: &'a str,
    block_hash: &'a str,
    block_number: &'a str,
    transaction_index: &'a str,
    cumulative_gas_used: &'a str,
    logs_bloom: &'a str,
    #[serde(borrow)]
    logs: Vec<LogHead<'a>>,
}

#[derive(Deserialize)]
struct LogHead<'a> {
    address: &'a str,
    #[serde(borrow)]
    topics: Vec<&'a str>,
}

#[derive(Deserialize)]
struct Memo<'a> {
    #[serde(rename = "type")]
    kind: u8,
    #[serde(borrow)]
    gas_fee_cap: &'a RawValue,
    gas_limit: u64,
}

impl EvmTemplate {
    pub(crate) fn compile(
        body: &[u8],
        receipt: &str,
        trace: &str,
        needles: &[Needle],
        values: &Values,
        chain_id: u64,
    ) -> Option<Self> {
        let body = fields(body)?;
        let memo: Memo<'_> = serde_json::from_slice(bytes(&body, 2)).ok()?;
        let message = fields(bytes(&body, 1))?;
        let creates = bytes(&message, 1).ends_with(b"MsgCreate");
        let message = fields(bytes(&message, 2))?;
        let (to, input, value) = if creates { (0, 2, 3) } else { (2, 3, 4) };
        let text = |field| std::str::from_utf8(bytes(&message, field)).ok();
        let to = if creates { "" } else { text(to)?.strip_prefix("0x")? };
        let input = text(input)?.strip_prefix("0x")?;
        if memo.kind != 0 || memo.gas_fee_cap.get() != "0" {
            return None;
        }
        let head: ReceiptHead<'_> = serde_json::from_str(receipt).ok()?;
        let (mut bloom, mut topics, mut contract_logs) = (Bloom::ZERO, Vec::new(), false);
        for log in &head.logs {
            let address = log.address.get(2..)?;
            if values.contract.as_ref().is_some_and(|contract| contract.hex == address) {
                contract_logs = true;
            } else {
                accrue(&mut bloom, &hex::decode(address).ok()?);
            }
            for topic in &log.topics {
                match Text::cut(topic.as_bytes(), needles).only_slot() {
                    Some(slot) => topics.push(slot),
                    None => accrue(&mut bloom, &hex::decode(topic.get(2..)?).ok()?),
                }
            }
        }
        let frames = memchr::memmem::find_iter(trace.as_bytes(), br#""gasUsed":"#).count();
        let needles_of_tx = needles;
        let mut needles = needles.to_vec();
        let member = |name: &str, value: &str| format!(r#""{name}":"{value}""#);
        let end = Part::Constant("\"");
        needles.extend([
            Needle::new(head.transaction_hash.get(2..)?, Slot::EthHash),
            Needle::new(head.block_hash.get(2..)?, Slot::EthBlock),
            Needle::new(head.logs_bloom.get(2..)?, Slot::Bloom),
            Needle::with_parts(
                member("blockNumber", head.block_number),
                &[Part::Constant(r#""blockNumber":"0x"#), Part::Slot(Slot::Height), end.clone()],
            ),
            Needle::with_parts(
                member("transactionIndex", head.transaction_index),
                &[Part::Constant(r#""transactionIndex":"0x"#), Part::Slot(Slot::Position), end.clone()],
            ),
            Needle::with_parts(
                member("cumulativeGasUsed", head.cumulative_gas_used),
                &[Part::Constant(r#""cumulativeGasUsed":"0x"#), Part::Slot(Slot::GasSoFar), end],
            ),
        ]);
        Some(Self {
            chain_id,
            gas_limit: memo.gas_limit,
            to: Text::cut(to.as_bytes(), needles_of_tx),
            value: U256::from_str_radix(text(value).filter(|value| !value.is_empty()).unwrap_or("0"), 10)
                .ok()?,
            input: Text::cut(input.as_bytes(), needles_of_tx),
            receipt: Text::cut(receipt.as_bytes(), &needles),
            trace: Text::cut(trace.as_bytes(), &needles),
            bloom,
            topics,
            contract_logs,
            frames: frames as u64,
        })
    }

    /// Whether the template with these values renders the recorded texts.
    pub(crate) fn renders(&self, receipt: &str, trace: &str, values: &Values) -> bool {
        let Ok(head) = serde_json::from_str::<ReceiptHead<'_>>(receipt) else { return false };
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let numbers = [head.block_number, head.transaction_index, head.cumulative_gas_used].map(number);
        let [Some(height), Some(position), Some(gas_so_far)] = numbers else { return false };
        let place =
            Place { height, eth_block: head.block_hash.trim_start_matches("0x"), position, gas_so_far };
        let (mut receipts, mut traces) = (Vec::new(), Vec::new());
        self.render(&mut receipts, &mut traces, values, place);
        receipts == receipt.as_bytes() && traces == trace.as_bytes()
    }

    /// Appends receipt and trace; returns the hash of the transaction and the filter of its logs.
    pub(crate) fn render(
        &self,
        receipts: &mut Vec<u8>,
        traces: &mut Vec<u8>,
        values: &Values,
        place: Place<'_>,
    ) -> ([u8; 32], Bloom) {
        let (hash, bloom) = (self.hash(values), self.bloom(values));
        let hex = hex::encode(hash);
        let write = |slot: Slot, out: &mut Vec<u8>| match slot {
            Slot::EthHash => out.extend_from_slice(hex.as_bytes()),
            Slot::EthBlock => out.extend_from_slice(place.eth_block.as_bytes()),
            Slot::Height => out.extend_from_slice(format!("{:x}", place.height).as_bytes()),
            Slot::Position => out.extend_from_slice(format!("{:x}", place.position).as_bytes()),
            Slot::GasSoFar => out.extend_from_slice(format!("{:x}", place.gas_so_far).as_bytes()),
            Slot::Bloom => out.extend_from_slice(hex::encode(bloom).as_bytes()),
            slot => values.write(slot, out),
        };
        self.receipt.render(receipts, write);
        self.trace.render(traces, write);
        (hash, bloom)
    }

    fn hash(&self, values: &Values) -> [u8; 32] {
        let decoded = |text: &Text| {
            let mut hex = Vec::new();
            text.render(&mut hex, |slot, out| values.write(slot, out));
            hex::decode(hex).unwrap_or_default()
        };
        let (to, input) = (decoded(&self.to), decoded(&self.input));
        let tx = LegacyTx {
            nonce: values.sequence,
            gas_limit: self.gas_limit,
            to: &to,
            value: self.value,
            input: &input,
            signature: &values.signature,
        };
        tx.hash(self.chain_id)
    }

    pub(crate) fn bloom(&self, values: &Values) -> Bloom {
        let mut bloom = self.bloom;
        for topic in &self.topics {
            match topic {
                Slot::Account(role, _) => {
                    values.account(*role).map(|account| accrue(&mut bloom, &word(&account.address)))
                }
                _ => values.token.map(|token| accrue(&mut bloom, &U256::from(token).to_be_bytes::<32>())),
            };
        }
        if let Some(contract) = values.contract.as_ref().filter(|_| self.contract_logs) {
            accrue(&mut bloom, &contract.address);
        }
        bloom
    }
}
