//! Check of the NFT tables against a fresh fold of their log.
//!
//! The check cannot determine whether the log or the table is wrong. It therefore reports every height that a
//! differing row or its log entries contain, to be compared with the chain.

use std::collections::BTreeSet;

use store::key::Text;
use store::{
    Bounds, COUNT, Counts, Durability, Key as _, List as _, Message, Order, Snapshot, Store, Table as _,
    TableSpec, Txn, Value as _,
};

use super::{Ground, Remedy, Report, same};
use crate::Error;
use crate::keys::Owner;
use crate::nft::fold::{self, At};
use crate::nft::rebuild::FOLDED;
use crate::nft::{
    Change, Collection, Collections, Entry, Holdings, NftLog, OriginNames, Token, TokenTxs, Tokens,
};

/// Bytes of one commit to the scratch store.
const BATCH_BYTES: usize = 8 << 20;

/// What differs, as the log names it.
#[derive(Default)]
struct Subjects {
    collections: BTreeSet<Vec<u8>>,
    tokens: BTreeSet<(Vec<u8>, String)>,
    origins: bool,
}

pub(super) fn check(ground: &Ground<'_>, scratch: &dyn Store, report: &mut Report) -> Result<(), Error> {
    fold(ground, scratch, report)?;
    let made = scratch.snapshot()?;
    let mut subjects = Subjects::default();
    for spec in FOLDED {
        let differs = |key: &[u8], stored: Option<&[u8]>, expected: Option<&[u8]>, report: &mut Report| {
            let words = expected.map_or_else(|| "nothing".to_owned(), super::report::bytes);
            report.row("NFT row", (spec, key, stored), words, Remedy::Nfts);
            for value in [stored, expected].into_iter().flatten() {
                subjects.note(ground, spec, key, value, report);
            }
        };
        compare(ground.snapshot, &*made, spec, &[], report, differs)?;
    }
    let prefix = [TokenTxs::SPEC.tag];
    compare(ground.snapshot, &*made, COUNT, &prefix, report, |key, stored, expected, report| {
        let words = expected.map_or_else(|| "nothing".to_owned(), super::report::bytes);
        report.row("NFT row", (COUNT, key, stored), words, Remedy::Nfts);
        if let Some((collection, Text(id))) = key.get(1..).and_then(<(Owner, Text)>::from_bytes) {
            subjects.tokens.insert((collection.0.as_bytes().to_vec(), id));
        }
    })?;
    subjects.suspect_heights(ground, report)
}

