//! Check that undo records decode and are not beyond the heights of their lanes.

use store::{Bounds, Message, Table as _};

use super::report::UNDO_RECORD;
use super::{AuditContext, Report};
use crate::Error;
use crate::undo::{Lane, UndoRecords};

pub(super) fn check(context: &AuditContext<'_>, report: &mut Report) -> Result<(), Error> {
    let mut n = 0;
    store::for_each_row(context.snapshot, UndoRecords::SPEC, Bounds::all(), |key, value| {
        n += 1;
        let decoded = store::table::decode_row::<UndoRecords>(key, value).ok();
        let expected =
            match decoded.map(|((lane, height, _), Message(row))| (Lane::of_tag(lane), height, row)) {
                Some((Some(lane), height, record)) if record.before().is_some() => {
                    let last = lane.height(context.snapshot)?;
                    if record.from <= height && height <= last {
                        return Ok(());
                    }
                    format!("nothing: the lane's height is {last}")
                }
                Some(_) | None => "prior values of rows of a lane".to_owned(),
            };
        report.row(UNDO_RECORD, (UndoRecords::SPEC, key, Some(value)), expected);
        Ok::<(), Error>(())
    })?;
    report.checked("undo records", n);
    Ok(())
}
