//! The fold of the NFT event log into tables, one entry at a time.
//!
//! # Invariants
//!
//! The tables depend only on the entries and on their order within each collection. Collections are independent of each
//! other except in [`super::OriginNames`], where the first name wins. The sets other than [`Tokens`] follow from the rows
//! of [`Tokens`] and [`Collections`] (`nft::indexes`).

use store::key::Text;
use store::{Message, Order, Txn};

use super::indexes;
use super::log::{account, damaged, token_key};
use super::{
    Change, Collection, Collections, CollectionsByHeight, CollectionsByName, Entry, Log, NameChanges,
    NewCollection, NftLog, ObjectTokens, Origin, OriginNames, Token, TokenObjects, TokenTxs, Tokens,
};
use crate::Error;
use crate::keys::AccountKey;

/// The block of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Its height.
    pub height: u64,
    /// Its header time, nanoseconds since 1970 UTC.
    pub time: i64,
}

/// Applies `entries` of the block `at` to the tables and appends them to the log.
pub fn record(txn: &mut Txn<'_>, at: At, entries: Vec<Entry>) -> Result<(), Error> {
    for entry in &entries {
        apply(txn, at, entry)?;
    }
    log(txn, at, entries)
}

/// Appends `entries` of the block `at`, which are applied already, to the log. The entries of a block may come in
/// several calls; the log stores them ordered by place.
pub fn log(txn: &mut Txn<'_>, at: At, entries: Vec<Entry>) -> Result<(), Error> {
    if entries.is_empty() {
        return Ok(());
    }
    let stored = txn.get::<NftLog>(&at.height)?;
    let Message(mut log) = stored.unwrap_or_else(|| Message(Log { time: at.time, entries: Vec::new() }));
    log.entries.extend(entries);
    log.entries.sort_by_key(|entry| entry.place);
    txn.put::<NftLog>(&at.height, &Message(log));
    Ok(())
}

/// Applies one entry of the block `at` to the tables.
pub fn apply(txn: &mut Txn<'_>, at: At, entry: &Entry) -> Result<(), Error> {
    match &entry.change {
        Some(Change::Collection(new)) => {
            let Some(item) = add_collection(txn, new)? else { return Ok(()) };
            txn.insert::<CollectionsByHeight>(&(), &item, &())?;
            Ok(())
        }
        _ => apply_with(txn, at, entry, replace_token),
    }
}

/// Like [`apply`], for a rebuild: leaves out the sets other than [`Tokens`], and the counts and nodes of all sets.
pub(super) fn apply_without_indexes(txn: &mut Txn<'_>, at: At, entry: &Entry) -> Result<(), Error> {
    match &entry.change {
        Some(Change::Collection(new)) => add_collection(txn, new).map(drop),
        _ => apply_with(txn, at, entry, |txn, key, _, after| {
            match after {
                Some(row) => txn.put::<Tokens>(key, &Message(row)),
                None => txn.delete::<Tokens>(key),
            }
            Ok(())
        }),
    }
}

/// Key of a token's row.
type Key = (AccountKey, Text);

