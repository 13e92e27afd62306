//! Check of undo records against the heights of their lanes.

use store::{Bounds, Message, Table as _};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::undo::{Lane, UndoRecords};

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let mut n = 0;
    store::for_each_row(ground.snapshot, UndoRecords::SPEC, Bounds::all(), |key, value| {
        n += 1;
        // The check of rows reports rows that do not decode.
        let Ok(((lane, height, _), Message(record))) = store::table::decode_row::<UndoRecords>(key, value)
        else {
            return Ok(());
        };
        let lane = match Lane::of_tag(lane) {
            Some(lane) => lane.height(ground.snapshot)?,
            None => 0,
        };
        let row = (UndoRecords::SPEC, key, Some(value));
        if height > lane || record.from > height {
            report.row(
                "undo record",
                row,
                format!("nothing: the lane's height is {lane}"),
                Remedy::Row(None),
            );
        } else if record.before().is_none() {
            report.row("undo record", row, "what rows were before a commit", Remedy::Row(None));
        }
        Ok::<(), Error>(())
    })?;
    report.checked("undo records", n);
    Ok(())
}
