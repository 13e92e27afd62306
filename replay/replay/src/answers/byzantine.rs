//! Byzantine answers: well-formed answers with false contents.
//!
//! The random number of the [`Deviation`] selects the changed member and the change.
//!
//! # Invariants
//!
//! - A false reply has the shape of a correct one and differs only where its [`Deviation`] states.
//! - A reply without these contents, for example of a block without transactions, stays correct.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chain::time::Timestamp;
use serde_json::Value;

use super::{Deviation, Deviations};
use crate::edit::{get, hex, list, number, put, quantity, text};
use crate::header::header_hash;
use crate::seeded_rng::{below, mix};

/// The JSON text of a node's status or info, with its chain id at `path`.
pub(super) fn network(raw: &str, path: &str, deviations: &Deviations) -> Result<String, String> {
    if !deviations.has(Deviation::WrongChain) {
        return Ok(raw.to_owned());
    }
    let mut json = parse(raw.as_bytes())?;
    let other = other_chain(text(&json, path)?);
    put(&mut json, path, other)?;
    Ok(json.to_string())
}

/// A `/block` result.
pub(super) fn block(raw: &Bytes, deviations: &Deviations) -> Result<Bytes, String> {
    let (txs, header) = (deviations.get(Deviation::FalseTxs), is_header_false(deviations));
    if txs.is_none() && !header {
        return Ok(raw.clone());
    }
    let mut json = parse(raw)?;
    if let Some(random) = txs {
        change_txs(&mut json, random)?;
    }
    if header {
        let place = json.pointer_mut("/block/header").ok_or("/block/header is missing")?;
        change_header(place, deviations)?;
        if deviations.has(Deviation::FalseHeaderRehashed) || deviations.has(Deviation::WrongChain) {
            let hash = header_hash(get(&json, "/block/header")?)?;
            put(&mut json, "/block_id/hash", hex::encode_upper(hash))?;
        }
    }
    Ok(json.to_string().into())
}

/// The header alone, as JSON text.
pub(super) fn header(raw: &str, deviations: &Deviations) -> Result<String, String> {
    if !is_header_false(deviations) {
        return Ok(raw.to_owned());
    }
    let mut json = parse(raw.as_bytes())?;
    change_header(&mut json, deviations)?;
    Ok(json.to_string())
}

/// The header, later by this number of seconds.
pub(super) fn later(header: String, seconds: Option<u64>) -> Result<String, String> {
    const NANOS: i64 = 1_000_000_000;
    let Some(seconds) = seconds.and_then(|seconds| i64::try_from(seconds).ok()) else { return Ok(header) };
    let mut json = parse(header.as_bytes())?;
    let time = Timestamp::parse(text(&json, "/time")?).map_err(|e| e.to_string())?;
    let nanos = time.unix_nanos().saturating_add(seconds.saturating_mul(NANOS));
    json["time"] = Timestamp::from_unix_nanos(nanos).nanos().into();
    Ok(json.to_string())
}

/// A `/block_results` result.
pub(super) fn results(raw: &Bytes, deviations: &Deviations) -> Result<Bytes, String> {
    let (result, event) = (deviations.get(Deviation::FalseResults), deviations.get(Deviation::FalseEvents));
    if result.is_none() && event.is_none() {
        return Ok(raw.clone());
    }
    let mut json = parse(raw)?;
    if let Some(random) = result {
        change_result(&mut json, random)?;
    }
    if let Some(random) = event {
        change_event(&mut json, random)?;
    }
    Ok(json.to_string().into())
}

/// A reply to `eth_getBlockReceipts`.
pub(super) fn receipts(raw: &Bytes, deviations: &Deviations) -> Result<Bytes, String> {
    let Some(random) = deviations.get(Deviation::FalseReceipts) else { return Ok(raw.clone()) };
    let Value::Array(mut receipts) = parse(raw)? else {
        return Err("the receipts are not an array".to_owned());
    };
    if receipts.is_empty() {
        return Ok(raw.clone());
    }
    let place = below(mix(random), receipts.len());
    let receipt = &mut receipts[place];
    match random % 5 {
        0 => {
            let other = if text(receipt, "/status")? == "0x1" { "0x0" } else { "0x1" };
            put(receipt, "/status", other)?;
        }
        1 if !list(receipt, "/logs")?.is_empty() => {
            let logs = list(receipt, "/logs")?;
            let fewer = logs[..logs.len() - 1].to_vec();
            put(receipt, "/logs", fewer)?;
        }
        2 => {
            let hash = other_digit(text(receipt, "/transactionHash")?);
            put(receipt, "/transactionHash", hash)?;
        }
        3 => drop(receipts.remove(place)),
        _ => {
            let gas = number(receipt, "/gasUsed")?.saturating_add(1);
            put(receipt, "/gasUsed", quantity(gas))?;
        }
    }
    Ok(Value::Array(receipts).to_string().into())
}

