//! The fold of the NFT event log into tables, one entry at a time.
//!
//! # Invariants
//!
//! The tables depend only on the entries and on their order within each collection. Collections are independent of each
//! other except in [`super::OriginNames`], where the first name wins.

use store::key::Text;
use store::{Message, Order, Ranked, Txn};

use super::{
    Change, Collection, Collections, CollectionsByHeight, CollectionsByName, Entry, Holdings,
    HoldingsByHeight, Log, Mint, NameChanges, NewCollection, NewUri, NftLog, ObjectTokens, Origin,
    OriginNames, OwnedCollections, OwnedTokens, OwnedTokensByHeight, Token, TokenName, TokenObjects,
    TokenTxs, Tokens, TokensByHeight, Transfer,
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
        Some(Change::Collection(new)) => add_collection(txn, new),
        Some(Change::Mint(mint)) => {
            add_tx(txn, &mint.token, entry.tx)?;
            add_token(txn, at, mint)
        }
        Some(Change::Transfer(transfer)) => {
            add_tx(txn, &transfer.token, entry.tx)?;
            transfer_token(txn, at, transfer)
        }
        Some(Change::Burn(token)) => {
            add_tx(txn, token, entry.tx)?;
            burn_token(txn, token)
        }
        Some(Change::Uri(uri)) => set_uri(txn, at, uri),
        Some(Change::Origin(origin)) => add_origin(txn, origin),
        // Only corruption leads here: a program with other entries would have another format version.
        None => Err(damaged("nft_log", &at.height.to_string(), "an entry says nothing")),
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
        put_token(txn, &key, &row)?;
    }
    Ok(())
}

fn add_collection(txn: &mut Txn<'_>, new: &NewCollection) -> Result<(), Error> {
    let address = owner(&new.address)?;
    if txn.get::<Collections>(&address)?.is_some() {
        return Ok(());
    }
    let name = Text(new.collection.name.clone());
    let origin_name = txn.get::<OriginNames>(&name)?.unwrap_or_default();
    let row = Collection { origin_name, ..new.collection.clone() };
    txn.put::<CollectionsByName>(&(name, address), &());
    txn.insert::<CollectionsByHeight>(&(), &(row.height, address), &())?;
    txn.put::<Collections>(&address, &Message(row));
    note_names_changed(txn, address)
}

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
                origin.origin.clone_into(&mut collection.origin_name);
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

fn add_token(txn: &mut Txn<'_>, at: At, mint: &Mint) -> Result<(), Error> {
    let key = token_key(&mint.token)?;
    if let Some(Message(old)) = txn.get::<Tokens>(&key)? {
        // Contracts may mint a token again without a burn.
        remove_token(txn, &key, &old)?;
    }
    if !mint.object.is_empty() {
        txn.put::<TokenObjects>(&key, &mint.object);
        txn.put::<ObjectTokens>(&owner(&mint.object)?, &Message(mint.token.clone()));
    }
    let row = Token {
        owner: mint.owner.clone(),
        uri: mint.uri.clone(),
        object: mint.object.clone(),
        height: at.height,
        time: at.time,
        question: mint.question,
    };
    insert_token(txn, &key, &row)
}

fn transfer_token(txn: &mut Txn<'_>, at: At, transfer: &Transfer) -> Result<(), Error> {
    let key = token_key(&transfer.token)?;
    let Some(Message(mut row)) = txn.get::<Tokens>(&key)? else { return Ok(()) };
    remove_token(txn, &key, &row)?;
    transfer.owner.clone_into(&mut row.owner);
    (row.height, row.time) = (at.height, at.time);
    insert_token(txn, &key, &row)
}

fn burn_token(txn: &mut Txn<'_>, token: &TokenName) -> Result<(), Error> {
    let key = token_key(token)?;
    let Some(Message(row)) = txn.get::<Tokens>(&key)? else { return Ok(()) };
    remove_token(txn, &key, &row)
}

