//! The blocks that a request is about: ranges of heights and of times.

use chain::Timestamp;
use schema::block::Blocks;
use schema::ledger::LEDGER;
use store::Message;
use web::call::Call;
use web::http_error::HttpError;

use crate::api::block;
use crate::indexer::{Indexer, View};
use crate::params;

/// An expression for RFC 3339 times, but for leap days.
pub(super) const TIME: &str = r"^(1[7-9]|2[01])\d\d-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$";

/// The first height that the parameters select and the first one behind it; `None` without them.
pub(in crate::api) fn heights(
    call: &Call<'_>,
    indexer: &Indexer,
    view: &View<'_>,
) -> Result<Option<(u64, u64)>, HttpError> {
    let (from, to) = (height(call, "from_height")?, height(call, "to_height")?);
    let (since, until) = (time(call, "from_time")?, time(call, "to_time")?);
    if from.is_none() && to.is_none() && since.is_none() && until.is_none() {
        return Ok(None);
    }
    let (mut first, mut end) = (from.unwrap_or(0), to.map_or(u64::MAX, |to| to + 1));
    if let Some(since) = since {
        first = first.max(first_at(indexer, view, since.unix_nanos())?);
    }
    if let Some(until) = until {
        end = end.min(first_at(indexer, view, until.unix_nanos().saturating_add(1))?);
    }
    Ok(Some((first, end)))
}

/// The first height whose block is not earlier than `time`, in nanoseconds since 1970; the one after the last if all are.
fn first_at(indexer: &Indexer, view: &View<'_>, time: i64) -> Result<u64, HttpError> {
    let (mut low, mut high) = (indexer.identity.start_height, view.blocks()?.height + 1);
    while low < high {
        let middle = low.midpoint(high);
        let block = store::table::read::<Blocks>(view.snapshot(), &middle).map_err(HttpError::internal)?;
        let Message(block) =
            block.ok_or_else(|| HttpError::internal(format!("block {middle} is missing")))?;
        if block.time >= time { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// A height in a query parameter; 0 is none.
pub(in crate::api) fn height(call: &Call<'_>, name: &str) -> Result<Option<u64>, HttpError> {
    let Some(text) = call.first(name) else { return Ok(None) };
    let height: i64 = text.parse().unwrap_or(-1);
    let invalid = |_| {
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {} (must be a height, 0 or more)",
            params::shown(text)
        ))
    };
    u64::try_from(height).map(|height| (height > 0).then_some(height)).map_err(invalid)
}

fn time(call: &Call<'_>, name: &str) -> Result<Option<Timestamp>, HttpError> {
    let Some(text) = call.first(name) else { return Ok(None) };
    // A `+` that a client did not percent-encode arrives as a space.
    Timestamp::parse(&text.replace(' ', "+")).map(Some).map_err(|_| {
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {} (must be an RFC 3339 time such as 2026-03-14T09:26:53Z)",
            params::shown(text)
        ))
    })
}

/// The block `wanted`, or the last one, with its time. An error if it is not indexed, or movements are not.
pub(in crate::api) fn after_block(view: &View<'_>, wanted: Option<u64>) -> Result<(u64, String), HttpError> {
    view.require(&LEDGER)?;
    let last = view.blocks()?.height;
    let height = wanted.unwrap_or(last);
    if height > last {
        return Err(HttpError::bad_request(format!("height {height} is above the indexed height {last}")));
    }
    let block = block::at(view, height)?
        .ok_or_else(|| HttpError::not_found(format!("[NOT_FOUND] block not found: height {height}")))?;
    Ok((height, Timestamp::from_unix_nanos(block.time).nanos()))
}
