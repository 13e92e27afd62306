//! `eth_getLogs`: selection of logs of recorded receipts by a filter.
//!
//! Behaviour of go-ethereum (`eth/filters`): one address or several, topics by position with `null` for any and a list
//! for alternatives, a range of blocks or one block by its hash.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::comet_reply::{array, missing};
use super::envelope::Reply;
use super::eth_reply::{invalid_params, number_of};
use super::ethereum_blocks;
use super::{Deviation, View};

/// The argument of `eth_getLogs`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(default)]
    address: Choice,
    #[serde(default)]
    topics: Option<Vec<Choice>>,
    #[serde(default)]
    from_block: Option<String>,
    #[serde(default)]
    to_block: Option<String>,
    #[serde(default)]
    block_hash: Option<String>,
}

/// None, one or one of several; an empty list is none.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Choice {
    #[default]
    Any,
    One(String),
    Of(Vec<String>),
}

impl Choice {
    fn takes(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::One(one) => one.eq_ignore_ascii_case(text),
            Self::Of(some) => some.is_empty() || some.iter().any(|one| one.eq_ignore_ascii_case(text)),
        }
    }
}

/// The members of a log that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    address: &'a str,
    topics: Vec<&'a str>,
    block_number: &'a str,
    block_hash: &'a str,
    #[serde(rename = "transactionIndex")]
    tx: &'a str,
    #[serde(rename = "logIndex")]
    index: &'a str,
}

impl Filter {
    fn takes(&self, log: &Log<'_>) -> bool {
        let topics = self.topics.as_deref().unwrap_or_default();
        self.address.takes(log.address)
            && topics.len() <= log.topics.len()
            && topics.iter().zip(&log.topics).all(|(choice, topic)| choice.takes(topic))
            && self.block_hash.as_ref().is_none_or(|hash| hash.eq_ignore_ascii_case(log.block_hash))
    }
}

/// Replies from a rollup's heights, or from all receipts of another chain.
pub(super) fn logs(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    let raw = params.first().map_or("null", |p| p.get());
    let filter: Filter =
        serde_json::from_str(raw).map_err(|e| invalid_params(&format!("invalid argument 0: {e}")))?;
    let (from, to) = range(view, &filter)?;
    if from > to {
        return Err(Reply::error(-32000, "invalid block range params", None));
    }
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for receipts in receipts(view, from, to)? {
        for log in receipts {
            let read: Log<'_> = serde_json::from_str(&log)
                .map_err(|e| missing(view, &format!("a well-formed log of {raw}: {e}")))?;
            let number = |text| number(view, text);
            // minievm numbers the logs of each transaction separately.
            let place = (number(read.block_number)?, number(read.tx)?, number(read.index)?);
            // A receipt may be recorded under more than one hash.
            if (from..=to).contains(&place.0) && filter.takes(&read) && known.insert(place) {
                found.push((place, log));
            }
        }
    }
    found.sort_by_key(|(place, _)| *place);
    let logs: Vec<_> = found.into_iter().map(|(_, log)| log).collect();
    Ok(Reply::text(format!("[{}]", logs.join(","))))
}

/// The first and the last block; a request by hash searches all.
fn range(view: View<'_>, filter: &Filter) -> Result<(u64, u64), Reply> {
    let bound = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or("latest");
        if view.recording.is_ethereum() {
            ethereum_blocks::number_of(view, text)
        } else {
            number_of(view, text)
        }
    };
    let Some(hash) = &filter.block_hash else {
        return Ok((bound(&filter.from_block)?, bound(&filter.to_block)?));
    };
    if filter.from_block.is_some() || filter.to_block.is_some() {
        let both = "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other";
        return Err(invalid_params(&format!("invalid argument 0: {both}")));
    }
    let first = if view.recording.is_ethereum() { 0 } else { view.recording.first() };
    let last = bound(&None)?;
    ethereum_blocks::has_block(view, hash, last).then_some((first, last)).ok_or_else(|| {
        // A block that was not recorded may exist.
        missing(view, &format!("eth_getLogs of block {hash}"))
    })
}

/// The raw logs of every receipt in the order of the recording.
fn receipts(view: View<'_>, from: u64, to: u64) -> Result<Vec<Vec<String>>, Reply> {
    let logs = |receipt: &str| {
        #[derive(Deserialize)]
        struct Receipt<'a> {
            #[serde(borrow)]
            logs: Vec<&'a RawValue>,
        }
        let read: Receipt<'_> = serde_json::from_str(receipt)
            .map_err(|e| missing(view, &format!("a well-formed receipt: {e}")))?;
        Ok(read.logs.into_iter().map(|log| log.get().to_owned()).collect())
    };
    if view.recording.is_ethereum() {
        let texts = view.recording.state().receipts().iter().map(|raw| std::str::from_utf8(raw));
        let text = |e| missing(view, &format!("a receipt in UTF-8: {e}"));
        return texts.map(|receipt| logs(receipt.map_err(text)?)).collect();
    }
    if view.deviations.has(Deviation::NullReceipts) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for height in from..=to.min(view.shown) {
        let recorded = view.recording.recorded(height).and_then(|recorded| recorded.eth_receipts);
        let raw = recorded.ok_or_else(|| missing(view, &format!("the receipts of height {height}")))?;
        for receipt in array(view, "list of receipts", &raw)? {
            found.push(logs(receipt.get())?);
        }
    }
    Ok(found)
}

fn number(view: View<'_>, text: &str) -> Result<u64, Reply> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|e| missing(view, &format!("a number in place of {text:?}: {e}")))
}
