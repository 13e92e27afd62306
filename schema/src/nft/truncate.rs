//! Truncation of the NFT log: the tokens and collections of the removed events become what the rest of the log says.
//!
//! Reads the rest of the log, but writes only the rows of these tokens and collections.
//!
//! # Invariants
//!
//! The log itself is not written, so an interrupted run is repeated from the start.

use std::collections::{BTreeMap, BTreeSet};

use store::key::Text;
use store::{Bounds, Counts, Durability, Key as _, List as _, Message, Snapshot, Store, Table, Txn};

use super::fold;
use super::log::{account, token_key};
use super::{
    Change, Entry, NftLog, ObjectTokens, OriginNames, Place, Token, TokenName, TokenObjects, TokenTxs, Tokens,
};
use crate::Error;
use crate::keys::AccountKey;

/// Removed events whose tokens are held in memory: some hundred bytes each. With more of them a rebuild is not slower.
const MAX_EVENTS: usize = 1 << 17;

/// Bytes of a commit.
const BATCH_BYTES: usize = 1 << 20;

/// The outcome of a truncation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truncated {
    /// No event is removed.
    Unchanged,
    /// The tables are those of the rest of the log.
    Restored,
    /// There are too many events, or the tables are damaged: they must be rebuilt.
    NotDone,
}

/// Sets all tables of NFTs to those of the log up to height `to`, whose last transaction is `txs`.
pub(crate) fn truncate(store: &dyn Store, to: u64, txs: u64) -> Result<Truncated, Error> {
    let restored = Touched::read(&*store.snapshot()?, to).and_then(|touched| match touched {
        Some(touched) if touched.events == 0 => Ok(Truncated::Unchanged),
        Some(touched) => touched.restore(store, txs).map(|()| Truncated::Restored),
        None => Ok(Truncated::NotDone),
    });
    match restored {
        Err(Error::Record { .. } | Error::Store(store::Error::Corrupt { .. })) => Ok(Truncated::NotDone),
        outcome => outcome,
    }
}

/// A token as the rest of the log leaves it.
#[derive(Default)]
struct Left {
    row: Option<Token>,
    /// Its last object.
    object: Option<Vec<u8>>,
}

/// The subjects of the removed events, and what the rest of the log says of them.
#[derive(Default)]
struct Touched {
    events: usize,
    tokens: BTreeMap<(AccountKey, Text), Left>,
    /// The last token of each object.
    objects: BTreeMap<AccountKey, Option<TokenName>>,
    /// Collections and names on the chain of origin that only removed events mention.
    collections: BTreeSet<AccountKey>,
    origins: BTreeSet<Text>,
}

impl Touched {
    /// `None` if there are too many events.
    fn read(snapshot: &dyn Snapshot, to: u64) -> Result<Option<Self>, Error> {
        let (mut touched, first) = (Self::default(), to.saturating_add(1).to_bytes());
        let removed = Bounds { start: &first, end: None };
        store::for_each_row(snapshot, NftLog::SPEC, removed, |key, value| {
            let (_, Message(entry)) = store::table::decode_row::<NftLog>(key, value)?;
            touched.events += 1;
            if touched.events <= MAX_EVENTS { touched.add(&entry) } else { Ok(()) }
        })?;
        if touched.events > MAX_EVENTS {
            return Ok(None);
        }
        if touched.events > 0 {
            let rest = Bounds { start: &[], end: Some(&first) };
            store::for_each_row(snapshot, NftLog::SPEC, rest, |key, value| {
                let (place, Message(entry)) = store::table::decode_row::<NftLog>(key, value)?;
                touched.replay(&place, &entry)
            })?;
        }
        Ok(Some(touched))
    }

    /// Adds the subjects of a removed event.
    fn add(&mut self, entry: &Entry) -> Result<(), Error> {
        let Some(change) = &entry.change else { return Ok(()) };
        match change {
            Change::Collection(new) => drop(self.collections.insert(account(&new.address)?)),
            Change::Origin(origin) => drop(self.origins.insert(Text(origin.local.clone()))),
            _ => {}
        }
        if let Some(token) = change.token() {
            self.tokens.entry(token_key(token)?).or_default();
        }
        if let Some(object) = change.object() {
            self.objects.insert(account(object)?, None);
        }
        Ok(())
    }

    /// Applies an event of the rest of the log.
    fn replay(&mut self, place: &Place, entry: &Entry) -> Result<(), Error> {
        let Some(change) = &entry.change else { return Ok(()) };
        match change {
            Change::Collection(new) => drop(self.collections.remove(&account(&new.address)?)),
            Change::Origin(origin) => drop(self.origins.remove(&Text(origin.local.clone()))),
            _ => {}
        }
        let Some(token) = change.token() else { return Ok(()) };
        let object = change.object();
        if let Some(left) = self.tokens.get_mut(&token_key(token)?) {
            left.row = fold::token_after(left.row.take(), (place, entry.time), change);
            left.object = object.map(<[u8]>::to_vec).or(left.object.take());
        }
        if let Some(object) = object
            && let Some(last) = self.objects.get_mut(&account(object)?)
        {
            *last = Some(token.clone());
        }
        Ok(())
    }

    /// Writes the rows; transactions after `txs` are removed from the lists of tokens.
    fn restore(self, store: &dyn Store, txs: u64) -> Result<(), Error> {
        let owners: Vec<_> = self.tokens.keys().map(store::Key::to_bytes).collect();
        store::list::truncate_owners(store, TokenTxs::SPEC, &owners, txs.saturating_add(1))?;
        let mut counts = Counts::new(1);
        // Tokens before their collections.
        each(store, &mut counts, self.tokens, |txn, (key, left)| {
            let before = txn.get::<Tokens>(&key)?.map(|Message(row)| row);
            if before != left.row {
                fold::replace_token(txn, &key, before, left.row)?;
            }
            put_or_delete::<TokenObjects>(txn, &key, left.object)
        })?;
        each(store, &mut counts, self.objects, |txn, (object, token)| {
            put_or_delete::<ObjectTokens>(txn, &object, token.map(Message))
        })?;
        each(store, &mut counts, self.collections, |txn, address| fold::remove_collection(txn, &address))?;
        each(store, &mut counts, self.origins, |txn, name| match txn.get::<OriginNames>(&name)? {
            Some(_) => fold::set_origin(txn, &name, None),
            None => Ok(()),
        })
    }
}

/// Sets a row or deletes it, if it differs.
fn put_or_delete<T: Table>(txn: &mut Txn<'_>, key: &T::Key, value: Option<T::Value>) -> Result<(), Error>
where
    T::Value: PartialEq,
{
    let stored = txn.get::<T>(key)?;
    match value {
        Some(value) if stored.as_ref() != Some(&value) => txn.put::<T>(key, &value),
        None if stored.is_some() => txn.delete::<T>(key),
        _ => {}
    }
    Ok(())
}

/// Applies `write` to each item, in commits of bounded size. Items that an interrupted run has written need none.
fn each<I>(
    store: &dyn Store,
    counts: &mut Counts,
    items: impl IntoIterator<Item = I>,
    mut write: impl FnMut(&mut Txn<'_>, I) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let snapshot = store.snapshot()?;
        let mut txn = Txn::new(&*snapshot, counts);
        while txn.bytes() < BATCH_BYTES
            && let Some(item) = items.next()
        {
            write(&mut txn, item)?;
        }
        let (batch, pending) = txn.finish();
        drop(snapshot);
        if !batch.is_empty() {
            store.commit(batch, Durability::Buffered)?;
        }
        counts.absorb(pending);
    }
    Ok(())
}
