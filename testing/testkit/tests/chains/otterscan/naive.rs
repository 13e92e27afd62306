//! A recorded chain as its lines have it: receipts and call trees, read without the index.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};

use chain::AccountSet;
use chain::evm::Receipt;
use serde_json::{Value, json};
use testkit::recording;

use crate::etherscan::with_dispatched;

/// An EVM transaction.
pub(super) struct Tx {
    pub(super) height: u64,
    pub(super) receipt: Value,
    /// Its call tree; null if the node could not trace it.
    pub(super) tree: Value,
}

/// The transactions of a recorded chain, oldest first.
pub(super) fn txs(name: &str) -> Vec<Tx> {
    let file = std::fs::File::open(recording(name).join("blocks.ndjson.zst")).unwrap();
    let mut plain = zstd::stream::read::Decoder::new(file).unwrap();
    plain.window_log_max(27).unwrap();
    let mut txs = Vec::new();
    for line in BufReader::new(plain).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let traces = line["eth_trace"]["result"].as_array().cloned().unwrap_or_default();
        for receipt in line["eth_receipts"].as_array().into_iter().flatten() {
            let hash = &receipt["transactionHash"];
            let trace = traces.iter().find(|trace| trace["txHash"] == *hash);
            let tree = trace.map_or(Value::Null, |trace| trace["result"].clone());
            txs.push(Tx { height: line["height"].as_u64().unwrap(), receipt: receipt.clone(), tree });
        }
    }
    txs
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Tx {
    pub(super) fn hash(&self) -> &str {
        text(&self.receipt["transactionHash"])
    }

    pub(super) fn is_stand_in(&self) -> bool {
        text(&self.receipt["from"]).trim_start_matches("0x").bytes().all(|digit| digit == b'0')
    }

    /// The accounts in its receipt and in its calls.
    pub(super) fn accounts(&self) -> BTreeSet<String> {
        let (receipt, mut of_receipt) = (self.receipt.to_string(), AccountSet::default());
        let receipt: Receipt<'_> = serde_json::from_str(&receipt).unwrap();
        receipt.accounts(&mut of_receipt).unwrap();
        let mut all: BTreeSet<_> = of_receipt.iter().map(chain::Account::to_hex).collect();
        each(&self.tree, 0, &mut |frame, _| {
            let ends = [&frame["from"], &frame["to"]];
            all.extend(ends.into_iter().map(|end| text(end).to_lowercase()).filter(|end| !end.is_empty()));
        });
        all
    }

    /// The call of the user: the last below the synthetic one that has what the transaction has. Of a Cosmos transaction the
    /// synthetic one.
    fn own(&self, input: &str) -> Option<Value> {
        if self.is_stand_in() {
            return Some(self.tree.clone());
        }
        let creates = self.receipt["to"].is_null() || self.receipt["to"] == "";
        let calls = self.tree["calls"].as_array()?;
        let place = calls.iter().rposition(|call| {
            let to = if creates { text(&call["type"]) == "CREATE" } else { call["to"] == self.receipt["to"] };
            call["from"] == self.receipt["from"] && to && text(&call["input"]) == input
        })?;
        Some(with_dispatched(calls, place))
    }

    /// Its calls with their depths, from the user's own down.
    pub(super) fn calls(&self, input: &str) -> Vec<(Value, usize)> {
        let mut calls = Vec::new();
        if let Some(own) = self.own(input) {
            each(&own, 0, &mut |frame, depth| calls.push((frame.clone(), depth)));
        }
        if self.is_stand_in() && !calls.is_empty() {
            calls.remove(0);
            for (_, depth) in &mut calls {
                *depth -= 1;
            }
        }
        calls
    }

    /// `ots_traceTransaction`, `ots_getInternalOperations` and `ots_getTransactionError`.
    pub(super) fn expected(&self, input: &str) -> (Value, Value, String) {
        let (mut trace, mut operations) = (Vec::new(), Vec::new());
        let calls = self.calls(input);
        let or = |member: &Value, other: &str| {
            if text(member).is_empty() { other.to_owned() } else { text(member).to_owned() }
        };
        for (frame, depth) in &calls {
            let kind = text(&frame["type"]);
            let value = or(&frame["value"], "0x0");
            let has_value = !matches!(kind, "STATICCALL" | "DELEGATECALL");
            let to = or(&frame["to"], "0x0000000000000000000000000000000000000000");
            trace.push(json!({
                "type": kind, "depth": depth, "from": frame["from"], "to": to,
                "value": if has_value { json!(value) } else { Value::Null },
                "input": or(&frame["input"], "0x"), "output": or(&frame["output"], "0x"),
            }));
            let number = match kind {
                "CALL" if value != "0x0" => 0,
                "SELFDESTRUCT" => 1,
                "CREATE" => 2,
                "CREATE2" => 3,
                _ => continue,
            };
            if *depth > 0 || self.is_stand_in() {
                operations.push(json!({ "type": number, "from": frame["from"], "to": to, "value": value }));
            }
        }
        let failed = self.receipt["status"] == "0x0";
        let output = calls.first().filter(|_| failed).map(|(own, _)| or(&own["output"], "0x"));
        (trace.into(), operations.into(), output.unwrap_or_else(|| "0x".to_owned()))
    }

    /// The contracts that it created, with their creators.
    pub(super) fn created(&self) -> Vec<(String, String)> {
        let mut created = Vec::new();
        if self.receipt["status"] == "0x1" {
            successful(&self.tree, &mut |frame| {
                if text(&frame["type"]).starts_with("CREATE") {
                    created.push((text(&frame["to"]).to_owned(), text(&frame["from"]).to_owned()));
                }
            });
        }
        created
    }
}

/// Calls `see` with a call and all below it, each before those below.
fn each(frame: &Value, depth: usize, see: &mut dyn FnMut(&Value, usize)) {
    if frame.is_null() {
        return;
    }
    see(frame, depth);
    for call in frame["calls"].as_array().into_iter().flatten() {
        each(call, depth + 1, see);
    }
}

/// The same without those that failed, or are below one that did.
fn successful(frame: &Value, see: &mut dyn FnMut(&Value)) {
    if frame.is_null() || !frame["error"].is_null() {
        return;
    }
    see(frame);
    for call in frame["calls"].as_array().into_iter().flatten() {
        successful(call, see);
    }
}
