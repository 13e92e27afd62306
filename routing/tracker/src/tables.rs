//! Tables of the tracker's database.
//!
//! The key of a transaction is its chain and the 32 bytes of its hash, independent of the spelling of the hash.

use chain::hash::Hash;
use store::key::Text;
use store::{Access, Bounds, Durability, Order, Store, Table, TableSpec, Value, table};

use crate::error::Error;
use crate::record::Record;

/// Chain and hash.
pub(crate) type TxKey = (Text, Hash);

/// Chain, class, time, and hash.
pub(crate) type QueueKey = (Text, u8, u64, Hash);

/// Registered transactions with all evidence about them.
///
/// | chain (text) | hash (32) | → JSON
#[derive(Debug)]
pub(crate) struct Records;

impl Table for Records {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_record", tag: 0x10, access: Access::Point };
    type Key = TxKey;
    type Value = Record;
}

/// The replies of `/v2/tx/status`, ready to be sent.
///
/// | chain (text) | hash (32) | → JSON
#[derive(Debug)]
pub(crate) struct Answers;

impl Table for Answers {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_answer", tag: 0x11, access: Access::Point };
    type Key = TxKey;
    type Value = Vec<u8>;
}

/// Queue of databases of format 1, now empty. A store opens only with all tables that it was created with.
static DUE: TableSpec = TableSpec { name: "track_due", tag: 0x12, access: Access::Scan };

/// The registered hash by a transaction's other hash (minievm gives it two).
///
/// | chain (text) | hash (32) | → hash (32)
#[derive(Debug)]
pub(crate) struct Others;

impl Table for Others {
    const SPEC: &'static TableSpec = &TableSpec { name: "track_other", tag: 0x13, access: Access::Point };
    type Key = TxKey;
    type Value = Vec<u8>;
}

/// The time of each transaction's next poll, or of its end; see [`crate::queue::position::Class`].
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

/// All tables.
pub(crate) const TABLES: &[&TableSpec] =
    &[Records::SPEC, Answers::SPEC, &DUE, Others::SPEC, Queue::SPEC, Format::SPEC];

impl Value for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        #[allow(clippy::expect_used, reason = "texts and numbers only, and memory takes any write")]
        serde_json::to_writer(out, self).expect("a record holds nothing that JSON cannot");
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes)
            .inspect_err(|error| tracing::error!(%error, "tracker record does not decode"))
            .ok()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Checks the format of a database; writes it if the database is new.
pub(crate) fn check_format(store: &dyn Store) -> Result<(), Error> {
    const FORMAT: u64 = 2;
    let snapshot = store.snapshot()?;
    match table::read::<Format>(&*snapshot, &())? {
        Some(FORMAT) => return Ok(()),
        Some(found) => return Err(Error::Format { found, known: FORMAT }),
        // Format 1 was not recorded.
        None if !snapshot.scan(Records::SPEC, Bounds::all(), Order::Asc, 1)?.is_empty() => {
            return Err(Error::Format { found: 1, known: FORMAT });
        }
        None => {}
    }
    store::commit_rows::<Error>(store, Durability::Buffered, |txn| {
        txn.put::<Format>(&(), &FORMAT);
        Ok(())
    })
}