fn set_uri(txn: &mut Txn<'_>, at: At, new: &NewUri) -> Result<(), Error> {
    let key = token_key(&new.token)?;
    let Some(Message(mut row)) = txn.get::<Tokens>(&key)? else { return Ok(()) };
    remove_token(txn, &key, &row)?;
    new.uri.clone_into(&mut row.uri);
    row.question = 0;
    (row.height, row.time) = (at.height, at.time);
    insert_token(txn, &key, &row)
}

/// Inserts a token into its table and every index.
fn insert_token(txn: &mut Txn<'_>, key: &(AccountKey, Text), row: &Token) -> Result<(), Error> {
    let ((collection, id), height) = (key, row.height);
    let holder = owner(&row.owner)?;
    put_token(txn, key, row)?;
    txn.insert::<TokensByHeight>(collection, &(height, id.clone()), &())?;
    txn.insert::<OwnedTokens>(&holder, &(id.clone(), height, *collection), &())?;
    txn.insert::<OwnedTokensByHeight>(&holder, &(height, id.clone(), *collection), &())?;
    let pair = (holder, *collection);
    txn.insert::<Holdings>(&pair, id, &())?;
    txn.insert::<HoldingsByHeight>(&pair, &(height, id.clone()), &())?;
    if len::<Holdings>(txn, &pair)? == 1 {
        let item = (collection_height(txn, collection)?, *collection);
        txn.insert::<OwnedCollections>(&holder, &item, &())?;
    }
    Ok(())
}

/// Removes a token from its table and every index.
fn remove_token(txn: &mut Txn<'_>, key: &(AccountKey, Text), row: &Token) -> Result<(), Error> {
    let ((collection, id), height) = (key, row.height);
    let holder = owner(&row.owner)?;
    txn.remove::<Tokens>(collection, id)?;
    txn.remove::<TokensByHeight>(collection, &(height, id.clone()))?;
    txn.remove::<OwnedTokens>(&holder, &(id.clone(), height, *collection))?;
    txn.remove::<OwnedTokensByHeight>(&holder, &(height, id.clone(), *collection))?;
    let pair = (holder, *collection);
    txn.remove::<Holdings>(&pair, id)?;
    txn.remove::<HoldingsByHeight>(&pair, &(height, id.clone()))?;
    if len::<Holdings>(txn, &pair)? == 0 {
        let item = (collection_height(txn, collection)?, *collection);
        txn.remove::<OwnedCollections>(&holder, &item)?;
    }
    Ok(())
}

fn put_token(txn: &mut Txn<'_>, (collection, id): &(AccountKey, Text), row: &Token) -> Result<(), Error> {
    txn.insert::<Tokens>(collection, id, &Message(row.clone()))?;
    Ok(())
}

fn len<R: Ranked>(txn: &Txn<'_>, owner: &R::Owner) -> Result<u64, Error> {
    Ok(store::ranked::len::<R>(txn, owner)?)
}

fn collection_height(txn: &Txn<'_>, collection: &AccountKey) -> Result<u64, Error> {
    let Some(Message(row)) = txn.get::<Collections>(collection)? else {
        return Err(damaged("collection", &collection.0.to_hex(), "a token's collection is missing"));
    };
    Ok(row.height)
}

/// Appends a transaction to a token's list, at most once.
fn add_tx(txn: &mut Txn<'_>, token: &TokenName, tx: u64) -> Result<(), Error> {
    if tx == 0 {
        return Ok(());
    }
    let key = token_key(token)?;
    if txn.last::<TokenTxs>(&key)? != Some(tx) {
        txn.push::<TokenTxs>(&key, tx)?;
    }
    Ok(())
}

fn token_key(token: &TokenName) -> Result<(AccountKey, Text), Error> {
    Ok((owner(&token.collection)?, Text(token.token_id.clone())))
}

fn owner(bytes: &[u8]) -> Result<AccountKey, Error> {
    let account = chain::Account::from_bytes(bytes);
    account.map(AccountKey).ok_or_else(|| damaged("nft_log", "", "an address has neither 20 nor 32 bytes"))
}

fn damaged(table: &'static str, key: &str, reason: &str) -> Error {
    Error::Record { table, key: key.to_owned(), reason: reason.to_owned() }
}
