//! The fold of the NFT event log into tables, one entry at a time.
//!
//! # Invariants
//!
//! The tables depend only on the entries and on their order within each collection; an entry about a URI or a name may
//! also be applied after later ones. Collections are independent of each
//! other except in [`super::OriginNames`], where the first name wins. The sets other than [`Tokens`] follow from the rows
//! of [`Tokens`] and [`Collections`] (`nft::indexes`).

use store::key::Text;
use store::{Message, Order, Txn};

use super::indexes;
use super::log::{account, damaged, token_key};
use super::{
    Change, Collection, Collections, CollectionsByHeight, CollectionsByName, Entry, NameChanges,
    NewCollection, NewName, NewUri, NftLog, ObjectTokens, Origin, OriginNames, Outcome, Place, Token,
    TokenObjects, TokenTxs, Tokens,
};
use crate::Error;
use crate::keys::AccountKey;

/// Applies an entry to the tables and writes it to the log.
pub fn record(txn: &mut Txn<'_>, place: &Place, entry: Entry) -> Result<(), Error> {
    apply(txn, place, &entry)?;
    txn.put::<NftLog>(place, &Message(entry));
    Ok(())
}

/// Applies one entry to the tables.
fn apply(txn: &mut Txn<'_>, place: &Place, entry: &Entry) -> Result<(), Error> {
    match &entry.change {
        Some(Change::Collection(new)) => {
            let Some(item) = add_collection(txn, new)? else { return Ok(()) };
            txn.insert::<CollectionsByHeight>(&(), &item, &())?;
            Ok(())
        }
        _ => apply_with(txn, place, entry, replace_token),
    }
}

