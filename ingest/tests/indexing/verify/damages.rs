//! Kinds of damage, each to one row or to some related rows.

use anyhow::{Context as _, Result};
use schema::block::{Block, Blocks};
use schema::meta::{self, BlockLane};
use schema::msg_set::{MsgSet, MsgSets};
use schema::nft::{
    Change, Collection, Collections, CollectionsByHeight, Entry, NftLog, OriginNames, OwnedTokens, Token,
    TokenTxs, Tokens,
};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use store::key::Text;
use store::{
    COUNT, Counts, Durability, Key as _, List as _, RANK, Store, Table as _, TableSpec, Txn, Value as _, list,
};

use super::database::{change, delete, encoded, lose, put, rows, some_row};

/// A kind of damage, by name.
pub(crate) type Damage = (&'static str, fn(&dyn Store) -> Result<()>);

pub(crate) const OF_BLOCKS: &[Damage] = &[
    ("block missing", |store| lose(store, Blocks::SPEC)),
    ("block with a wrong first transaction", |store| {
        change::<Blocks, Block>(store, |block| {
            block.first_tx += 1;
            block.txs > 0
        })
    }),
    ("block with another time", |store| in_block(store, r#""timestamp":"2"#, r#""timestamp":"3"#)),
    ("block with another proposer", |store| in_block(store, "valoper1", "valoper9")),
    ("block that does not decode", |store| {
        put(store, Blocks::SPEC, some_row(store, Blocks::SPEC)?.0, vec![0xff])
    }),
    ("lane counts too many transactions", |store| {
        let mut lane: BlockLane = meta::read(&*store.snapshot()?)?.context("a lane")?;
        lane.txs += 1;
        put(store, meta::Meta::SPEC, meta::key::<BlockLane>().to_bytes(), encoded(&store::Message(lane)))
    }),
];

pub(crate) const OF_RECORDS: &[Damage] = &[
    ("record missing", |store| lose(store, Txs::SPEC)),
    ("byte of a payload flipped", |store| flip(store, Txs::SPEC)),
    ("payload of the neighbour", |store| {
        let all = rows(store, Txs::SPEC)?;
        put(store, Txs::SPEC, all[10].0.clone(), all[11].1.clone())?;
        put(store, Txs::SPEC, all[11].0.clone(), all[10].1.clone())
    }),
    ("record of another transaction", |store| {
        let all = rows(store, Txs::SPEC)?;
        put(store, Txs::SPEC, all[10].0.clone(), all[12].1.clone())
    }),
    ("hash missing", |store| lose(store, TxByHash::SPEC)),
    ("hash with another place in the row", |store| {
        let (key, mut value) = some_row(store, TxByHash::SPEC)?;
        *value.last_mut().unwrap() ^= 1;
        put(store, TxByHash::SPEC, key, value)
    }),
    ("hash of another sequence", |store| {
        let (key, mut value) = some_row(store, TxByHash::SPEC)?;
        value[0] ^= 1;
        put(store, TxByHash::SPEC, key, value)
    }),
    ("message set with another name", |store| {
        change::<MsgSets, MsgSet>(store, |set| {
            set.names.first_mut().is_some_and(|name| {
                name.push('x');
                true
            })
        })
    }),
];

pub(crate) const OF_LISTS: &[Damage] = &[
    ("entry lost", |store| {
        lose_entry(store, AccountTxs::SPEC, |ordinal, len| ordinal > 0 && ordinal + 1 < len)
    }),
    ("last entry lost", |store| {
        lose_entry(store, AccountSetTxs::SPEC, |ordinal, len| ordinal > 0 && ordinal + 1 == len)
    }),
    ("whole list lost but its length", |store| lose_entry(store, AccountTxs::SPEC, |_, len| len == 1)),
    ("entry doubled", |store| double_last(store, AccountTxs::SPEC).map(drop)),
    ("entry doubled with its length", |store| {
        let key = double_last(store, SetTxs::SPEC)?;
        set_count(store, SetTxs::SPEC, &key, |len| Some(len + 1))
    }),
    ("entry of another sequence", |store| {
        for (key, value) in rows(store, AccountTxs::SPEC)? {
            let mut row = list::values(&value).context("a row of entries")?;
            // An entry whose next sequence is not in this list.
            if let Some(at) = row.windows(2).position(|pair| pair[0] + 1 < pair[1]) {
                row[at] += 1;
                return put_entries(store, AccountTxs::SPEC, key, &row);
            }
        }
        anyhow::bail!("no list with room")
    }),
    ("row of entries that does not decode", |store| flip_last(store, AccountTxs::SPEC)),
    ("row that begins elsewhere", |store| {
        let Place { key, row, .. } = entry(store, AccountTxs::SPEC, |_, len| len > 2)?;
        delete(store, AccountTxs::SPEC, key.clone())?;
        put_entries(store, AccountTxs::SPEC, next(&key), &row)
    }),
    ("account that is not involved", |store| {
        let mut stranger = entry(store, AccountTxs::SPEC, |_, len| len == 1)?.key;
        stranger[5] ^= 0xff;
        put(store, AccountTxs::SPEC, stranger.clone(), encoded(&7_u64))?;
        set_count(store, AccountTxs::SPEC, &stranger, |_| Some(1))
    }),
    ("length off by one", |store| count(store, AccountTxs::SPEC, |len| Some(len + 1))),
    ("length too small", |store| count(store, SetTxs::SPEC, |len| Some(len - 1))),
    ("length missing", |store| count(store, AccountTxs::SPEC, |_| None)),
    ("length that does not decode", |store| {
        let key = entry(store, AccountSetTxs::SPEC, |_, len| len > 1)?.key;
        put(store, COUNT, count_key(AccountSetTxs::SPEC, &key), vec![0x80])
    }),
    ("stray length", |store| {
        let mut key = entry(store, AccountTxs::SPEC, |_, _| true)?.key;
        key[3] ^= 0xff;
        set_count(store, AccountTxs::SPEC, &key, |_| Some(3))
    }),
];

pub(crate) const OF_NFTS: &[Damage] = &[
    ("token with another owner", |store| {
        change::<Tokens, Token>(store, |token| {
            token.owner[0] ^= 1;
            true
        })
    }),
    ("token with another URI", |store| {
        change::<Tokens, Token>(store, |token| {
            token.outcome ^= 1;
            true
        })
    }),
    ("collection with another name", |store| {
        change::<Collections, Collection>(store, |collection| {
            collection.name.push('x');
            true
        })
    }),
    ("origin that no answer gave", |store| {
        put(store, OriginNames::SPEC, Text::from("here").to_bytes(), b"there".to_vec())
    }),
    ("row of a ranked set lost", |store| lose(store, OwnedTokens::SPEC)),
    ("length of a ranked set wrong", |store| {
        let key = [&[CollectionsByHeight::SPEC.tag][..], &[0]].concat();
        put(store, RANK, key, vec![9, 0, 0, 0, 0])
    }),
    ("transaction of a token lost", |store| {
        let key = entry(store, TokenTxs::SPEC, |ordinal, len| ordinal + 1 == len)?.key;
        delete(store, TokenTxs::SPEC, key)
    }),
    ("row of the log lost", |store| lose(store, NftLog::SPEC)),
    ("first row of the log lost", |store| {
        delete(store, NftLog::SPEC, rows(store, NftLog::SPEC)?.swap_remove(0).0)
    }),
    ("URI of the log changed", |store| {
        in_log(store, |change| match change {
            Change::Mint(mint) => {
                mint.uri.push('x');
                true
            }
            _ => false,
        })
    }),
    ("entry of the log with another owner", |store| {
        in_log(store, |change| match change {
            Change::Mint(mint) => {
                mint.owner[0] ^= 1;
                true
            }
            _ => false,
        })
    }),
    ("log and tables with another owner", |store| {
        in_log(store, |change| match change {
            Change::Transfer(transfer) => {
                transfer.owner[0] ^= 1;
                true
            }
            _ => false,
        })?;
        Ok(schema::nft::rebuild::rebuild(store)?)
    }),
    ("log and tables with another name", |store| {
        in_log(store, |change| match change {
            Change::Collection(new) => {
                new.collection.name.push('x');
                true
            }
            _ => false,
        })?;
        Ok(schema::nft::rebuild::rebuild(store)?)
    }),
];

fn in_log(store: &dyn Store, mut alter: impl FnMut(&mut Change) -> bool) -> Result<()> {
    change::<NftLog, Entry>(store, |entry| entry.change.as_mut().is_some_and(&mut alter))
}

/// Replaces text in the record of a block.
fn in_block(store: &dyn Store, from: &str, to: &str) -> Result<()> {
    change::<Blocks, Block>(store, |block| {
        let text = String::from_utf8_lossy(&block.json).replace(from, to);
        let changed = text.as_bytes() != block.json && block.txs > 0;
        block.json = text.into_bytes();
        changed
    })
}

/// Flips a bit in the middle of a value.
pub(crate) fn flip(store: &dyn Store, spec: &'static TableSpec) -> Result<()> {
    let (key, mut value) = some_row(store, spec)?;
    let middle = value.len() / 2;
    value[middle] ^= 0x10;
    put(store, spec, key, value)
}

/// An entry of a list: the key of its row, the row's entries, and its index in these.
struct Place {
    key: Vec<u8>,
    row: Vec<u64>,
    at: usize,
}

/// The first entry of a list for whose ordinal and length `wanted` is true.
fn entry(store: &dyn Store, spec: &'static TableSpec, wanted: impl Fn(u64, u64) -> bool) -> Result<Place> {
    let snapshot = store.snapshot()?;
    for (key, value) in rows(store, spec)? {
        let (_, first) = key.split_last_chunk::<8>().context("an ordinal")?;
        let first = u64::from_be_bytes(*first);
        let len = snapshot.get(COUNT, &count_key(spec, &key))?.and_then(|len| u64::decode(&len));
        let (len, row) = (len.context("a length")?, list::values(&value).context("a row of entries")?);
        if let Some(at) = (first..).take(row.len()).position(|ordinal| wanted(ordinal, len)) {
            return Ok(Place { key, row, at });
        }
    }
    anyhow::bail!("no such entry in {}", spec.name)
}

fn put_entries(store: &dyn Store, spec: &'static TableSpec, key: Vec<u8>, row: &[u64]) -> Result<()> {
    let mut value = Vec::new();
    for entry in row {
        entry.encode(&mut value);
    }
    if row.is_empty() { delete(store, spec, key) } else { put(store, spec, key, value) }
}

/// Removes the first entry of a list for whose ordinal and length `wanted` is true; later ones of its row move up.
pub(crate) fn lose_entry(
    store: &dyn Store,
    spec: &'static TableSpec,
    wanted: impl Fn(u64, u64) -> bool,
) -> Result<()> {
    let Place { key, mut row, at } = entry(store, spec, wanted)?;
    row.remove(at);
    put_entries(store, spec, key, &row)
}

/// Repeats the last entry of a list, and returns the key of its row.
fn double_last(store: &dyn Store, spec: &'static TableSpec) -> Result<Vec<u8>> {
    let in_full_row = |len: u64| len.is_multiple_of(list::ROW);
    let last = entry(store, spec, |ordinal, len| ordinal > 0 && ordinal + 1 == len && !in_full_row(len))?;
    let Place { key, mut row, at } = last;
    row.push(row[at]);
    put_entries(store, spec, key.clone(), &row)?;
    Ok(key)
}

/// Sets the bit of a row's last byte that says that its last number continues.
fn flip_last(store: &dyn Store, spec: &'static TableSpec) -> Result<()> {
    let (key, mut value) = some_row(store, spec)?;
    *value.last_mut().context("a byte")? |= 0x80;
    put(store, spec, key, value)
}

fn count_key(spec: &TableSpec, entry_key: &[u8]) -> Vec<u8> {
    [&[spec.tag][..], &entry_key[..entry_key.len() - 8]].concat()
}

fn set_count(
    store: &dyn Store,
    spec: &TableSpec,
    entry_key: &[u8],
    change: impl Fn(u64) -> Option<u64>,
) -> Result<()> {
    let key = count_key(spec, entry_key);
    let len = store.snapshot()?.get(COUNT, &key)?.and_then(|len| u64::decode(&len)).unwrap_or(0);
    match change(len) {
        Some(len) => put(store, COUNT, key, encoded(&len)),
        None => delete(store, COUNT, key),
    }
}

/// Changes the length of a list that has some entries.
fn count(store: &dyn Store, spec: &'static TableSpec, change: impl Fn(u64) -> Option<u64>) -> Result<()> {
    let key = entry(store, spec, |_, len| len > 2)?.key;
    set_count(store, spec, &key, change)
}

/// The key of the next entry.
fn next(key: &[u8]) -> Vec<u8> {
    let mut key = key.to_vec();
    if let Some(last) = key.last_mut() {
        *last += 1;
    }
    key
}

/// Runs `change` in one transaction.
pub(crate) fn write(store: &dyn Store, work: impl FnOnce(&mut Txn<'_>) -> Result<()>) -> Result<()> {
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    work(&mut txn)?;
    let (batch, _pending) = txn.finish();
    Ok(store.commit(batch, Durability::Buffered)?)
}
