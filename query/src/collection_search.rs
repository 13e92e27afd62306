//! Substring search in collection names, over an in-memory copy of all names.
//!
//! # Invariants
//!
//! A search sees exactly the names of its own snapshot: the snapshot is taken under the read lock, and one thread
//! applies newer changes ([`NameChanges`]) under the write lock ([`crate::indexer::Indexer::view_with_names`]).

use std::collections::BTreeMap;

use chain::Account;
use chain::nft::normalized_name;
use memchr::memmem::Finder;
use schema::keys::AccountKey;
use schema::nft::{Collection, Collections, NameChanges};
use store::key::All;
use store::{Bounds, Error, Key as _, Message, Order, Snapshot, Table as _};

use crate::array::set::InMemory;

/// Maximum number of changes that are applied one by one; for more, all names are read again.
const MAX_CHANGES: u64 = 10_000;

/// The names of all collections, in the order of [`schema::nft::CollectionsByHeight`].
#[derive(Default)]
pub(crate) struct CollectionNames {
    /// The names, by the key bytes of the item.
    named: BTreeMap<Vec<u8>, Named>,
    /// Number of changes applied; `None` if the names are incomplete.
    applied: Option<u64>,
}

struct Named {
    item: (u64, AccountKey),
    name: String,
    origin_name: String,
}

impl CollectionNames {
    /// The collections with `part`, which is normalized, in one of their names, in order.
    pub(crate) fn containing(&self, part: &str) -> InMemory<'_, (u64, AccountKey)> {
        let finder = Finder::new(part);
        let has = |name: &str| finder.find(name.as_bytes()).is_some();
        let found = self.named.values().filter(|named| has(&named.name) || has(&named.origin_name));
        InMemory(found.map(|named| &named.item).collect())
    }

    /// True if these are exactly the names of `snapshot`.
    pub(crate) fn is_current(&self, snapshot: &dyn Snapshot) -> Result<bool, Error> {
        Ok(self.applied == Some(change_count(snapshot)?))
    }

    /// Updates the names to `snapshot`, which must not be older than the current state.
    pub(crate) fn update(&mut self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        let count = change_count(snapshot)?;
        // If this fails, the next update reads everything.
        let changes = match self.applied.take() {
            Some(applied) => changes(snapshot, applied, count)?,
            None => None,
        };
        match changes {
            Some(changes) => self.reread(snapshot, &changes)?,
            None => self.read_all(snapshot)?,
        }
        self.applied = Some(count);
        Ok(())
    }

    fn reread(&mut self, snapshot: &dyn Snapshot, changes: &[AccountKey]) -> Result<(), Error> {
        for (address, row) in changes.iter().zip(store::table::read_many::<Collections>(snapshot, changes)?) {
            // Collections are deleted only together with an entry that invalidates all names.
            if let Some(Message(row)) = row {
                self.insert(*address, &row);
            }
        }
        Ok(())
    }

    fn read_all(&mut self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        self.named.clear();
        store::for_each_row(snapshot, Collections::SPEC, Bounds::all(), |key, value| {
            let (address, Message(row)) = store::table::decode_row::<Collections>(key, value)?;
            self.insert(address, &row);
            Ok(())
        })
    }

    fn insert(&mut self, address: AccountKey, row: &Collection) {
        let item = (row.height, address);
        let (name, origin_name) = (normalized_name(&row.name), normalized_name(&row.origin_name));
        self.named.insert(item.to_bytes(), Named { item, name, origin_name });
    }
}

/// Number of changes in the log; they are numbered from 0.
fn change_count(snapshot: &dyn Snapshot) -> Result<u64, Error> {
    let last = store::table::rows::<NameChanges>(snapshot, &All, Order::Desc, 1)?;
    Ok(last.first().map_or(0, |(number, _)| number.saturating_add(1)))
}

/// The collections of the changes from number `applied` on; `None` if all names are to be read again.
fn changes(snapshot: &dyn Snapshot, applied: u64, count: u64) -> Result<Option<Vec<AccountKey>>, Error> {
    let new = count.checked_sub(applied).filter(|new| *new <= MAX_CHANGES);
    let Some(new) = new.map(|new| usize::try_from(new).unwrap_or(usize::MAX)) else { return Ok(None) };
    let start = applied.to_bytes();
    let rows = snapshot.scan(NameChanges::SPEC, Bounds { start: &start, end: None }, Order::Asc, new)?;
    if rows.len() != new {
        return Ok(None);
    }
    // A row without an address invalidates all names; `Account::from_bytes` returns `None` for it.
    Ok(rows.iter().map(|(_, address)| Account::from_bytes(address).map(AccountKey)).collect())
}
