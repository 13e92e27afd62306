//! Golden replies of the deployed server on the recorded chains, and the allowed differences.
//!
//! The rules are those of `goldens/compare.mjs`; `goldens/README.md` gives the reasons.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

/// A request and the deployed server's reply.
#[derive(Debug)]
pub struct Case {
    /// Path and query.
    pub target: String,
    /// HTTP status.
    pub status: u16,
    /// The body: JSON, or the text of an error.
    pub body: Value,
}

/// The requests of `goldens/<name>.ndjson.zst`.
pub fn cases(name: &str) -> Result<Vec<Case>> {
    let path = crate::root().join("testing/goldens").join(format!("{name}.ndjson.zst"));
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let text = String::from_utf8(zstd::stream::decode_all(bytes.as_slice())?)?;
    text.lines().map(case).collect()
}

fn case(line: &str) -> Result<Case> {
    let mut line: Value = serde_json::from_str(line)?;
    let status = line["r"]["status"].as_u64().context("no status")?;
    Ok(Case {
        target: line["u"].as_str().context("no target")?.to_owned(),
        status: u16::try_from(status)?,
        body: line["r"]["body"].take(),
    })
}

impl Case {
    /// The reason why the reply is not compared, if there is one.
    pub fn left_out(&self) -> Option<&'static str> {
        let target = self.target.as_str();
        let msgs = target.split(['?', '&']).find_map(|pair| pair.strip_prefix("msgs="));
        if self.status >= 500 {
            Some("the deployed server failed")
        } else if msgs.is_some_and(|msgs| msgs.contains(',')) {
            Some("it does not split a comma list")
        } else if msgs.is_some_and(|msgs| msgs.is_empty() || msgs.starts_with("no.such")) {
            Some("it ignores an unknown message type")
        } else if msgs.is_some_and(|msgs| msgs.starts_with('/')) {
            // The client kit sends the filter in this form.
            Some("it takes a name with its leading slash for an unknown message type")
        } else if target.contains("is_signer=true") && target.contains("/txs/by_account") {
            Some("it knows only the first signer")
        } else if target.contains("swagger") {
            Some("a document of its own")
        } else if target.contains("/nft/") && target.split('?').next().is_some_and(|path| path.contains('%'))
        {
            // The client kit sends the decoded name and token.
            Some("it takes a path parameter as it is encoded")
        } else if target
            .split_once("/by_name/")
            .is_some_and(|(_, name)| !name.contains(char::is_alphanumeric))
        {
            Some("it finds every name by a text without letters and digits")
        } else if target.contains("richlist") && self.body["holders"].as_array().is_some_and(Vec::is_empty) {
            Some("an empty list where there is no rich list: ours is 404")
        } else {
            None
        }
    }

    /// The difference from the deployed server's reply, if it is not an allowed one.
    pub fn difference(&self, status: u16, body: &[u8]) -> Option<String> {
        if status != self.status {
            return Some(format!("status {status}, expected {}", self.status));
        }
        let Ok(ours) = serde_json::from_slice::<Value>(body) else { return Some("not JSON".to_owned()) };
        if status != 200 {
            let error = ours["code"].is_u64() && ours["message"].is_string() && ours["details"].is_array();
            return (!error).then(|| format!("not an error body: {ours}"));
        }
        let (mut theirs, mut ours) = (self.body.clone(), ours);
        // It estimates some totals or returns -1, and counts holders with amount 0.
        let total = &theirs["pagination"]["total"];
        if total == "-1" || (total.is_string() && self.target.contains("richlist")) {
            theirs["pagination"]["total"].clone_from(&ours["pagination"]["total"]);
        }
        normalise(&mut theirs);
        normalise(&mut ours);
        (theirs != ours).then(|| first_difference("", &theirs, &ours).unwrap_or_default())
    }
}

/// Removes the build's members, cursors, our `@type` and holders with amount 0, and sorts holders of equal amounts.
fn normalise(value: &mut Value) {
    const OTHERS: [&str; 6] =
        ["version", "commit_hash", "evm_ret_cleanup_height", "rich_list_height", "next_key", "previous_key"];
    match value {
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(members) => {
            members.retain(|name, value| {
                !(OTHERS.contains(&name.as_str()) || name == "@type" && *value == "/cosmos.tx.v1beta1.Tx")
            });
            if let Some(average) = members.get("avg_block_time").and_then(Value::as_f64) {
                members.insert("avg_block_time".to_owned(), format!("{average:.9}").into());
            }
            if let Some(Value::Array(logs)) = members.get_mut("logs") {
                renumber(logs);
            }
            if let Some(Value::Array(holders)) = members.get_mut("holders") {
                holders.retain(|holder| holder["amount"] != "0");
                holders.sort_by_key(|holder| (holder["amount"].to_string(), holder["account"].to_string()));
            }
            members.values_mut().for_each(normalise);
        }
        _ => {}
    }
}

/// Numbers the logs of a receipt from 0, if they have consecutive numbers: that server numbers them within the transaction
/// as its node does, we within the block.
fn renumber(logs: &mut [Value]) {
    let number = |log: &Value| u64::from_str_radix(log["logIndex"].as_str()?.strip_prefix("0x")?, 16).ok();
    let Some(first) = logs.first().and_then(number) else { return };
    if (first..).zip(&*logs).all(|(expected, log)| number(log) == Some(expected)) {
        for (number, log) in logs.iter_mut().enumerate() {
            log["logIndex"] = format!("{number:#x}").into();
        }
    }
}

/// The first difference of two values, as text.
fn first_difference(path: &str, theirs: &Value, ours: &Value) -> Option<String> {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let names: Map<String, Value> = a.clone().into_iter().chain(b.clone()).collect();
            names.keys().find_map(|name| {
                let (a, b) = (a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null));
                first_difference(&format!("{path}.{name}"), a, b)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            (0..a.len()).find_map(|i| first_difference(&format!("{path}[{i}]"), &a[i], &b[i]))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: expected {}, got {}", short(a), short(b))),
    }
}

fn short(value: &Value) -> String {
    chain::truncated(&value.to_string(), 300)
}
