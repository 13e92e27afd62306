//! The EVM part of a forged height: its block, receipts and traces.
//!
//! Not every transaction has a receipt. A receipt belongs to the first transaction, after that of the
//! previous receipt, with the same gas, outcome and number of logs; a receipt without a match is an error.

use std::collections::HashSet;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Before, Fork, block};
use crate::edit::{self, get, list, number, put, quantity, text};
use crate::eth_header::{EMPTY_ROOT, eth_header_hash};
use crate::recording::{Height, Trace, items};

/// The bytes of a bloom filter.
const BLOOM_BYTES: usize = 256;

/// The members of a height that only chains with an EVM have.
#[derive(Default)]
pub(super) struct Evm {
    pub(super) block: Option<Bytes>,
    pub(super) receipts: Option<Bytes>,
    pub(super) trace: Option<Trace>,
    /// The forged hash of the EVM's block.
    pub(super) hash: Option<String>,
}

pub(super) fn forge(
    height: &Height,
    kept: &[bool],
    before: &Before,
    block: &block::Block,
    fork: Fork,
) -> Result<Evm, String> {
    let (Some(eth_block), Some(receipts)) = (&height.eth_block, &height.eth_receipts) else {
        return Ok(Evm::default());
    };
    let mut eth_block = parse(eth_block)?;
    let (receipts, dropped) = split(parse(receipts)?, &height.block_results, kept)?;
    if let Some(parent) = &before.eth_block {
        put(&mut eth_block, "/parentHash", &**parent)?;
    }
    let seconds =
        u64::try_from(block.time.unix_nanos().div_euclid(1_000_000_000)).map_err(|e| e.to_string())?;
    put(&mut eth_block, "/timestamp", quantity(seconds))?;
    let mut gone = 0_u64;
    for receipt in &dropped {
        gone = gone.saturating_add(number(receipt, "/gasUsed")?);
    }
    let gas_used = number(&eth_block, "/gasUsed")?.saturating_sub(gone);
    put(&mut eth_block, "/gasUsed", quantity(gas_used))?;
    put(&mut eth_block, "/logsBloom", bloom(&receipts)?)?;
    let hashes =
        receipts.iter().map(|r| get(r, "/transactionHash").cloned()).collect::<Result<Vec<_>, _>>()?;
    put(&mut eth_block, "/transactions", hashes)?;
    for root in ["/transactionsRoot", "/receiptsRoot"].iter().filter(|_| !dropped.is_empty()) {
        let other = fork.instead_of(&edit::hex_data(&eth_block, root)?);
        let other = format!("0x{}", hex::encode(other));
        put(&mut eth_block, root, if receipts.is_empty() { EMPTY_ROOT } else { &*other })?;
    }
    let hash = format!("0x{}", hex::encode(eth_header_hash(&eth_block)?));
    put(&mut eth_block, "/hash", &*hash)?;
    let receipts = renumbered(receipts, &hash)?;
    Ok(Evm {
        block: Some(eth_block.to_string().into()),
        receipts: Some(Value::Array(receipts).to_string().into()),
        trace: height.eth_trace.as_ref().map(|trace| traces(trace, &dropped)).transpose()?,
        hash: Some(hash),
    })
}

/// The receipts of the kept transactions, and those of the others.
fn split(receipts: Value, results: &[u8], kept: &[bool]) -> Result<(Vec<Value>, Vec<Value>), String> {
    let Value::Array(receipts) = receipts else { return Err("the receipts are not an array".to_owned()) };
    let results = parse(results)?;
    let mut txs = list(&results, "/txs_results")?.iter().zip(kept);
    let (mut stay, mut go) = (Vec::new(), Vec::new());
    for receipt in receipts {
        let about = About::receipt(&receipt)?;
        let is_kept = loop {
            let (result, kept) =
                txs.next().ok_or_else(|| format!("no transaction has the receipt {about:?}"))?;
            if About::result(result)? == about {
                break *kept;
            }
        };
        if is_kept { stay.push(receipt) } else { go.push(receipt) }
    }
    Ok((stay, go))
}

/// The values that a receipt shares with the result of its transaction.
#[derive(Debug, PartialEq, Eq)]
struct About {
    gas: u64,
    ok: bool,
    logs: usize,
}

impl About {
    fn receipt(receipt: &Value) -> Result<Self, String> {
        Ok(Self {
            gas: number(receipt, "/gasUsed")?,
            ok: text(receipt, "/status")? == "0x1",
            logs: list(receipt, "/logs")?.len(),
        })
    }

    fn result(result: &Value) -> Result<Self, String> {
        let ok = number(result, "/code")? == 0;
        let mut logs = 0;
        // A failed transaction's logs are reverted.
        for event in if ok { list(result, "/events")? } else { &[] } {
            if text(event, "/type")? == "evm" {
                logs += list(event, "/attributes")?.iter().filter(|a| a["key"] == "log").count();
            }
        }
        Ok(Self { gas: number(result, "/gas_used")?, ok, logs })
    }
}

/// Positions from 1 and running sums, as minievm counts them; its log indexes are per transaction.
fn renumbered(mut receipts: Vec<Value>, block_hash: &str) -> Result<Vec<Value>, String> {
    let mut gas = 0_u64;
    for (place, receipt) in (1..).zip(&mut receipts) {
        gas = gas.saturating_add(number(receipt, "/gasUsed")?);
        put(receipt, "/cumulativeGasUsed", quantity(gas))?;
        let logs = list(receipt, "/logs")?.len();
        let owners = std::iter::once(String::new()).chain((0..logs).map(|log| format!("/logs/{log}")));
        for owner in owners {
            put(receipt, &format!("{owner}/transactionIndex"), quantity(place))?;
            put(receipt, &format!("{owner}/blockHash"), block_hash)?;
        }
    }
    Ok(receipts)
}

/// The bloom filter of a block: the union of those of its receipts.
fn bloom(receipts: &[Value]) -> Result<String, String> {
    let mut all = vec![0; BLOOM_BYTES];
    for receipt in receipts {
        let bytes = edit::hex_data(receipt, "/logsBloom")?;
        all.iter_mut().zip(bytes).for_each(|(all, one)| *all |= one);
    }
    Ok(format!("0x{}", hex::encode(all)))
}

/// The traces without those of dropped transactions.
fn traces(trace: &Trace, dropped: &[Value]) -> Result<Trace, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry<'a> {
        tx_hash: &'a str,
    }
    let Trace::Result(raw) = trace else { return Ok(trace.clone()) };
    let dropped = dropped.iter().map(|r| text(r, "/transactionHash")).collect::<Result<HashSet<_>, _>>()?;
    let mut kept = Vec::new();
    for entry in items(raw).map_err(|e| e.to_string())? {
        let Entry { tx_hash } = serde_json::from_str(entry.get()).map_err(|e| e.to_string())?;
        if !dropped.contains(tx_hash) {
            kept.push(RawValue::get(entry));
        }
    }
    Ok(Trace::Result(format!("[{}]", kept.join(",")).into()))
}

fn parse(raw: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(raw).map_err(|e| e.to_string())
}
