//! Bytes of rows in JSON for other programs.

use serde::{Serialize as _, Serializer};
use serde_json::Value as Json;

/// Bytes as hexadecimal digits.
pub(crate) fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::encode(bytes))
}

/// The same, or null.
#[expect(clippy::ref_option, reason = "serde passes the field")]
pub(crate) fn optional_hex<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    bytes.as_ref().map(hex::encode).serialize(serializer)
}

/// A record as the JSON that it is; as hexadecimal digits if it does not parse.
pub(crate) fn record<S: Serializer>(record: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_slice::<Json>(record) {
        Ok(json) => json.serialize(serializer),
        Err(_) => hex(record, serializer),
    }
}
