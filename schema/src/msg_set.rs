//! The dictionary of message-type sets.
//!
//! A transaction belongs to exactly one *set*: the distinct type names of its top-level messages, sorted. Lists are
//! kept per set, so a filter by several types is a union of disjoint lists: it needs no de-duplication, and its total
//! is the sum of their lengths.

use std::collections::BTreeSet;

use store::key::Text;
use store::{Access, Message, Order, Snapshot, Table, TableSpec};

/// The sets by their number.
///
/// | set (4, BE) | → [`MsgSet`] (protobuf)
#[derive(Debug)]
pub struct MsgSets;

impl Table for MsgSets {
    const SPEC: &'static TableSpec = &TableSpec { name: "msg_set", tag: 0x18, access: Access::Point };
    type Key = u32;
    type Value = Message<MsgSet>;
}

/// The number of a set, by its names.
///
/// | names joined by `,` (escaped text) | → set (varint)
#[derive(Debug)]
pub struct MsgSetByNames;

impl Table for MsgSetByNames {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "msg_set_by_names", tag: 0x19, access: Access::Point };
    type Key = Text;
    type Value = u64;
}

/// The sets that contain a message type.
///
/// | type name without leading `/` (escaped text) | set (4, BE) | → nothing
#[derive(Debug)]
pub struct MsgSetByType;

impl Table for MsgSetByType {
    const SPEC: &'static TableSpec = &TableSpec { name: "msg_set_by_type", tag: 0x1a, access: Access::Scan };
    type Key = (Text, u32);
    type Value = ();
}

/// A message-type set.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MsgSet {
    /// The type names, sorted, without leading `/`. None for a transaction without messages or that does not decode.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    /// Sequence of the first transaction of this set: a rollback below it deletes the set.
    #[prost(uint64, tag = "2")]
    pub first_tx: u64,
}

/// The key of a set in [`MsgSetByNames`]. A type name never contains a comma.
pub fn joined(names: &[String]) -> String {
    names.join(",")
}

/// Maximum number of sets in a filter. A request reads the length and at least one entry of each one's list;
/// chains have fewer than a hundred sets, but anybody can add one by a transaction.
pub const MAX_MATCHING: usize = 4096;

/// The sets that contain at least one of `types`, ascending, without duplicates. `None` if there are more than
/// [`MAX_MATCHING`].
pub fn containing_any(snapshot: &dyn Snapshot, types: &[String]) -> Result<Option<Vec<u32>>, store::Error> {
    let mut sets = BTreeSet::new();
    for name in types {
        let prefix = Text(name.clone());
        let rows = store::table::rows::<MsgSetByType>(snapshot, &prefix, Order::Asc, MAX_MATCHING + 1)?;
        sets.extend(rows.into_iter().map(|((_, set), ())| set));
        if sets.len() > MAX_MATCHING {
            return Ok(None);
        }
    }
    Ok(Some(sets.into_iter().collect()))
}
