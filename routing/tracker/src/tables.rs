//! Tables of the tracker's database.
//!
//! The key of a transaction is its chain and the 32 bytes of its hash, independent of the spelling of the hash.

use chain::hash::Hash;
use store::key::Text;
use store::{Access, Table, TableSpec, Value};

use crate::record::Record;

/// Chain and hash.
pub(crate) type TxKey = (Text, Hash);

/// When, chain and hash.
pub(crate) type DueKey = (u64, Text, Hash);

/// Chain, class, when, and hash.
pub(crate) type QueueKey = (Text, u8, u64, Hash);

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

/// When which transaction was polled next in databases of format 1; empty since.
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

/// When which transaction of a chain is polled next, or when it ended; see [`crate::queue::Class`].
///
/// | chain (text) | class (1) | nanoseconds since 1970 (8, BE) | hash (32) | → nothing
#[derive(Debug)]
pub(crate) struct Queue;

impl Table for Queue {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_queue", tag: 0x14, access: Access::Scan };
    type Key = QueueKey;
    type Value = ();
}

/// The format of the database.
///
/// | → number (varint)
#[derive(Debug)]
pub(crate) struct Format;

impl Table for Format {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_format", tag: 0x15, access: Access::Point };
    type Key = ();
    type Value = u64;
}

/// All of them.
pub(crate) const TABLES: &[&TableSpec] =
    &[Records::SPEC, Answers::SPEC, Due::SPEC, Others::SPEC, Queue::SPEC, Format::SPEC];

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
