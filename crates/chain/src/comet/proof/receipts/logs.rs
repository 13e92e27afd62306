//! Logs in three places: in `evm` events as JSON, in result data as protobuf, in receipts.
//!
//! The case of hex letters may differ between the places (two of them use checksummed addresses). All else must be
//! equal. The node takes the logs of a receipt from the events, in their order.

use alloy::primitives::{Bloom, BloomInput, hex};

use crate::JsonText;
use crate::comet::Event;
use crate::evm::Log;
use crate::evm::data::DataLog;
use crate::evm::log::bytes;

/// The logs in a transaction's events.
pub(super) fn of_events<'e>(events: &'e [Event<'_>]) -> Result<Vec<Log<'e>>, serde_json::Error> {
    let evm = events.iter().filter(|event| event.kind == "evm");
    let attributes = evm.flat_map(|event| &event.attributes).filter(|attribute| attribute.key == "log");
    attributes.map(|log| serde_json::from_str(&log.value)).collect()
}

/// Checks that the logs of the data are among those of the events, in order; fails with the number of the first missing
/// one.
pub(super) fn check_data(events: &[Log<'_>], data: &[DataLog<'_>]) -> Result<(), usize> {
    let mut events = events.iter();
    for (number, log) in data.iter().enumerate() {
        if !events.any(|event| is_in_data(event, log)) {
            return Err(number);
        }
    }
    Ok(())
}

fn is_in_data(event: &Log<'_>, data: &DataLog<'_>) -> bool {
    event.topics.len() == data.topics.len()
        && event.address.as_bytes().eq_ignore_ascii_case(data.address)
        && event.data.as_bytes().eq_ignore_ascii_case(data.data)
        && event.topics.iter().zip(&data.topics).all(|(a, b)| a.as_bytes().eq_ignore_ascii_case(b))
}

/// The first member in which a receipt's log differs from the event's, with both values.
pub(super) fn difference<'l>(
    receipt: &'l Log<'_>,
    event: &'l Log<'_>,
) -> Option<(&'static str, &'l str, &'l str)> {
    if !receipt.address.eq_ignore_ascii_case(&event.address) {
        return Some(("logs[].address", &receipt.address, &event.address));
    }
    if !receipt.data.eq_ignore_ascii_case(&event.data) {
        return Some(("logs[].data", &receipt.data, &event.data));
    }
    let longest = receipt.topics.len().max(event.topics.len());
    let mut pairs = (0..longest).map(|at| (topic(receipt, at), topic(event, at)));
    let (actual, expected) = pairs.find(|(actual, expected)| !actual.eq_ignore_ascii_case(expected))?;
    Some(("logs[].topics[]", actual, expected))
}

fn topic<'l>(log: &'l Log<'_>, at: usize) -> &'l str {
    log.topics.get(at).map_or("", AsRef::as_ref)
}

/// Ethereum's bloom filter over addresses and topics, as text (yellow paper 4.3.1).
pub(super) fn bloom<'a>(logs: &[Log<'_>]) -> JsonText<'a> {
    let mut bloom = Bloom::default();
    for log in logs {
        if let Some(address) = bytes::<20>(&log.address) {
            bloom.accrue(BloomInput::Raw(&address));
        }
        for topic in log.topics.iter().filter_map(|topic| bytes::<32>(topic)) {
            bloom.accrue(BloomInput::Raw(&topic));
        }
    }
    hex::encode_prefixed(bloom).into()
}