/// A receipt, a list of receipts or an EVM block of a height, with the block hashes of a rebuilt EVM index.
pub(super) fn rebuilt(raw: Bytes, height: u64, deviations: &Deviations) -> Result<Bytes, String> {
    let Some(first) = deviations.get(Deviation::OtherBlockHashes).filter(|first| *first <= height) else {
        return Ok(raw);
    };
    let mut json = parse(&raw)?;
    if json.get("parentHash").is_some() {
        change_hashes(
            &mut json,
            if first < height { &["hash", "parentHash", "blockHash"] } else { &["hash", "blockHash"] },
        );
    } else {
        change_hashes(&mut json, &["blockHash"]);
    }
    Ok(json.to_string().into())
}

/// Changes the hashes in members with these names, at any depth.
fn change_hashes(json: &mut Value, names: &[&str]) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| change_hashes(item, names)),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(hash) if names.contains(&name.as_str()) => *hash = other_digit(hash),
                    _ => change_hashes(member, names),
                }
            }
        }
        _ => {}
    }
}

/// A chain id that differs from the recorded one.
fn other_chain(chain_id: &str) -> String {
    format!("not-{chain_id}")
}

fn is_header_false(deviations: &Deviations) -> bool {
    [Deviation::FalseHeader, Deviation::FalseHeaderRehashed, Deviation::WrongChain]
        .iter()
        .any(|deviation| deviations.has(*deviation))
}

fn change_header(header: &mut Value, deviations: &Deviations) -> Result<(), String> {
    if deviations.has(Deviation::WrongChain) {
        let chain = other_chain(text(header, "/chain_id")?);
        put(header, "/chain_id", chain)?;
    }
    let Some(random) =
        deviations.get(Deviation::FalseHeader).or(deviations.get(Deviation::FalseHeaderRehashed))
    else {
        return Ok(());
    };
    match random % 3 {
        0 => {
            let time = Timestamp::parse(text(header, "/time")?).map_err(|e| e.to_string())?.unix_nanos();
            put(header, "/time", Timestamp::from_unix_nanos(time.saturating_add(1)).nanos())
        }
        1 => put_other_bytes(header, "/proposer_address", mix(random)),
        _ => put_other_bytes(header, "/app_hash", mix(random)),
    }
}

/// Changes bytes in upper-case hex.
fn put_other_bytes(json: &mut Value, path: &str, random: u64) -> Result<(), String> {
    let other = other_bit(hex(json, path)?, random);
    put(json, path, hex::encode_upper(other))
}

fn change_txs(block: &mut Value, random: u64) -> Result<(), String> {
    let mut txs = list(block, "/block/data/txs")?.to_vec();
    if txs.is_empty() {
        return Ok(());
    }
    let place = below(mix(random), txs.len());
    if random.is_multiple_of(2) {
        txs.remove(place);
    } else {
        let tx = decoded(txs[place].as_str().unwrap_or_default())?;
        txs[place] = STANDARD.encode(other_bit(tx, mix(mix(random)))).into();
    }
    put(block, "/block/data/txs", txs)
}

fn change_result(results: &mut Value, random: u64) -> Result<(), String> {
    let count = list(results, "/txs_results")?.len();
    if count == 0 {
        return Ok(());
    }
    let result = format!("/txs_results/{}", below(mix(random), count));
    match random % 3 {
        0 => {
            let path = format!("{result}/code");
            let code = u64::from(number(results, &path)? == 0);
            put(results, &path, code)
        }
        1 => {
            let path = format!("{result}/data");
            let data = decoded(get(results, &path)?.as_str().unwrap_or_default())?;
            let data = if data.is_empty() { vec![0] } else { other_bit(data, mix(mix(random))) };
            put(results, &path, STANDARD.encode(data))
        }
        _ => {
            let path = format!("{result}/gas_used");
            let gas = number(results, &path)?.saturating_add(1);
            put(results, &path, gas.to_string())
        }
    }
}

fn change_event(results: &mut Value, random: u64) -> Result<(), String> {
    let mut owners: Vec<String> =
        (0..list(results, "/txs_results")?.len()).map(|tx| format!("/txs_results/{tx}/events")).collect();
    owners.push("/finalize_block_events".to_owned());
    let mut values = Vec::new();
    for owner in owners {
        for (event, json) in list(results, &owner)?.iter().enumerate() {
            let attributes = list(json, "/attributes")?.iter().enumerate();
            // A node may omit an empty value.
            let named = attributes.filter(|(_, attribute)| attribute["value"].is_string());
            values.extend(named.map(|(i, _)| format!("{owner}/{event}/attributes/{i}/value")));
        }
    }
    let Some(path) = values.get(below(mix(random), values.len())) else { return Ok(()) };
    let other = other_digit(text(results, path)?);
    put(results, path, other)
}

/// A text with its last digit replaced by another one, or made longer if it has none.
fn other_digit(text: &str) -> String {
    match text.rfind(|c: char| c.is_ascii_digit()) {
        Some(at) => {
            let other = if text[at..].starts_with('7') { "8" } else { "7" };
            format!("{}{other}{}", &text[..at], &text[at + 1..])
        }
        None => format!("{text}x"),
    }
}

/// Bytes with one bit flipped.
fn other_bit(mut bytes: Vec<u8>, random: u64) -> Vec<u8> {
    let place = below(random, bytes.len());
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= 1 << (mix(random) % 8);
    }
    bytes
}

fn decoded(base64: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(base64).map_err(|e| format!("{base64:?} is not base64: {e}"))
}

fn parse(raw: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(raw).map_err(|e| e.to_string())
}
