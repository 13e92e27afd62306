//! Message-type sets that a filter by message types selects, bounded: strangers can create any number of them.

use schema::msg_set::{self, MsgSets};
use store::{Order, Snapshot};
use web::http_error::HttpError;

/// In place of a type: any type. It leaves out what has no message, as block data of chains with vote extensions.
const ANY: &str = "*";

/// The message-type sets that contain one of `types`; an error if there are too many.
pub(crate) fn containing_any(types: &[String], snapshot: &dyn Snapshot) -> Result<Vec<u32>, HttpError> {
    let sets = if types.iter().any(|name| name == ANY) {
        with_messages(snapshot)
    } else {
        msg_set::containing_any(snapshot, types)
    };
    let sets = sets.map_err(HttpError::internal)?;
    sets.ok_or_else(|| {
        HttpError::bad_request(format!(
            "msgs matches transactions of more than {} combinations of message types: name rarer types, or none",
            msg_set::MAX_MATCHING
        ))
    })
}

/// The sets with any type, ascending; `None` if there are too many.
fn with_messages(snapshot: &dyn Snapshot) -> Result<Option<Vec<u32>>, store::Error> {
    // At most one set has no type.
    let limit = msg_set::MAX_MATCHING + 2;
    let rows = store::table::rows::<MsgSets>(snapshot, &store::key::All, Order::Asc, limit)?;
    let sets: Vec<_> =
        rows.into_iter().filter(|(_, set)| !set.0.names.is_empty()).map(|(set, _)| set).collect();
    Ok((sets.len() <= msg_set::MAX_MATCHING).then_some(sets))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use schema::msg_set::{MAX_MATCHING, MsgSetByType};
    use store::key::Text;
    use store::{Counts, Durability, MemStore, Store, Txn};

    use super::*;

    #[test]
    fn a_filter_of_too_many_sets_is_refused() {
        let max = u32::try_from(MAX_MATCHING).unwrap();
        for (sets, expected) in [(max, Ok(MAX_MATCHING)), (max + 1, Err(StatusCode::BAD_REQUEST))] {
            let store = MemStore::new();
            let snapshot = store.snapshot().unwrap();
            let mut counts = Counts::new(8);
            let mut txn = Txn::new(&*snapshot, &mut counts);
            for set in 0..sets {
                // Two types, so that the limit is of all sets together.
                let name = if set % 2 == 0 { "a.MsgA" } else { "b.MsgB" };
                txn.put::<MsgSetByType>(&(Text(name.to_owned()), set), &());
            }
            let (batch, _) = txn.finish();
            drop(snapshot);
            store.commit(batch, Durability::Buffered).unwrap();
            let types = ["a.MsgA", "b.MsgB"].map(str::to_owned);
            let found = containing_any(&types, &*store.snapshot().unwrap());
            assert_eq!(found.map(|sets| sets.len()).map_err(|error| error.status()), expected);
        }
    }
}