/// Folds the log into `scratch`; what does not fold is a finding.
fn fold(ground: &Ground<'_>, scratch: &dyn Store, report: &mut Report) -> Result<(), Error> {
    let (mut start, mut n) = (Vec::new(), 0);
    loop {
        let made = scratch.snapshot()?;
        let mut counts = Counts::new(1 << 16);
        let mut txn = Txn::new(&*made, &mut counts);
        let mut done = false;
        while txn.bytes() < BATCH_BYTES {
            let bounds = Bounds { start: &start, end: None };
            let Some((key, value)) = ground.snapshot.scan(NftLog::SPEC, bounds, Order::Asc, 1)?.pop() else {
                done = true;
                break;
            };
            start = store::key::successor(&key);
            n += 1;
            // Rows that do not decode are found elsewhere.
            let Ok((height, Message(log))) = store::table::decode_row::<NftLog>(&key, &value) else {
                continue;
            };
            let row = (NftLog::SPEC, key.as_slice(), Some(value.as_slice()));
            if height > ground.blocks.height || height < ground.identity.start_height {
                let remedy = Remedy::Index(ground.blocks.height.max(ground.identity.start_height));
                report.row("NFT log", row, "no log of a block that is not indexed", remedy);
            }
            for entry in &log.entries {
                match fold::apply(&mut txn, At { height, time: log.time }, entry) {
                    Ok(()) => {}
                    Err(Error::Record { reason, .. }) => {
                        report.row("NFT log", row, reason, Remedy::Index(before(ground, entry, height)?));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let (batch, _pending) = txn.finish();
        drop(made);
        scratch.commit(batch, Durability::Buffered)?;
        if done {
            report.checked("blocks with NFTs", n);
            return Ok(());
        }
    }
}

/// A height from which on the log may lack what `entry` rests on: where its collection was made, as far as it is known.
fn before(ground: &Ground<'_>, entry: &Entry, height: u64) -> Result<u64, Error> {
    let start = ground.identity.start_height;
    let Some(address) = collection_of(entry) else { return Ok(start) };
    let Some(account) = chain::Account::from_bytes(address) else { return Ok(height.max(start)) };
    let stored = ground.snapshot.get(Collections::SPEC, &Owner(account).to_bytes())?;
    let row = stored.as_deref().and_then(Message::<Collection>::decode);
    Ok(row.map_or(start, |Message(row)| row.height.clamp(start, height.max(start))))
}

fn collection_of(entry: &Entry) -> Option<&[u8]> {
    Some(match entry.change.as_ref()? {
        Change::Collection(new) => &new.address,
        Change::Mint(mint) => &mint.token.collection,
        Change::Transfer(transfer) => &transfer.token.collection,
        Change::Burn(token) => &token.collection,
        Change::Uri(uri) => &uri.token.collection,
        Change::Origin(_) => return None,
    })
}

fn token_of(entry: &Entry) -> Option<(Vec<u8>, String)> {
    let token = match entry.change.as_ref()? {
        Change::Mint(mint) => &mint.token,
        Change::Transfer(transfer) => &transfer.token,
        Change::Burn(token) => token,
        Change::Uri(uri) => &uri.token,
        Change::Collection(_) | Change::Origin(_) => return None,
    };
    Some((token.collection.clone(), token.token_id.clone()))
}

impl Subjects {
    /// Notes what a row is about, and the heights that it names.
    fn note(&mut self, ground: &Ground<'_>, spec: &TableSpec, key: &[u8], value: &[u8], report: &mut Report) {
        let mut suspect = |height: u64| report.suspect(height);
        let bytes = |owner: Owner| owner.0.as_bytes().to_vec();
        if same(spec, Collections::SPEC) {
            if let Some(address) = Owner::from_bytes(key) {
                self.collections.insert(bytes(address));
            }
            if let Some(Message(row)) = Message::<Collection>::decode(value) {
                suspect(row.height);
            }
        } else if same(spec, Tokens::SPEC) {
            if let Some(Message(row)) = Message::<Token>::decode(value) {
                suspect(row.height);
            }
            if let Some((collection, Text(id))) = <(Owner, Text)>::from_bytes(key) {
                self.tokens.insert((bytes(collection), id));
            }
        } else if same(spec, TokenTxs::SPEC) {
            if let Some(seq) = u64::decode(value) {
                suspect(ground.heights.of_tx(seq));
            }
            if let Some((collection, Text(id), _)) = <(Owner, Text, u64)>::from_bytes(key) {
                self.tokens.insert((bytes(collection), id));
            }
        } else if same(spec, OriginNames::SPEC) {
            self.origins = true;
        } else if same(spec, Holdings::SPEC)
            && let Some(((_, collection), Text(id))) = <((Owner, Owner), Text)>::from_bytes(key)
        {
            self.tokens.insert((bytes(collection), id));
        }
    }

    /// Names the heights whose log is about what differs.
    fn suspect_heights(&self, ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
        if self.collections.is_empty() && self.tokens.is_empty() && !self.origins {
            return Ok(());
        }
        store::for_each_row(ground.snapshot, NftLog::SPEC, Bounds::all(), |key, value| {
            let Ok((height, Message(log))) = store::table::decode_row::<NftLog>(key, value) else {
                return Ok(());
            };
            let concerned = log.entries.iter().any(|entry| match &entry.change {
                Some(Change::Origin(_)) => self.origins || !self.collections.is_empty(),
                Some(Change::Collection(new)) => self.collections.contains(&new.address),
                _ => token_of(entry).is_some_and(|token| self.tokens.contains(&token)),
            });
            if concerned {
                report.suspect(height);
            }
            Ok(())
        })
    }
}

/// Gives each row under `prefix` that is not the same in both to `differs`: key, the stored and the expected value.
fn compare(
    stored: &dyn Snapshot,
    expected: &dyn Snapshot,
    spec: &'static TableSpec,
    prefix: &[u8],
    report: &mut Report,
    mut differs: impl FnMut(&[u8], Option<&[u8]>, Option<&[u8]>, &mut Report),
) -> Result<(), Error> {
    super::diff::compare((stored, expected), spec, prefix, |key, stored, expected| {
        if stored != expected {
            differs(key, stored, expected, report);
        }
        Ok(())
    })
}
