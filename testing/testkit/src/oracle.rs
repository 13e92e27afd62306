//! Oracle: the replies of a recorded chain about its own state, the reference for an index.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// A recorded query of state with its reply, as in a line of the file.
pub type Line = Value;

/// Every line of the state file of a recording whose text contains `mark`.
pub fn lines(recording: &str, mark: &str) -> Result<Vec<Line>> {
    lines_of(recording, "state.ndjson.zst", mark)
}

/// Like [`lines`], of the file with the replies that were given after the last height.
pub fn extra_lines(recording: &str, mark: &str) -> Result<Vec<Line>> {
    lines_of(recording, "extra.ndjson.zst", mark)
}

fn lines_of(recording: &str, file: &str, mark: &str) -> Result<Vec<Line>> {
    let path = crate::recording(recording).join(file);
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let text = String::from_utf8(zstd::stream::decode_all(bytes.as_slice())?)?;
    let wanted = text.lines().filter(|line| line.contains(mark));
    wanted.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// A recorded `eth_call`.
#[derive(Clone, Debug)]
pub struct EthCall {
    /// The height of the queried state.
    pub height: u64,
    /// The contract.
    pub to: [u8; 20],
    /// The call data after the selector.
    pub argument: Vec<u8>,
    /// The returned data; none if it reverted.
    pub result: Option<Vec<u8>>,
}

/// The recorded calls of the function with this `selector`, as in `0x70a08231`, by height; those that were given or computed later
/// too.
pub fn eth_calls(recording: &str, selector: &str) -> Result<Vec<EthCall>> {
    let mark = format!("\"data\":\"{selector}");
    let mut lines = lines(recording, &mark)?;
    if crate::recording(recording).join("extra.ndjson.zst").exists() {
        lines.extend(extra_lines(recording, &mark)?);
    }
    let mut calls: Vec<EthCall> = lines.iter().map(eth_call).collect::<Result<_>>()?;
    calls.sort_by_key(|call| call.height);
    Ok(calls)
}

fn eth_call(line: &Line) -> Result<EthCall> {
    let bytes = |name: &str| -> Result<Vec<u8>> {
        let text = line[name].as_str().with_context(|| format!("no {name}"))?;
        Ok(hex::decode(text.trim_start_matches("0x"))?)
    };
    let to = <[u8; 20]>::try_from(bytes("to")?).ok().context("`to` is not an address")?;
    Ok(EthCall {
        height: line["height"].as_u64().context("no height")?,
        to,
        argument: bytes("data")?.split_off(4),
        result: if line["result"].is_string() { Some(bytes("result")?) } else { None },
    })
}
