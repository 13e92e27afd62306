//! Check of ranked sets against their lengths and skip-list nodes.

use store::{List, RANK, Ranked, Table};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::audit::report::bytes;

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let mut ranks = Ranks { ground, report, outcome: Ok(()) };
    crate::visit(&mut ranks);
    ranks.outcome
}

struct Ranks<'r, 'g> {
    ground: &'r Ground<'g>,
    report: &'r mut Report,
    outcome: Result<(), Error>,
}

impl crate::Visitor for Ranks<'_, '_> {
    fn table<T: Table>(&mut self) {}
    fn list<L: List>(&mut self) {}

    fn ranked<R: Ranked>(&mut self) {
        if self.outcome.is_ok() {
            self.outcome = self.set::<R>();
        }
    }
}

impl Ranks<'_, '_> {
    fn set<R: Ranked>(&mut self) -> Result<(), Error> {
        let audited = store::ranked::audit::<R>(self.ground.snapshot, |fault| {
            let expected = fault.expected.as_deref().map_or_else(|| "nothing".to_owned(), bytes);
            let row = (RANK, fault.key.as_slice(), fault.found.as_deref());
            let expected = format!("{expected} (set {})", R::SPEC.name);
            self.report.row("count of a ranked set", row, expected, Remedy::Row(fault.expected.clone()));
            Ok(())
        });
        self.report.checked("ranked sets", 1);
        match audited {
            // The check of rows reports this row; the next round of repair checks its counts.
            Err(store::Error::Corrupt { .. }) => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}
