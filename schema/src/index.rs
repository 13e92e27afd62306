//! Optional indexes: tables whose rows follow from the stored records of each block alone.
//!
//! An [`Index`] is a name, a version, its tables and one pure function. Everything else derives from that: writing with
//! the block and building from stored blocks, the way back and removal (`index_writer`), the digest, the audit, the export. The list of them is [`crate::INDEXES`].
//!
//! # Invariants
//!
//! * The rows of an index are those of the blocks from [`State::from`] to [`State::height`], however they were written. No
//!   index is ahead of the blocks.
//! * A lane that removes blocks removes their rows of each index, or the whole index, which is built again.

mod block;

use store::key::Text;
use store::{List, Ranked, Snapshot, Table, TableSpec, Txn};

use crate::meta::{self, Identity, Meta, WrittenIndexes};
use crate::{Error, INDEXES};

pub use self::block::{PackedBlock, StoredBlock};

/// An optional index.
#[derive(Debug)]
pub struct Index {
    /// Its name in the settings.
    pub name: &'static str,
    /// The version of its rows. If it differs from the stored one, the index is removed and built again.
    pub version: u32,
    /// Its tables, at least one; no other index writes them.
    pub tables: &'static [&'static TableSpec],
    /// Those of its tables that also have what a node has said, and so do not follow from blocks.
    pub replies: &'static [&'static TableSpec],
    /// What its rows follow from.
    pub input: Input,
    /// True if only chains with an EVM have what its rows follow from.
    pub needs_evm: bool,
    /// Writes the rows of a block. It depends on nothing but the block.
    pub rows: fn(&StoredBlock<'_>, &mut Rows<'_, '_>) -> Result<(), Error>,
}

/// What the rows of an index follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The stored records of a block.
    Records,
    /// The header of its EVM block, which a node must be asked for.
    Headers,
    /// What a node is asked for by a lane of its own, which writes the rows.
    Lane,
    /// The call traces of the block: the lane of internal transactions writes the rows with its own.
    Traces,
}

/// Receives the rows of a block. Only what the same index has written can be read from it, so that rows are a function of the blocks
/// from the first one of the index on.
pub struct Rows<'t, 's> {
    pub(crate) txn: &'t mut Txn<'s>,
    pub(crate) numbered: &'t mut u64,
    pub(crate) chain: &'t Identity,
}

impl<'t> Rows<'t, '_> {
    /// The chain that the block is of.
    pub fn chain(&self) -> &'t Identity {
        self.chain
    }

    /// The number of the next record of the index, from 1.
    pub fn number(&mut self) -> u64 {
        *self.numbered += 1;
        *self.numbered
    }

    /// Adds `value`, which is larger than those of earlier blocks, to the end of `owner`'s list.
    pub fn push<L: List>(&mut self, owner: &L::Owner, value: u64) -> Result<(), Error> {
        self.txn.push::<L>(owner, value)?;
        Ok(())
    }

    /// [`Self::push`] unless `value` is the last one of the list.
    pub fn push_once<L: List>(&mut self, owner: &L::Owner, value: u64) -> Result<(), Error> {
        if self.txn.last::<L>(owner)? != Some(value) {
            self.txn.push::<L>(owner, value)?;
        }
        Ok(())
    }

    /// Writes a row, whose key no other block has.
    pub fn put<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        self.txn.put_unread::<T>(key, value);
    }

    /// A row that earlier blocks have written by [`Rows::set`].
    pub fn get<T: Table>(&self, key: &T::Key) -> Result<Option<T::Value>, Error> {
        Ok(self.txn.get::<T>(key)?)
    }

    /// Writes a row that later blocks may read and write again.
    pub fn set<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        self.txn.put::<T>(key, value);
    }

    /// Writes a row unless there is one: its value follows from its key, or that of the first block is to stay.
    pub fn put_first<T: Table>(&mut self, key: &T::Key, value: &T::Value) -> Result<(), Error> {
        if self.txn.get::<T>(key)?.is_none() {
            self.txn.put::<T>(key, value);
        }
        Ok(())
    }

    /// Writes a row with the next number of the index unless there is one. Returns the number.
    pub fn number_first<T: Table>(
        &mut self,
        key: &T::Key,
        value: impl FnOnce(u64) -> T::Value,
    ) -> Result<Option<u64>, Error> {
        if self.txn.get::<T>(key)?.is_some() {
            return Ok(None);
        }
        let number = self.number();
        self.txn.put::<T>(key, &value(number));
        Ok(Some(number))
    }

    /// Inserts an item into a set, or replaces its value.
    pub fn insert<R: Ranked>(
        &mut self,
        owner: &R::Owner,
        item: &R::Item,
        value: &R::Value,
    ) -> Result<(), Error> {
        self.txn.insert::<R>(owner, item, value)?;
        Ok(())
    }

    /// Removes an item from a set.
    pub fn remove<R: Ranked>(&mut self, owner: &R::Owner, item: &R::Item) -> Result<(), Error> {
        self.txn.remove::<R>(owner, item)?;
        Ok(())
    }

    /// Adds a value to the end of a row, which is all values that were added to it.
    pub fn append<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        self.txn.append_unread::<T>(key, value);
    }
}

/// The row `index/<name>` of [`Meta`]: which blocks an index has.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct State {
    /// [`Index::version`] of its rows.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The first of the blocks.
    #[prost(uint64, tag = "2")]
    pub from: u64,
    /// The last one; `from - 1` if it has none yet.
    #[prost(uint64, tag = "3")]
    pub height: u64,
    /// Header time of the last one, nanoseconds since 1970 UTC; 0 if there is none.
    #[prost(int64, tag = "4")]
    pub time: i64,
    /// How many records it has numbered.
    #[prost(uint64, tag = "5")]
    pub numbered: u64,
}

/// The index with this name.
pub fn named(name: &str) -> Option<&'static Index> {
    INDEXES.iter().copied().find(|index| index.name == name)
}

/// The stored indexes with their blocks.
pub fn stored(snapshot: &dyn Snapshot) -> Result<Vec<(&'static Index, State)>, Error> {
    let state = |index: &&'static Index| {
        let index = *index;
        index.state(snapshot).map(|state| state.map(|state| (index, state))).transpose()
    };
    INDEXES.iter().filter_map(state).collect()
}

impl Index {
    /// True if the process that writes the database writes it.
    pub fn is_written(&self, snapshot: &dyn Snapshot) -> Result<bool, Error> {
        let written: WrittenIndexes = meta::read(snapshot)?.unwrap_or_default();
        Ok(written.names.iter().any(|name| name == self.name))
    }

    /// The blocks that it has; `None` if it is not stored.
    pub fn state(&self, snapshot: &dyn Snapshot) -> Result<Option<State>, Error> {
        meta::read_row(snapshot, &self.key())
    }

    pub(crate) fn put_state(&self, txn: &mut Txn<'_>, state: State) {
        txn.put::<Meta>(&self.key(), &prost::Message::encode_to_vec(&state));
    }

    pub(crate) fn key(&self) -> Text {
        Text(format!("index/{}", self.name))
    }

    /// Its number as a lane of the undo log: that of its first table, which no other lane has.
    pub(crate) fn lane_tag(&self) -> u8 {
        self.tables.first().map_or(0, |table| table.tag)
    }
}

/// An index by its name, whatever its version.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Index {}
