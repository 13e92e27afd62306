//! Module `block`, but for what needs no block: rewards, and the time until a block.

use serde_json::json;

use crate::outcome::{Failure, Outcome, Success};
use crate::reads::Reads;

/// Blocks by which the time of a coming one is estimated.
const SAMPLE: u64 = 1000;

fn text(text: &str) -> Failure {
    Failure::Text(text.to_owned())
}

fn height(reads: &Reads<'_>) -> Result<u64, Failure> {
    reads.form.number("blockno")?.ok_or_else(|| text("Error! Missing parameter blockno"))
}

/// The chain creates no currency with a block, and its blocks name no miner.
pub(crate) fn getblockreward(reads: &Reads<'_>) -> Outcome {
    let height = height(reads)?;
    let time = reads.view.timestamp(height)?.ok_or_else(|| text("Error! Block not found"))?;
    let reward = json!({
        "blockNumber": height.to_string(),
        "timeStamp": time.to_string(),
        "blockMiner": format!("0x{}", "0".repeat(40)),
        "blockReward": "0",
        "uncles": [],
        "uncleInclusionReward": "0",
    });
    Ok(Success::Result(reward.to_string().into_bytes()))
}

pub(crate) fn getblockcountdown(reads: &Reads<'_>) -> Outcome {
    let (height, head) = (height(reads)?, reads.view.head());
    let left = height.checked_sub(head).filter(|left| *left > 0);
    let left = left.ok_or_else(|| text("Error! Block number already pass"))?;
    let first = reads.view.first().max(head.saturating_sub(SAMPLE)).min(head);
    let times = (reads.view.timestamp(first)?, reads.view.timestamp(head)?);
    let ((Some(start), Some(end)), blocks @ 1..) = (times, head - first) else {
        return Err(text("Error! There are too few blocks to tell their interval"));
    };
    let tenths = u128::from(end.saturating_sub(start)) * 10 * u128::from(left) / u128::from(blocks);
    let countdown = json!({
        "CurrentBlock": head.to_string(),
        "CountdownBlock": height.to_string(),
        "RemainingBlock": left.to_string(),
        "EstimateTimeInSec": format!("{}.{}", tenths / 10, tenths % 10),
    });
    Ok(Success::Result(countdown.to_string().into_bytes()))
}
