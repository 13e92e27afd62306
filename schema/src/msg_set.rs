//! The dictionary of message-type sets.
//!
//! A transaction belongs to exactly one *set*: the distinct type names of its top-level messages, sorted. Lists are
//! kept per set, so a filter by several types is a union of disjoint lists: it needs no de-duplication, and its total
//! is the sum of their lengths.

use store::key::Text;
use store::table::decode_row;
use store::{Bounds, Key as _, Message, Order, RowCursor, Snapshot, Table as _, prefix_end};

store::tables! {
    /// The sets by their number.
    ///
    /// | set (4, BE) | → [`MsgSet`] (protobuf)
    pub table MsgSets("msg_set", 0x18, Point): u32 => Message<MsgSet>;

    /// The number of a set, by its names.
    ///
    /// | names joined by `,` (escaped text) | → set (varint)
    pub table MsgSetByNames("msg_set_by_names", 0x19, Point): Text => u64;

    /// The sets that contain a message type.
    ///
    /// | type name without leading `/` (escaped text) | set (4, BE) | → nothing
    pub table MsgSetByType("msg_set_by_type", 0x1a, Scan): (Text, u32) => ();
}

/// A message-type set.
#[derive(Clone, PartialEq, serde::Serialize, prost::Message)]
pub struct MsgSet {
    /// The type names, sorted, without leading `/`. None for a transaction without messages or that does not decode.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    /// Sequence of the first transaction of this set.
    #[prost(uint64, tag = "2")]
    pub first_tx: u64,
}

/// The key of a set in [`MsgSetByNames`]. A type name never contains a comma.
pub fn joined(names: &[String]) -> String {
    names.join(",")
}

/// In place of a type: any type. It leaves out what has no message, as block data of chains with vote extensions.
pub const ANY: &str = "*";

/// The sets that contain at least one of `types`, ascending, without duplicates; `None` if more than `most` rows would
/// have to be read. Chains have fewer than a hundred sets, but anybody can add one by a transaction.
pub fn containing_any(
    snapshot: &dyn Snapshot,
    types: &[String],
    most: usize,
) -> Result<Option<Vec<u32>>, store::Error> {
    let mut sets = Vec::new();
    for name in types {
        let start = if name == ANY { Vec::new() } else { Text(name.clone()).to_bytes() };
        let end = prefix_end(&start);
        let bounds = Bounds { start: &start, end: end.as_deref() };
        for row in RowCursor::new(snapshot, MsgSetByType::SPEC, bounds, Order::Asc) {
            let (key, value) = row?;
            if sets.len() == most {
                return Ok(None);
            }
            let ((_, set), ()) = decode_row::<MsgSetByType>(&key, &value)?;
            sets.push(set);
        }
    }
    sets.sort_unstable();
    sets.dedup();
    Ok(Some(sets))
}
