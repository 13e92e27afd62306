//! Counts and nodes of whole tables of sets, from their items in order.

use super::{
    Ranked,
    skip_list::{LEVELS, RANK, SetMeta, SkipList, varint},
};
use crate::{
    bulk::BulkWriter,
    engine::{Bounds, Snapshot, for_each_row},
    error::Error,
    key::Key as _,
    table::corrupt,
};

/// Writes the counts and nodes of every set of `R`, whose items in `snapshot` were written as rows of a plain table.
/// There must be no counts and nodes of `R` yet. Reads each item once, in order.
pub fn index_items<R: Ranked>(snapshot: &dyn Snapshot, writer: &mut BulkWriter<'_>) -> Result<(), Error> {
    let mut last: Option<Builder> = None;
    for_each_row(snapshot, R::SPEC, Bounds::all(), |key, _| {
        let mut item = key;
        R::Owner::take(&mut item).ok_or_else(|| corrupt(R::SPEC, key, "the key does not decode"))?;
        let owner = &key[..key.len() - item.len()];
        match &mut last {
            Some(builder) if builder.set.owner == owner => builder.add(item, writer),
            _ => {
                let set = SkipList::new(R::SPEC, owner.to_vec(), R::PROMOTION_BITS);
                let next = Builder { set, meta: SetMeta::default(), since_node: [0; LEVELS] };
                let done = last.replace(next).map_or(Ok(()), |done| done.finish(writer));
                done.and_then(|()| last.as_mut().map_or(Ok(()), |builder| builder.add(item, writer)))
            }
        }
    })?;
    last.map_or(Ok(()), |done| done.finish(writer))
}

/// A set whose items are read.
struct Builder {
    set: SkipList,
    meta: SetMeta,
    /// Items since the last node of levels 1, 2, 3, 4, that node included.
    since_node: [u64; LEVELS],
}

impl Builder {
    fn add(&mut self, item: &[u8], writer: &mut BulkWriter<'_>) -> Result<(), Error> {
        for level in 1..=self.set.height(item) {
            let span = std::mem::take(&mut self.since_node[level - 1]);
            writer.put(RANK, self.set.rank_key(level, item), varint(span))?;
            self.meta.nodes[level - 1] += 1;
        }
        self.since_node.iter_mut().for_each(|items| *items += 1);
        self.meta.len += 1;
        Ok(())
    }

    fn finish(self, writer: &mut BulkWriter<'_>) -> Result<(), Error> {
        writer.put(RANK, self.set.rank_key(0, &[]), self.meta.encode())
    }
}
