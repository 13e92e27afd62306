//! What is where in the tracker's own database.
//!
//! A transaction is found by its chain and the 32 bytes of its hash, however the hash was spelled.

use chain::hash::Hash;
use store::key::Text;
use store::{Access, Table, TableSpec, Value};

use crate::record::Record;

/// Chain and hash.
pub(crate) type TxKey = (Text, Hash);

/// When, chain and hash.
pub(crate) type DueKey = (u64, Text, Hash);

/// Registered transactions with all that is known of them.
///
/// | chain (text) | hash (32) | → JSON
#[derive(Debug)]
pub(crate) struct Records;

impl Table for Records {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_record", tag: 0x10, access: Access::Point };
    type Key = TxKey;
    type Value = Record;
}

/// The answers of `/v2/tx/status`, ready to be sent.
///
/// | chain (text) | hash (32) | → JSON
#[derive(Debug)]
pub(crate) struct Answers;

impl Table for Answers {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_answer", tag: 0x11, access: Access::Point };
    type Key = TxKey;
    type Value = Vec<u8>;
}

/// When which transaction is looked at next.
///
/// | nanoseconds since 1970 (8, BE) | chain (text) | hash (32) | → nothing
#[derive(Debug)]
pub(crate) struct Due;

impl Table for Due {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_due", tag: 0x12, access: Access::Scan };
    type Key = DueKey;
    type Value = ();
}

/// The registered hash of a transaction by its other one (minievm gives it two).
///
/// | chain (text) | hash (32) | → hash (32)
#[derive(Debug)]
pub(crate) struct Others;

impl Table for Others {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_other", tag: 0x13, access: Access::Point };
    type Key = TxKey;
    type Value = Vec<u8>;
}

/// All of them.
pub(crate) const TABLES: &[&TableSpec] = &[Records::SPEC, Answers::SPEC, Due::SPEC, Others::SPEC];

impl Value for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        #[allow(clippy::expect_used, reason = "texts and numbers only, and memory takes any write")]
        serde_json::to_writer(out, self).expect("a record holds nothing that JSON cannot");
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        match serde_json::from_slice(bytes) {
            Ok(record) => Some(record),
            Err(e) => {
                tracing::error!("a record of the tracker does not decode: {e}");
                None
            }
        }
    }
}
