//! Usable transactions of a recorded MiniEVM: Ethereum transactions without a fee, by the shape of their receipts.

use std::collections::BTreeMap;

use alloy::primitives::U256;
use replay::Recording;
use replay::recording::{Height, Trace};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::accounts::Account;
use crate::auth::Auth;
use crate::eth;
use crate::recorded::{Found, array, raw_txs, results};
use crate::template::{Recorded, Template};
use crate::values::{Dialect, Values};
use crate::workload::{Candidate, Kind};

/// keccak-256 of `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const ZERO: &str = "0000000000000000000000000000000000000000";
/// Templates of transactions of one shape.
const SAMPLES: u64 = 4;
/// A shape with less than this share of the transactions is left out.
const MIN_SHARE: u64 = 300;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt<'a> {
    status: &'a str,
    to: Option<&'a str>,
    from: &'a str,
    contract_address: Option<&'a str>,
    #[serde(borrow)]
    logs: Vec<Log<'a>>,
}

#[derive(Deserialize)]
struct Log<'a> {
    address: &'a str,
    #[serde(borrow)]
    topics: Vec<&'a str>,
    data: &'a str,
}

/// The shape of a transaction: transactions of one shape are of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    kind: u8,
    to: Option<String>,
    succeeds: bool,
    logs: usize,
}

/// All candidates, and the first unused number of an NFT.
pub(crate) fn candidates(recording: &Recording, prefix: &str) -> (Vec<Candidate>, u64) {
    let chain_id = eth::chain_id(&recording.summary().chain_id);
    let dialect = Dialect { vm: chain::Vm::Evm, chain_id, metadata: None };
    let mut shapes = BTreeMap::<Shape, (u64, Vec<(Template, Kind, Account)>)>::new();
    let mut next_token = 1 << 16;
    for height in recording.heights() {
        for found in of_height(height) {
            let Ok(receipt) = serde_json::from_str::<Receipt<'_>>(found.receipt) else { continue };
            for log in receipt.logs.iter().filter(|log| log.topics.len() == 4 && log.topics[0] == TRANSFER) {
                next_token = next_token.max(number(log.topics[3]).map_or(0, |token| token.saturating_add(1)));
            }
            let Some((kind, recipient, token)) = kind(&receipt, found.raw.result) else { continue };
            let shape = Shape {
                kind: order(&kind),
                to: receipt.to.map(str::to_owned),
                succeeds: receipt.status == "0x1",
                logs: receipt.logs.len(),
            };
            let (count, samples) = shapes.entry(shape).or_default();
            *count += 1;
            // Later transactions have higher numbers, which are not parts of other words.
            if samples.len() as u64 >= SAMPLES || *count % 8 != 1 {
                continue;
            }
            let Some((auth, sender)) =
                Auth::parse(&found.raw.raw).and_then(|a| a.account(prefix).map(|s| (a.sequence, s)))
            else {
                continue;
            };
            let account =
                |address: Option<[u8; 20]>| address.map(|address| Account::new(address, None, prefix));
            let created = receipt.contract_address.and_then(address);
            let values = Values {
                recipient: account(recipient),
                contract: account(created),
                sequence: auth,
                token,
                signature: found.signature(),
                sender,
            };
            let same = values.recipient.as_ref().is_some_and(|to| to.address == values.sender.address);
            if same || format!("0x{}", values.sender.hex) != receipt.from {
                continue;
            }
            let recorded = Recorded {
                raw: found.raw.raw.clone(),
                result: found.raw.result.to_owned(),
                evm: Some((found.receipt, found.trace)),
            };
            if let Some(template) = Template::compile(&recorded, &values, &dialect) {
                samples.push((template, kind, values.sender));
            }
        }
    }
    let all: u64 = shapes.values().map(|(count, _)| count).sum();
    let frequent = shapes.into_values().filter(|(count, _)| count * MIN_SHARE >= all);
    let candidates = frequent.flat_map(|(count, samples)| {
        let weight = count * SAMPLES / (samples.len() as u64).max(1);
        samples.into_iter().map(move |(template, kind, sender)| Candidate { template, kind, sender, weight })
    });
    (candidates.collect(), next_token)
}

