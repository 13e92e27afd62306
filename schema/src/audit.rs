//! Consistency check of a database against itself, without a node.
//!
//! | file | checks |
//! |---|---|
//! | `rows` | every row decodes as the types of its table |
//! | `lists` | lists have no gaps, and the stored lengths |
//! | `blocks` | blocks follow each other, with the transactions and lanes that they count |
//! | [`derived`] | tables that follow from other tables equal a rebuild of them |
//! | `undo` | undo records decode and are not beyond their lane |
//! | [`compare`] | two versions of a table, row by row |
//! | [`members`] | two values of a row, by the members that differ |
//! | [`report`] | the findings |
//!
//! A row that only the chain can supply, and that decodes, is not checked here: that needs a second index of the chain.
//!
//! # Invariants
//!
//! * The database is not written.
//! * A row that does not decode is a finding, not an error.
//! * An undamaged database produces no finding.

mod blocks;
pub mod compare;
pub mod derived;
mod lists;
pub mod members;
pub mod report;
mod rows;
mod undo;

use store::{Snapshot, Store};

pub use self::report::{Finding, Report};

use crate::Error;
use crate::meta::{self, BlockLane, CallLane, Identity, RichLane};
use crate::open::OpenError;
use crate::parallel::{self, Job};
use crate::payload::Codec;

/// The input of every check.
pub struct AuditContext<'a> {
    /// The database.
    pub snapshot: &'a dyn Snapshot,
    /// Its identity.
    pub identity: Identity,
    /// The block lane.
    pub blocks: BlockLane,
    /// The internal-transaction lane, if there is one.
    pub calls: Option<CallLane>,
    /// The rich list, if there is one.
    pub rich: Option<RichLane>,
    /// The codec of its records.
    pub codec: Codec,
}

impl<'a> AuditContext<'a> {
    /// Reads the lanes of the database behind `snapshot`; an error if it has no identity.
    pub fn new(snapshot: &'a dyn Snapshot) -> Result<Self, Error> {
        Ok(Self {
            identity: meta::read(snapshot)?.ok_or(OpenError::Empty)?,
            blocks: meta::read(snapshot)?.unwrap_or_default(),
            calls: meta::read(snapshot)?,
            rich: meta::read(snapshot)?,
            codec: Codec::load(snapshot)?,
            snapshot,
        })
    }

    /// The last frame's sequence.
    pub fn last_call(&self) -> u64 {
        self.calls.as_ref().map_or(0, |lane| lane.calls)
    }
}

/// Runs all checks, on all cores. `copy` is a copy of the database, in which the derived tables are rebuilt.
pub fn audit(context: &AuditContext<'_>, copy: &dyn Store, report: &mut Report) -> Result<(), Error> {
    // The longest ones first; the rebuild of NFTs cannot be divided.
    let mut checks = derived::rebuilds(context, copy)?;
    checks.extend(lists::checks(context));
    checks.push(Box::new(|report| rows::check(context, report)));
    checks.push(Box::new(|report| blocks::check(context, report)));
    checks.push(Box::new(|report| undo::check(context, report)));
    run(checks, report)?;
    derived::compare(context, copy, report)
}

/// A check that adds its findings to a report.
type Check<'a> = Box<dyn FnOnce(&mut Report) -> Result<(), Error> + Send + 'a>;

/// Runs `checks` on all cores and adds their findings to `report`, in the order of the checks.
fn run(checks: Vec<Check<'_>>, report: &mut Report) -> Result<(), Error> {
    for findings in parallel::run(checks.into_iter().map(job).collect())? {
        report.merge(findings);
    }
    Ok(())
}

fn job(check: Check<'_>) -> Job<'_, Report> {
    Box::new(|| {
        let mut findings = Report::default();
        check(&mut findings).map(|()| findings)
    })
}
