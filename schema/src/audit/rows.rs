//! Check that every row decodes as the types of its table.

use store::{Bounds, List, Ranked, Table};

use super::derived::is_derived;
use super::{AuditContext, Report};
use crate::Error;
use crate::undo::UndoRecords;

pub(super) fn check(context: &AuditContext<'_>, report: &mut Report) -> Result<(), Error> {
    let mut rows = Rows { context, report, outcome: Ok(()) };
    crate::visit(&mut rows);
    rows.outcome
}

struct Rows<'r, 'a> {
    context: &'r AuditContext<'a>,
    report: &'r mut Report,
    outcome: Result<(), Error>,
}

impl crate::Visitor for Rows<'_, '_> {
    fn table<T: Table>(&mut self) {
        // Other checks compare the bytes of these rows, or decode them.
        let is_checked_elsewhere = is_derived(T::SPEC) || T::SPEC == UndoRecords::SPEC;
        if self.outcome.is_ok() && !is_checked_elsewhere {
            self.outcome = self.rows::<T>();
        }
    }

    // The check of lists covers their rows.
    fn list<L: List>(&mut self) {}

    fn ranked<R: Ranked>(&mut self) {
        self.table::<R>();
    }
}

impl Rows<'_, '_> {
    fn rows<T: Table>(&mut self) -> Result<(), Error> {
        let mut n = 0;
        store::for_each_row(self.context.snapshot, T::SPEC, Bounds::all(), |key, value| {
            n += 1;
            if store::table::decode_row::<T>(key, value).is_err() {
                let row = (T::SPEC, key, Some(value));
                self.report.row("row does not decode", row, "a row of its table's form");
            }
            Ok::<(), Error>(())
        })?;
        self.report.checked("rows", n);
        Ok(())
    }
}