/// Applies one entry; `replace` writes the row of its token, before and after.
fn apply_with(
    txn: &mut Txn<'_>,
    at: At,
    entry: &Entry,
    replace: impl FnOnce(&mut Txn<'_>, &Key, Option<Token>, Option<Token>) -> Result<(), Error>,
) -> Result<(), Error> {
    let change = match &entry.change {
        Some(Change::Origin(origin)) => return add_origin(txn, origin),
        Some(change) => change,
        // Only corruption leads here: a program with other entries would have another format version.
        None => return Err(damaged("nft_log", &at.height.to_string(), "an entry says nothing")),
    };
    let Some(token) = change.token() else { return Ok(()) };
    let key = token_key(token)?;
    if !matches!(change, Change::Uri(_)) {
        add_tx(txn, &key, entry.tx)?;
    }
    if let Some(object) = change.object() {
        txn.put::<TokenObjects>(&key, &object.to_vec());
        txn.put::<ObjectTokens>(&account(object)?, &Message(token.clone()));
    }
    let before = txn.get::<Tokens>(&key)?.map(|Message(row)| row);
    let after = token_after(before.clone(), at, change);
    if before.is_none() && after.is_none() {
        return Ok(());
    }
    replace(txn, &key, before, after)
}

/// The row of a token after a change of it in the block `at`, from the row before.
pub(super) fn token_after(before: Option<Token>, at: At, change: &Change) -> Option<Token> {
    let At { height, time } = at;
    match change {
        // Contracts may mint a token again without a burn.
        Change::Mint(mint) => Some(Token {
            owner: mint.owner.clone(),
            uri: mint.uri.clone(),
            object: mint.object.clone(),
            height,
            time,
            question: mint.question,
        }),
        Change::Transfer(transfer) => {
            before.map(|row| Token { owner: transfer.owner.clone(), height, time, ..row })
        }
        Change::Burn(_) => None,
        Change::Uri(new) => {
            before.map(|row| Token { uri: new.uri.clone(), question: 0, height, time, ..row })
        }
        Change::Collection(_) | Change::Origin(_) => before,
    }
}

/// Stores the URI that a pending query returned, in the token and in the log entry of its mint, as if the mint had
/// contained it.
pub fn answer_uri(txn: &mut Txn<'_>, question: u64, height: u64, uri: &str) -> Result<(), Error> {
    let Some(Message(mut log)) = txn.get::<NftLog>(&height)? else { return Ok(()) };
    let mut answered = None;
    for entry in &mut log.entries {
        if let Some(Change::Mint(mint)) = &mut entry.change
            && mint.question == question
        {
            mint.question = 0;
            uri.clone_into(&mut mint.uri);
            answered = Some(mint.token.clone());
        }
    }
    let Some(token) = answered else { return Ok(()) };
    txn.put::<NftLog>(&height, &Message(log));
    let key = token_key(&token)?;
    let Some(Message(mut row)) = txn.get::<Tokens>(&key)? else { return Ok(()) };
    // Meanwhile the token may have been minted again, or have received a URI.
    if row.question == question {
        row.question = 0;
        uri.clone_into(&mut row.uri);
        txn.insert::<Tokens>(&key.0, &key.1, &Message(row))?;
    }
    Ok(())
}

/// Adds a collection, if it is new. Returns its item in [`CollectionsByHeight`], which the caller inserts.
fn add_collection(txn: &mut Txn<'_>, new: &NewCollection) -> Result<Option<(u64, AccountKey)>, Error> {
    let address = account(&new.address)?;
    if txn.get::<Collections>(&address)?.is_some() {
        return Ok(None);
    }
    let name = Text(new.collection.name.clone());
    let origin_name = txn.get::<OriginNames>(&name)?.unwrap_or_default();
    let row = Collection { origin_name, ..new.collection.clone() };
    txn.put::<CollectionsByName>(&(name, address), &());
    let item = (row.height, address);
    txn.put::<Collections>(&address, &Message(row));
    note_names_changed(txn, address)?;
    Ok(Some(item))
}

/// Removes a collection without tokens.
pub(super) fn remove_collection(txn: &mut Txn<'_>, address: &AccountKey) -> Result<(), Error> {
    if let Some(Message(row)) = txn.get::<Collections>(address)? {
        txn.delete::<CollectionsByName>(&(Text(row.name), *address));
        txn.remove::<CollectionsByHeight>(&(), &(row.height, *address))?;
        txn.delete::<Collections>(address);
    }
    Ok(())
}

fn add_origin(txn: &mut Txn<'_>, origin: &Origin) -> Result<(), Error> {
    let name = Text(origin.local.clone());
    if txn.get::<OriginNames>(&name)?.is_some() {
        return Ok(());
    }
    set_origin(txn, &name, Some(&origin.origin))
}

/// Sets or removes the name on the chain of origin, also in the collections of this name.
pub(super) fn set_origin(txn: &mut Txn<'_>, name: &Text, origin: Option<&String>) -> Result<(), Error> {
    match origin {
        Some(origin) => txn.put::<OriginNames>(name, origin),
        None => txn.delete::<OriginNames>(name),
    }
    let mut same_name = store::table::rows::<CollectionsByName>(txn, name, Order::Asc, SAME_NAME)?;
    while let Some((last, ())) = same_name.last().cloned() {
        for ((_, address), ()) in same_name {
            if let Some(Message(mut collection)) = txn.get::<Collections>(&address)? {
                collection.origin_name = origin.cloned().unwrap_or_default();
                txn.put::<Collections>(&address, &Message(collection));
                note_names_changed(txn, address)?;
            }
        }
        same_name = store::table::rows_after::<CollectionsByName>(txn, name, &last, Order::Asc, SAME_NAME)?;
    }
    Ok(())
}

/// Collections of the same name read at a time; their number is unbounded.
const SAME_NAME: usize = 256;

/// Adds the collection to the change log of names.
fn note_names_changed(txn: &mut Txn<'_>, address: AccountKey) -> Result<(), Error> {
    note_change(txn, address.0.as_bytes().to_vec())
}

/// Adds an entry to the change log that invalidates all names.
pub(crate) fn invalidate_all_names(txn: &mut Txn<'_>) -> Result<(), Error> {
    note_change(txn, Vec::new())
}

fn note_change(txn: &mut Txn<'_>, address: Vec<u8>) -> Result<(), Error> {
    let last = store::table::rows::<NameChanges>(txn, &store::key::All, Order::Desc, 1)?;
    let next = last.first().map_or(0, |(number, _)| number + 1);
    txn.put::<NameChanges>(&next, &address);
    Ok(())
}

/// Replaces a token's row, in its table and in every index.
pub(super) fn replace_token(
    txn: &mut Txn<'_>,
    key: &Key,
    before: Option<Token>,
    after: Option<Token>,
) -> Result<(), Error> {
    if let Some(row) = &before {
        indexes::remove(txn, key, row)?;
    }
    if let Some(row) = after {
        txn.insert::<Tokens>(&key.0, &key.1, &Message(row.clone()))?;
        indexes::insert(txn, key, &row)
    } else {
        txn.remove::<Tokens>(&key.0, &key.1)?;
        Ok(())
    }
}

/// Appends a transaction to a token's list, at most once.
fn add_tx(txn: &mut Txn<'_>, key: &Key, tx: u64) -> Result<(), Error> {
    if tx != 0 && txn.last::<TokenTxs>(key)? != Some(tx) {
        txn.push::<TokenTxs>(key, tx)?;
    }
    Ok(())
}
