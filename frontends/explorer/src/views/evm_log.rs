//! Logs of ERC-20 and ERC-721 contracts, decoded from their topics.
//!
//! The two standards share their events: a fourth topic, the indexed token id, makes it an ERC-721.

use chain::U256;

use crate::format::quantity;
use query::v1::EvmLog;

/// `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// `Approval(address,address,uint256)`.
const APPROVAL: &str = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";
/// `ApprovalForAll(address,address,bool)`.
const APPROVAL_FOR_ALL: &str = "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31";

/// A decoded log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Name of the event.
    pub(crate) event: &'static str,
    /// Addresses: sender or owner, then receiver or approved account.
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) subject: Subject,
}

/// The third argument of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Base units of an ERC-20.
    Amount(U256),
    /// Id of an ERC-721.
    Token(U256),
    /// Whether all tokens are approved.
    All(bool),
}

/// Decodes a log; `None` if it is of another event, or malformed.
pub(crate) fn decode(log: &EvmLog) -> Option<Decoded> {
    let event = match log.topics.first()?.as_str() {
        TRANSFER => "Transfer",
        APPROVAL => "Approval",
        APPROVAL_FOR_ALL => "ApprovalForAll",
        _ => return None,
    };
    let subject = match (event, log.topics.get(3)) {
        ("ApprovalForAll", None) => Subject::All(word(&log.data)? != U256::ZERO),
        ("ApprovalForAll", Some(_)) => return None,
        (_, Some(id)) => Subject::Token(word(id)?),
        (_, None) => Subject::Amount(word(&log.data)?),
    };
    let (from, to) = (address(log.topics.get(1)?)?, address(log.topics.get(2)?)?);
    Some(Decoded { event, from, to, subject })
}

/// A word of 32 bytes.
fn word(hex: &str) -> Option<U256> {
    (hex.len() == 66).then(|| quantity(hex)).flatten()
}

/// The address in a topic: 12 zero bytes, then its 20.
fn address(topic: &str) -> Option<String> {
    let digits = topic.strip_prefix("0x").filter(|digits| digits.len() == 64)?;
    let (zeros, address) = digits.split_at_checked(24)?;
    let is_hex = address.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && zeros.bytes().all(|byte| byte == b'0')).then(|| format!("0x{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(topics: &[&str], data: &str) -> EvmLog {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        EvmLog { topics, data: data.to_owned(), ..EvmLog::default() }
    }

    fn word_of(n: u8) -> String {
        format!("0x{n:064x}")
    }

    #[test]
    fn the_fourth_topic_makes_a_transfer_one_of_a_token() {
        let (from, to) = (word_of(1), word_of(2));
        let of = |log: &EvmLog| decode(log).map(|decoded| decoded.subject);
        let erc20 = log(&[TRANSFER, &from, &to], &word_of(9));
        assert_eq!(of(&erc20), Some(Subject::Amount(U256::from(9))));
        let erc721 = log(&[TRANSFER, &from, &to, &word_of(9)], "0x");
        assert_eq!(of(&erc721), Some(Subject::Token(U256::from(9))));
        let all = log(&[APPROVAL_FOR_ALL, &from, &to], &word_of(1));
        assert_eq!(of(&all), Some(Subject::All(true)));
    }

    #[test]
    fn a_malformed_log_is_not_decoded() {
        let ok = word_of(1);
        let long = format!("0x{}", "f".repeat(64));
        for (topics, data) in [
            (vec![TRANSFER, &ok], word_of(1)),
            (vec![TRANSFER, &ok, &ok], "0x".to_owned()),
            (vec![TRANSFER, &long, &ok], word_of(1)),
            (vec![TRANSFER, &ok, "0xé"], word_of(1)),
            (vec!["0x"], word_of(1)),
            (vec![], String::new()),
        ] {
            assert_eq!(decode(&log(&topics, &data)), None, "{topics:?}");
        }
    }
}
