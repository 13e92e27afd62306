//! Message-type sets that a filter by message types selects, bounded: strangers can create any number of them.

use schema::msg_set;
use store::Snapshot;
use web::http_error::HttpError;

/// The message-type sets that contain one of `types`; an error if there are too many.
pub(crate) fn containing_any(types: &[String], snapshot: &dyn Snapshot) -> Result<Vec<u32>, HttpError> {
    let sets = msg_set::containing_any(snapshot, types).map_err(HttpError::internal)?;
    sets.ok_or_else(|| {
        HttpError::bad_request(format!(
            "msgs matches transactions of more than {} combinations of message types: name rarer types, or none",
            msg_set::MAX_MATCHING
        ))
    })
}