/// Like [`apply`], for a rebuild: leaves out the sets other than [`Tokens`], and the counts and nodes of all sets.
pub(super) fn apply_without_indexes(txn: &mut Txn<'_>, place: &Place, entry: &Entry) -> Result<(), Error> {
    match &entry.change {
        Some(Change::Collection(new)) => add_collection(txn, new).map(drop),
        _ => apply_with(txn, place, entry, |txn, key, _, after| {
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
    place: &Place,
    entry: &Entry,
    replace: impl FnOnce(&mut Txn<'_>, &Key, Option<Token>, Option<Token>) -> Result<(), Error>,
) -> Result<(), Error> {
    let change = match &entry.change {
        Some(Change::Origin(origin)) => return add_origin(txn, origin),
        Some(Change::Name(new)) => return rename(txn, place, new),
        Some(change) => change,
        // Only corruption leads here: a program with other entries would have another format version.
        None => return Err(damaged("nft_log", &place.height.to_string(), "an entry says nothing")),
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
    let after = token_after(before.clone(), (place, entry.time), change);
    if before == after {
        return Ok(());
    }
    replace(txn, &key, before, after)
}

/// The row of a token after a change of it, from the row before.
pub(super) fn token_after(
    before: Option<Token>,
    (place, time): (&Place, i64),
    change: &Change,
) -> Option<Token> {
    let height = place.height;
    match change {
        // Contracts may mint a token again without a burn.
        Change::Mint(mint) => {
            let row = Token {
                owner: mint.owner.clone(),
                uri: place.clone(),
                object: mint.object.clone(),
                height,
                time,
                outcome: Outcome::Open.into(),
                open: Some(place.clone()),
                refusals: 0,
                minted: place.clone(),
            };
            Some(answered(row, place, (mint.outcome(), 0)))
        }
        Change::Transfer(transfer) => {
            before.map(|row| Token { owner: transfer.owner.clone(), height, time, ..row })
        }
        Change::Burn(_) => None,
        Change::Uri(new) => before.map(|row| with_uri(row, (place, time), new)),
        Change::Collection(_) | Change::Origin(_) | Change::Name(_) => before,
    }
}

/// A token's row with a new URI, or a query for it. It may be applied after later entries of the token.
fn with_uri(mut row: Token, (place, time): (&Place, i64), new: &NewUri) -> Token {
    if *place < row.minted {
        return row;
    }
    if place.height > row.height {
        (row.height, row.time) = (place.height, time);
    }
    if place > row.asked() {
        row.refusals = 0;
        row.open = Some(place.clone());
    }
    answered(row, place, (new.outcome(), new.refusals))
}

/// A token's row after the answer about its URI for the entry `place`, before which the contract had refused `refusals`
/// queries in turn.
fn answered(mut row: Token, place: &Place, (outcome, refusals): (Outcome, u32)) -> Token {
    if outcome == Outcome::Open || *place < row.minted {
        return row;
    }
    let is_newest = place >= row.asked();
    if *place >= row.uri {
        row.uri = place.clone();
        row.outcome = outcome.into();
    }
    if is_newest {
        row.open = None;
        row.refusals = if outcome == Outcome::Refused { refusals.saturating_add(1) } else { 0 };
    }
    row
}

/// Stores the answer to a pending query for a URI, in the log entry that waits for it and in the token's row, as if the
/// answer had come with the block. Returns the number of queries in turn that the contract has refused now.
pub fn answer_uri(txn: &mut Txn<'_>, place: &Place, outcome: Outcome, uri: String) -> Result<u32, Error> {
    let Some(Message(mut entry)) = txn.get::<NftLog>(place)? else { return Ok(0) };
    let (token, refusals) = match &mut entry.change {
        Some(Change::Mint(mint)) if mint.outcome() == Outcome::Open => {
            (mint.outcome, mint.uri) = (outcome.into(), uri);
            (mint.token.clone(), 0)
        }
        Some(Change::Uri(new)) if new.outcome() == Outcome::Open => {
            (new.outcome, new.uri) = (outcome.into(), uri);
            (new.token.clone(), new.refusals)
        }
        _ => return Ok(0),
    };
    txn.put::<NftLog>(place, &Message(entry));
    let key = token_key(&token)?;
    if let Some(Message(row)) = txn.get::<Tokens>(&key)? {
        let after = answered(row.clone(), place, (outcome, refusals));
        if after != row {
            txn.insert::<Tokens>(&key.0, &key.1, &Message(after))?;
        }
    }
    Ok(if outcome == Outcome::Refused { refusals.saturating_add(1) } else { 0 })
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

/// Gives a collection another name, unless it has a newer one.
fn rename(txn: &mut Txn<'_>, place: &Place, new: &NewName) -> Result<(), Error> {
    let address = account(&new.address)?;
    let Some(Message(row)) = txn.get::<Collections>(&address)? else { return Ok(()) };
    if row.named.as_ref().is_some_and(|named| named > place) {
        return Ok(());
    }
    let name = Text(new.name.clone());
    let origin_name = txn.get::<OriginNames>(&name)?.unwrap_or_default();
    txn.delete::<CollectionsByName>(&(Text(row.name.clone()), address));
    txn.put::<CollectionsByName>(&(name, address), &());
    let named = Some(place.clone());
    let (name, name_too_long) = (new.name.clone(), new.name_too_long);
    txn.put::<Collections>(&address, &Message(Collection { name, name_too_long, origin_name, named, ..row }));
    note_names_changed(txn, address)
}

/// Adds a name on the chain of origin, also to the collections of this name.
fn add_origin(txn: &mut Txn<'_>, origin: &Origin) -> Result<(), Error> {
    let name = Text(origin.local.clone());
    if txn.get::<OriginNames>(&name)?.is_some() {
        return Ok(());
    }
    txn.put::<OriginNames>(&name, &origin.origin);
    let mut same_name = store::table::rows::<CollectionsByName>(txn, &name, Order::Asc, SAME_NAME)?;
    while let Some((last, ())) = same_name.last().cloned() {
        for ((_, address), ()) in same_name {
            if let Some(Message(mut collection)) = txn.get::<Collections>(&address)? {
                collection.origin_name.clone_from(&origin.origin);
                txn.put::<Collections>(&address, &Message(collection));
                note_names_changed(txn, address)?;
            }
        }
        same_name = store::table::rows_after::<CollectionsByName>(txn, &name, &last, Order::Asc, SAME_NAME)?;
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
    let same =
        matches!((&before, &after), (Some(a), Some(b)) if (&a.owner, a.height) == (&b.owner, b.height));
    if let Some(row) = before.filter(|_| !same) {
        indexes::remove(txn, key, &row)?;
    }
    if let Some(row) = after {
        txn.insert::<Tokens>(&key.0, &key.1, &Message(row.clone()))?;
        if same { Ok(()) } else { indexes::insert(txn, key, &row) }
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
