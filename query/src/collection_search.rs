//! Substring search in collection names, over an in-memory copy of their beginnings.
//!
//! The API finds any part of a name, so a search looks at each of them: 100,000 take some milliseconds. An index of their
//! trigrams can take far more memory than the names, and strangers choose those.
//!
//! # Invariants
//!
//! A search sees exactly the names of its own snapshot: the snapshot is taken under the lock, and newer changes
//! ([`NameChanges`]) are applied before the search ([`crate::indexer::Indexer::collections_named`]).

use std::collections::HashMap;

use chain::Account;
use chain::nft::normalized_name;
use memchr::memmem::Finder;
use schema::keys::AccountKey;
use schema::nft::{Collection, Collections, NameChanges};
use store::key::All;
use store::{Bounds, Error, Key as _, Message, Order, Snapshot, Table as _};

/// Characters of a name that are searched, at its beginning: names have up to 256 KiB.
const SEARCHED: usize = 256;

/// Rows that are read at once.
const AT_ONCE: usize = 32;

/// Maximum number of changes that are applied one by one; for more, all names are read again.
const MAX_CHANGES: u64 = 10_000;

/// The names of all collections, in the order of [`schema::nft::CollectionsByHeight`].
#[derive(Default)]
pub(crate) struct CollectionNames {
    named: Vec<Named>,
    /// Places in `named`, by the key bytes of the item.
    places: HashMap<Vec<u8>, usize>,
    /// Number of changes applied; `None` if the names are incomplete.
    applied: Option<u64>,
}

/// A collection by height, then by address.
pub(crate) type NamedItem = (u64, AccountKey);

struct Named {
    item: NamedItem,
    name: String,
    origin_name: String,
}

impl CollectionNames {
    /// The collections with `part`, which is normalized, in one of their names, in order.
    pub(crate) fn containing(&self, part: &str) -> Vec<NamedItem> {
        let finder = Finder::new(part);
        let has = |name: &str| finder.find(name.as_bytes()).is_some();
        let has_part = |named: &&Named| has(&named.name) || has(&named.origin_name);
        let mut found: Vec<&Named> = self.named.iter().filter(has_part).collect();
        found.sort_by_cached_key(|named| named.item.to_bytes());
        found.into_iter().map(|named| named.item).collect()
    }

    /// Updates the names to `snapshot`, which must not be older than the current state.
    pub(crate) fn update(&mut self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        let count = change_count(snapshot)?;
        if self.applied == Some(count) {
            return Ok(());
        }
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
        for changes in changes.chunks(AT_ONCE) {
            let rows = store::table::read_many::<Collections>(snapshot, changes)?;
            for (address, row) in changes.iter().zip(rows) {
                // Collections are deleted only together with an entry that invalidates all names.
                if let Some(Message(row)) = row {
                    self.insert(*address, &row);
                }
            }
        }
        Ok(())
    }

    fn read_all(&mut self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        (self.named, self.places) = Default::default();
        store::for_each_row(snapshot, Collections::SPEC, Bounds::all(), |key, value| {
            let (address, Message(row)) = store::table::decode_row::<Collections>(key, value)?;
            self.insert(address, &row);
            Ok(())
        })
    }

    fn insert(&mut self, address: AccountKey, row: &Collection) {
        let item = (row.height, address);
        let (name, origin_name) = (searched(&row.name), searched(&row.origin_name));
        let place = *self.places.entry(item.to_bytes()).or_insert(self.named.len());
        let named = Named { item, name, origin_name };
        match self.named.get_mut(place) {
            Some(old) => *old = named,
            None => self.named.push(named),
        }
    }
}

/// The normalized beginning of a name.
fn searched(name: &str) -> String {
    let end = name.char_indices().nth(SEARCHED).map_or(name.len(), |(end, _)| end);
    normalized_name(&name[..end])
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
