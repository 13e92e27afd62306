//! Logs in three places: in `evm` events as JSON, in result data as protobuf, in receipts.
//!
//! Letters of hex differ in case between the places (addresses are written with a checksum in two of them); nothing
//! else may. The node takes the logs of a receipt from the events, in their order.

use alloy::primitives::keccak256;

use crate::comet::Event;
use crate::evm::Log;
use crate::evm_data::DataLog;
use crate::evm_log::bytes;

/// The logs in a transaction's events.
pub(super) fn of_events<'e>(events: &'e [Event<'_>]) -> Result<Vec<Log<'e>>, serde_json::Error> {
    let evm = events.iter().filter(|event| event.kind == "evm");
    let attributes = evm.flat_map(|event| &event.attributes).filter(|attribute| attribute.key == "log");
    attributes.map(|log| serde_json::from_str(&log.value)).collect()
}

/// Checks that the logs of the data are among those of the events, in order; else the number of the first that is not.
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

/// Whether a receipt's log is the event's; the name of the member that is not, and what both say.
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
    let (says, expected) = pairs.find(|(says, expected)| !says.eq_ignore_ascii_case(expected))?;
    Some(("logs[].topics[]", says, expected))
}

fn topic<'l>(log: &'l Log<'_>, at: usize) -> &'l str {
    log.topics.get(at).map_or("", AsRef::as_ref)
}

/// Ethereum's bloom filter over addresses and topics, as text (yellow paper 4.3.1).
pub(super) fn bloom(logs: &[Log<'_>]) -> String {
    let mut bloom = [0_u8; 256];
    for log in logs {
        if let Some(address) = bytes::<20>(&log.address) {
            set(&mut bloom, &address);
        }
        for topic in log.topics.iter().filter_map(|topic| bytes::<32>(topic)) {
            set(&mut bloom, &topic);
        }
    }
    format!("0x{}", hex::encode(bloom))
}

fn set(bloom: &mut [u8; 256], member: &[u8]) {
    let hash = keccak256(member);
    for pair in hash[..6].chunks_exact(2) {
        let bit = usize::from(u16::from_be_bytes([pair[0], pair[1]]) & 2047);
        bloom[255 - bit / 8] |= 1 << (bit % 8);
    }
}
