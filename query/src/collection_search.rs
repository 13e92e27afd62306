//! The names of all collections in memory, to be searched.
//!
//! What must hold: who searches sees exactly the names of his own snapshot. The snapshot is taken while the names stand
//! still, and what the snapshot has more of ([`NameChanges`]) is read by one thread while the others wait.

use std::collections::BTreeMap;

use chain::Account;
use chain::nft::normalized_name;
use memchr::memmem::Finder;
use schema::keys::Owner;
use schema::nft::{Collection, Collections, NameChanges};
use store::key::All;
use store::{Bounds, Error, Key as _, Message, Order, Snapshot, Table as _};

use crate::array::set::InMemory;

/// Changes that are read one by one at most; above, all names are read again.
const MAX_CHANGES: u64 = 10_000;

/// The names of all collections, in the order of [`schema::nft::CollectionsByHeight`].
#[derive(Default)]
pub(crate) struct CollectionNames {
    /// By the bytes of the item.
    named: BTreeMap<Vec<u8>, Named>,
    /// How many changes they have seen; `None` if they are not whole.
    known: Option<u64>,
}

struct Named {
    item: (u64, Owner),
    name: String,
    origin_name: String,
}

impl CollectionNames {
    /// The collections that have `part`, normalized, in one of their names, in order.
    pub(crate) fn containing(&self, part: &str) -> InMemory<'_, (u64, Owner)> {
        let finder = Finder::new(part);
        let has = |name: &str| finder.find(name.as_bytes()).is_some();
        let found = self.named.values().filter(|named| has(&named.name) || has(&named.origin_name));
        InMemory(found.map(|named| &named.item).collect())
    }

    /// Whether these are exactly the names of `snapshot`.
    pub(crate) fn is_current(&self, snapshot: &dyn Snapshot) -> Result<bool, Error> {
        Ok(self.known == Some(change_count(snapshot)?))
    }

    /// Makes the names those of `snapshot`, which must not be older than the one they are of.
    pub(crate) fn update(&mut self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        let count = change_count(snapshot)?;
        // If this is interrupted, the next one reads everything.
        let changes = match self.known.take() {
            Some(known) => changes(snapshot, known, count)?,
            None => None,
        };
        match changes {
            Some(changes) => self.reread(snapshot, &changes)?,
            None => self.read_all(snapshot)?,
        }
        self.known = Some(count);
        Ok(())
    }

    fn reread(&mut self, snapshot: &dyn Snapshot, changes: &[Owner]) -> Result<(), Error> {
        for (address, row) in changes.iter().zip(store::table::read_many::<Collections>(snapshot, changes)?) {
            // A collection never goes but with a change of everything.
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

    fn insert(&mut self, address: Owner, row: &Collection) {
        let item = (row.height, address);
        let (name, origin_name) = (normalized_name(&row.name), normalized_name(&row.origin_name));
        self.named.insert(item.to_bytes(), Named { item, name, origin_name });
    }
}

/// How many changes there were: they are numbered from 0.
fn change_count(snapshot: &dyn Snapshot) -> Result<u64, Error> {
    let last = store::table::rows::<NameChanges>(snapshot, &All, Order::Desc, 1)?;
    Ok(last.first().map_or(0, |(number, _)| number.saturating_add(1)))
}

/// The collections of the changes from number `known` on; `None` if all names are to be read again.
fn changes(snapshot: &dyn Snapshot, known: u64, count: u64) -> Result<Option<Vec<Owner>>, Error> {
    let new = count.checked_sub(known).filter(|new| *new <= MAX_CHANGES);
    let Some(new) = new.map(|new| usize::try_from(new).unwrap_or(usize::MAX)) else { return Ok(None) };
    let start = known.to_bytes();
    let rows = snapshot.scan(NameChanges::SPEC, Bounds { start: &start, end: None }, Order::Asc, new)?;
    if rows.len() != new {
        return Ok(None);
    }
    // A row without an address, which is none, says that everything changed.
    Ok(rows.iter().map(|(_, address)| Account::from_bytes(address).map(Owner)).collect())
}
