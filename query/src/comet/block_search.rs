//! CometBFT's search for blocks by the events of blocks. Blocks are not stored whole, so a search is answered only if it finds none.

use std::ops::RangeInclusive;

use chain::comet::Event;
use schema::block::BlockEvents;
use store::{Bounds, Order, RowCursor, Table as _};
use web::http_error::HttpError;
use web::limits::lane;

use crate::indexer::{Indexer, View};
use crate::tx_search::{Criteria, Error, Heights, MAX_TESTED, any, parse, refused};

const REMEDY: &str = "ask a node";

/// An error unless the search finds no block.
pub(super) fn find_none(indexer: &Indexer, view: &View<'_>, query: &str) -> Result<(), Error> {
    let conditions = parse(query).map_err(Error::Invalid)?;
    let heights =
        Heights::of(&conditions, "block.height").map_err(|(reason, remedy)| refused(&reason, &remedy))?;
    let criteria = Criteria::of(&conditions, "block.height")?;
    let (first, last) = (indexer.identity.start_height, view.blocks()?.height);
    let Some(wanted) = heights.within(last) else { return Ok(()) };
    if first > 1 && *wanted.start() < first {
        let reason = format!("blocks before height {first} are not indexed");
        return Err(refused(&reason, &format!("add block.height >= {first}, or ask a node that has them")));
    }
    let found = if criteria.is_empty() { Some(*wanted.start()) } else { matching(view, &wanted, &criteria)? };
    let Some(height) = found else { return Ok(()) };
    Err(refused(&format!("it finds the block {height}, and blocks are not stored whole"), REMEDY))
}

/// The first of the blocks that has an event in which the criteria hold.
fn matching(
    view: &View<'_>,
    heights: &RangeInclusive<u64>,
    criteria: &Criteria<'_>,
) -> Result<Option<u64>, Error> {
    let (start, end) = (heights.start().to_be_bytes(), heights.end().saturating_add(1).to_be_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let rows = RowCursor::new(view.snapshot(), BlockEvents::SPEC, bounds, Order::Asc);
    for (tested, row) in (0..).zip(rows) {
        if tested == MAX_TESTED {
            let reason = format!("more than {MAX_TESTED} of its blocks have events");
            return Err(refused(&reason, "add block.height >= a AND block.height <= b"));
        }
        let (key, json) = row.map_err(HttpError::internal)?;
        lane::spend(json.len() as u64)?;
        let events: Vec<Event<'_>> = serde_json::from_slice(&json).map_err(HttpError::internal)?;
        if any(&events, criteria)? {
            let (height, _) =
                store::table::decode_row::<BlockEvents>(&key, &json).map_err(HttpError::internal)?;
            return Ok(Some(height));
        }
    }
    Ok(None)
}