fn order(kind: &Kind) -> u8 {
    match kind {
        Kind::Call => 0,
        Kind::Creation(_) => 1,
        Kind::Payment { .. } => 2,
        Kind::Mint { .. } => 3,
        Kind::Handover { .. } => 4,
    }
}

/// The kind of a transaction, its recipient, and the number of its NFT; `None` if it changes state in another way.
fn kind(receipt: &Receipt<'_>, result: &str) -> Option<(Kind, Option<[u8; 20]>, Option<u64>)> {
    let from = receipt.from.get(2..)?;
    let transfers = receipt.logs.iter().filter(|log| log.topics.first() == Some(&TRANSFER)).count();
    if transfers == 0 {
        return match (receipt.to, receipt.contract_address) {
            (None, Some(_)) if receipt.logs.is_empty() => Some((Kind::Creation(0), None, None)),
            // A nested creation of a constant contract would create it again and again.
            (Some(_), _) if !result.contains("contract_created") => Some((Kind::Call, None, None)),
            _ => None,
        };
    }
    let [log] = &receipt.logs[..] else { return None };
    let party = |at: usize| log.topics.get(at).and_then(|topic| topic.get(26..));
    let (payer, payee) = (party(1)?, party(2)?);
    let (to, is_token) = (address(&format!("0x{payee}"))?, log.topics.len() == 4);
    let contract = log.address.to_owned();
    let amount = number(log.data).map(u128::from);
    match receipt.to {
        None if !is_token
            && payer == ZERO
            && payee == from
            && receipt.contract_address == Some(log.address) =>
        {
            let amount = U256::from_str_radix(log.data.get(2..)?, 16).ok()?;
            Some((Kind::Creation(amount.try_into().ok()?), None, None))
        }
        Some(called) if called != log.address => None,
        Some(_) if is_token && payer == ZERO => {
            Some((Kind::Mint { collection: contract }, Some(to), Some(number(log.topics[3])?)))
        }
        Some(_) if is_token && payer == from => {
            Some((Kind::Handover { since_mint: 0 }, Some(to), Some(number(log.topics[3])?)))
        }
        Some(_) if !is_token && payer == from && payee != ZERO => {
            Some((Kind::Payment { asset: contract, amount: amount? }, Some(to), None))
        }
        _ => None,
    }
}

/// A transaction with its receipt and its trace.
struct FoundEvm<'a> {
    raw: Found<'a>,
    receipt: &'a str,
    trace: &'a str,
}

impl FoundEvm<'_> {
    fn signature(&self) -> Vec<u8> {
        self.raw.signature()
    }
}

/// The transactions of a height, if each has a receipt and a trace.
fn of_height(height: &Height) -> Vec<FoundEvm<'_>> {
    let (Some(receipts), Some(Trace::Result(traces))) = (&height.eth_receipts, &height.eth_trace) else {
        return Vec::new();
    };
    let (txs, results) = (raw_txs(height), results(height));
    let (receipts, traces) = (array(receipts), array(traces));
    if [txs.len(), results.len(), receipts.len(), traces.len()].iter().any(|len| *len != txs.len()) {
        return Vec::new();
    }
    let found = txs.into_iter().zip(results).zip(receipts.into_iter().zip(traces));
    found
        .map(|((raw, result), (receipt, trace))| FoundEvm {
            raw: Found { raw, result: RawValue::get(result) },
            receipt: RawValue::get(receipt),
            trace: RawValue::get(trace),
        })
        .collect()
}

fn address(text: &str) -> Option<[u8; 20]> {
    hex::decode(text.get(2..)?).ok()?.try_into().ok()
}

fn number(word: &str) -> Option<u64> {
    U256::from_str_radix(word.get(2..)?, 16).ok()?.try_into().ok()
}
