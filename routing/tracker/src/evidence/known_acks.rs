//! Acknowledgements by their hash: a chain's state has only the hash, but most acknowledgements are one of a few texts.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::evidence::hop::Ack;

/// ICS-20 and ICS-721: success.
const GOOD: &str = r#"{"result":"AQ=="}"#;
/// Error codes of modules; ibc-go writes the code and no text, so that all nodes write the same.
const CODES: std::ops::RangeInclusive<u32> = 1..=2_000;

static KNOWN: LazyLock<HashMap<[u8; 32], Ack>> = LazyLock::new(|| {
    let errors =
        CODES.map(|code| format!("ABCI code: {code}: error handling packet: see events for details"));
    let errors =
        errors.map(|message| (format!(r#"{{"error":"{message}"}}"#), Ack::Error { message, reason: None }));
    let mut known = HashMap::new();
    for (text, ack) in errors.chain([(GOOD.to_owned(), Ack::Good)]) {
        known.insert(Sha256::digest(with_fee(&text, ack == Ack::Good)).into(), ack.clone());
        known.insert(Sha256::digest(text).into(), ack);
    }
    known
});

/// The envelope of ICS-29, of a relayer without an address for fees.
fn with_fee(text: &str, is_good: bool) -> String {
    let inner = STANDARD.encode(text);
    format!(
        r#"{{"app_acknowledgement":"{inner}","forward_relayer_address":"","underlying_app_success":{is_good}}}"#
    )
}

/// The acknowledgement with this SHA-256, if it is one of the usual ones.
pub(crate) fn known_ack(hash: [u8; 32]) -> Option<Ack> {
    KNOWN.get(&hash).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_acknowledgements_are_known_by_the_hashes_of_chains() {
        let ack = |hash: &str| known_ack(hex::decode(hash).unwrap().try_into().unwrap());
        // Without ICS-29, and as recorded with it.
        let plain = "08f7557ed51826fe18d84512bf24ec75001edbaf2123a477df72a0a9f3640a7c";
        assert_eq!(ack(plain), Some(Ack::Good));
        let recorded = "fe79df47ddc44541aac06e99ace1b9c3919face7baa9f345749ff940e344c671";
        assert_eq!(ack(recorded), Some(Ack::Good));
        let error = r#"{"error":"ABCI code: 19: error handling packet: see events for details"}"#;
        let known = known_ack(Sha256::digest(error).into());
        assert!(matches!(known, Some(Ack::Error { message, .. }) if message.starts_with("ABCI code: 19:")));
        assert_eq!(known_ack([0; 32]), None);
    }
}
