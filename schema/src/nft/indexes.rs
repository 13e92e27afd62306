//! The sets that follow from the rows of tokens and collections: tokens by height, by owner and by owner and collection,
//! and the collections of each owner.

use store::key::Text;
use store::{
    Bounds, BulkWriter, Durability, Key as _, Message, Order, Ranked, RowCursor, Store, Table as _, Txn,
};

use super::log::{account, damaged};
use super::{
    Collections, CollectionsByHeight, Holdings, HoldingsByHeight, OwnedCollections, OwnedTokens,
    OwnedTokensByHeight, Token, Tokens, TokensByHeight,
};
use crate::Error;
use crate::keys::AccountKey;

/// Receives the place of a token in each set.
trait Visitor {
    fn item<R: Ranked<Value = ()>>(&mut self, owner: &R::Owner, item: &R::Item) -> Result<(), Error>;
}

/// Visits the sets of a token except for [`OwnedCollections`].
fn visit(
    (collection, id): &(AccountKey, Text),
    (holder, height): (AccountKey, u64),
    visitor: &mut impl Visitor,
) -> Result<(), Error> {
    let pair = (holder, *collection);
    visitor.item::<TokensByHeight>(collection, &(height, id.clone()))?;
    visitor.item::<OwnedTokens>(&holder, &(id.clone(), height, *collection))?;
    visitor.item::<OwnedTokensByHeight>(&holder, &(height, id.clone(), *collection))?;
    visitor.item::<Holdings>(&pair, id)?;
    visitor.item::<HoldingsByHeight>(&pair, &(height, id.clone()))
}

struct Insert<'t, 's>(&'t mut Txn<'s>);

impl Visitor for Insert<'_, '_> {
    fn item<R: Ranked<Value = ()>>(&mut self, owner: &R::Owner, item: &R::Item) -> Result<(), Error> {
        self.0.insert::<R>(owner, item, &())?;
        Ok(())
    }
}

struct Remove<'t, 's>(&'t mut Txn<'s>);

impl Visitor for Remove<'_, '_> {
    fn item<R: Ranked<Value = ()>>(&mut self, owner: &R::Owner, item: &R::Item) -> Result<(), Error> {
        self.0.remove::<R>(owner, item)?;
        Ok(())
    }
}

/// Writes rows without counts and nodes.
struct Write<'w, 's>(&'w mut BulkWriter<'s>);

impl Visitor for Write<'_, '_> {
    fn item<R: Ranked<Value = ()>>(&mut self, owner: &R::Owner, item: &R::Item) -> Result<(), Error> {
        let mut key = owner.to_bytes();
        item.put(&mut key);
        Ok(self.0.put(R::SPEC, key, Vec::new())?)
    }
}

/// Inserts a token into its sets.
pub(super) fn insert(txn: &mut Txn<'_>, key: &(AccountKey, Text), row: &Token) -> Result<(), Error> {
    let holder = account(&row.owner)?;
    visit(key, (holder, row.height), &mut Insert(txn))?;
    if txn.set_len::<Holdings>(&(holder, key.0))? == 1 {
        let item = owned_collection(txn, key.0)?;
        txn.insert::<OwnedCollections>(&holder, &item, &())?;
    }
    Ok(())
}

/// Removes a token from its sets.
pub(super) fn remove(txn: &mut Txn<'_>, key: &(AccountKey, Text), row: &Token) -> Result<(), Error> {
    let holder = account(&row.owner)?;
    visit(key, (holder, row.height), &mut Remove(txn))?;
    if txn.set_len::<Holdings>(&(holder, key.0))? == 0 {
        let item = owned_collection(txn, key.0)?;
        txn.remove::<OwnedCollections>(&holder, &item)?;
    }
    Ok(())
}

/// The item of a collection in [`OwnedCollections`].
fn owned_collection(txn: &Txn<'_>, collection: AccountKey) -> Result<(u64, AccountKey), Error> {
    let row = txn.get::<Collections>(&collection)?.ok_or_else(|| missing(collection))?;
    Ok((row.0.height, collection))
}

fn missing(collection: AccountKey) -> Error {
    damaged("collection", &collection.0.to_hex(), "a token's collection is missing")
}

/// Writes all sets, which are empty, from the rows of tokens and collections, and the counts and nodes of all sets. May be
/// interrupted and called again.
pub(super) fn build(store: &dyn Store) -> Result<(), Error> {
    write_items(store)?;
    index::<Tokens>(store)?;
    index::<TokensByHeight>(store)?;
    index::<OwnedTokens>(store)?;
    index::<OwnedTokensByHeight>(store)?;
    index::<Holdings>(store)?;
    index::<HoldingsByHeight>(store)?;
    index::<OwnedCollections>(store)?;
    index::<CollectionsByHeight>(store)
}

fn write_items(store: &dyn Store) -> Result<(), Error> {
    let (snapshot, mut writer) = (store.snapshot()?, BulkWriter::new(store));
    store::for_each_row(&*snapshot, Collections::SPEC, Bounds::all(), |key, value| {
        let (address, Message(row)) = store::table::decode_row::<Collections>(key, value)?;
        Write(&mut writer).item::<CollectionsByHeight>(&(), &(row.height, address))
    })?;
    let mut last = None;
    for row in RowCursor::new(&*snapshot, Tokens::SPEC, Bounds::all(), Order::Asc) {
        let (key, value) = row?;
        let (token, Message(row)) = store::table::decode_row::<Tokens>(&key, &value)?;
        let collection = match last {
            Some((height, address)) if address == token.0 => (height, address),
            _ => {
                let row = store::table::read::<Collections>(&*snapshot, &token.0)?;
                (row.ok_or_else(|| missing(token.0))?.0.height, token.0)
            }
        };
        last = Some(collection);
        let holder = account(&row.owner)?;
        let mut write = Write(&mut writer);
        visit(&token, (holder, row.height), &mut write)?;
        // Once for each token of the owner: the rows are equal.
        write.item::<OwnedCollections>(&holder, &collection)?;
    }
    Ok(writer.finish(Durability::Buffered)?)
}

/// Writes the counts and nodes of the sets of `R`.
fn index<R: Ranked>(store: &dyn Store) -> Result<(), Error> {
    let mut writer = BulkWriter::new(store);
    store::ranked::index_items::<R>(&*store.snapshot()?, &mut writer)?;
    Ok(writer.finish(Durability::Buffered)?)
}
