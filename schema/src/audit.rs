//! Consistency check of a database against itself, without a node: all rows, lists and indexes against each other.
//!
//! | file | compares |
//! |---|---|
//! | `rows` | every row with the types of its table |
//! | `lists`, `ranks` | lists and ranked sets with their lengths |
//! | `list_pairs` | redundant lists: an account's transactions, in total and by message-type set |
//! | `blocks` | blocks with each other, with their transactions and with the lane |
//! | `records` | records with the rows by hash |
//! | `sets` | the tables of message-type sets with the records |
//! | `calls` | call frames with their rows by height and hash |
//! | `nfts` | the tables of NFTs with their log |
//! | `rich` | holders and denoms with balances |
//! | `undo` | records of commits with their lanes |
//! | [`diff`] | two versions of a table, row by row |
//! | [`report`] | the findings and their repair plan |
//! | [`repair`] | repairs that need no node |
//! # Invariants
//!
//! * Only the scratch store is written.
//! * A row that does not decode is a finding, not an error.
//! * An undamaged database produces no finding.

mod blocks;
mod calls;
pub mod diff;
pub mod heights;
mod list_pairs;
mod lists;
mod nfts;
mod ranks;
pub(crate) mod records;
pub mod repair;
pub mod report;
mod rich;
mod rows;
mod sets;
mod undo;

use store::{Snapshot, Store, TableSpec};

pub use self::heights::Heights;
pub use self::report::{Finding, Plan, Remedy, Report};

use crate::Error;
use crate::meta::{self, BlockLane, CallLane, Identity, RichLane};
use crate::open::Refusal;
use crate::payload::Codec;

/// The input of every check.
pub struct Ground<'a> {
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
    /// From sequences to heights.
    pub heights: Heights,
}

impl<'a> Ground<'a> {
    /// Reads the lanes and heights of the database behind `snapshot`; an error if it has no identity.
    pub fn new(snapshot: &'a dyn Snapshot) -> Result<Self, Error> {
        let identity: Identity = meta::read(snapshot)?.ok_or(Refusal::Empty)?;
        let blocks: BlockLane = meta::read(snapshot)?.unwrap_or_default();
        let heights = Heights::read(snapshot, identity.start_height)?;
        Ok(Self {
            calls: meta::read(snapshot)?,
            rich: meta::read(snapshot)?,
            codec: Codec::load(snapshot)?,
            snapshot,
            identity,
            blocks,
            heights,
        })
    }

    /// The last frame's sequence.
    pub fn last_call(&self) -> u64 {
        self.calls.as_ref().map_or(0, |lane| lane.calls)
    }
}

/// Runs all checks that need no node. `scratch` must be empty; it grows to the size of the NFT tables.
pub fn audit(ground: &Ground<'_>, scratch: &dyn Store, report: &mut Report) -> Result<(), Error> {
    rows::check(ground, report)?;
    blocks::check(ground, report)?;
    lists::check(ground, report)?;
    list_pairs::check(ground, report)?;
    ranks::check(ground, report)?;
    records::check(ground, report)?;
    sets::check(ground, report)?;
    calls::check(ground, report)?;
    nfts::check(ground, scratch, report)?;
    rich::check(ground, report)?;
    undo::check(ground, report)
}

/// A readable key: decimal for an 8-byte number, else hexadecimal.
pub fn shown(key: &[u8]) -> String {
    <[u8; 8]>::try_from(key)
        .map_or_else(|_| hex::encode(key), |number| u64::from_be_bytes(number).to_string())
}

/// Whether two specs describe the same table.
fn same(a: &TableSpec, b: &TableSpec) -> bool {
    a.tag == b.tag
}
