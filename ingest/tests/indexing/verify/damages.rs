//! Kinds of damage, each to one row or to some related rows.

use anyhow::{Context as _, Result};
use schema::block::{Block, Blocks};
use schema::meta::{self, BlockLane};
use schema::msg_set::{MsgSet, MsgSets};
use schema::nft::{
    Change, Collection, Collections, CollectionsByHeight, Log, NftLog, OriginNames, OwnedTokens, Token,
    TokenTxs, Tokens,
};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use store::key::Text;
use store::{
    COUNT, Counts, Durability, Key as _, List as _, RANK, Store, Table as _, TableSpec, Txn, Value as _,
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
        let (key, _) = entry(store, AccountTxs::SPEC, |ordinal, len| ordinal > 0 && ordinal + 1 < len)?;
        delete(store, AccountTxs::SPEC, key)
    }),
    ("last entry lost", |store| {
        let (key, _) = entry(store, AccountSetTxs::SPEC, |ordinal, len| ordinal > 0 && ordinal + 1 == len)?;
        delete(store, AccountSetTxs::SPEC, key)
    }),
    ("whole list lost but its length", |store| {
        let (key, _) = entry(store, AccountTxs::SPEC, |_, len| len == 1)?;
        delete(store, AccountTxs::SPEC, key)
    }),
    ("entry doubled", |store| {
        let (key, value) = entry(store, AccountTxs::SPEC, |ordinal, len| ordinal > 0 && ordinal + 1 == len)?;
        put(store, AccountTxs::SPEC, next(&key), value)
    }),
    ("entry doubled with its length", |store| {
        let (key, value) = entry(store, SetTxs::SPEC, |ordinal, len| ordinal > 0 && ordinal + 1 == len)?;
        put(store, SetTxs::SPEC, next(&key), value)?;
        set_count(store, SetTxs::SPEC, &key, |len| Some(len + 1))
    }),
    ("entry of another sequence", |store| {
        let all = rows(store, AccountTxs::SPEC)?;
        // An entry whose next sequence is not in this list.
        let free = all.windows(2).find(|pair| {
            let (a, b) = (u64::decode(&pair[0].1), u64::decode(&pair[1].1));
            pair[0].0[..pair[0].0.len() - 8] == pair[1].0[..pair[1].0.len() - 8] && a.map(|a| a + 1) < b
        });
        let (key, value) = free.context("a list with room")?[0].clone();
        put(store, AccountTxs::SPEC, key, encoded(&(u64::decode(&value).context("a number")? + 1)))
    }),
    ("account that is not involved", |store| {
        let (key, _) = entry(store, AccountTxs::SPEC, |_, len| len == 1)?;
        let mut stranger = key;
        stranger[5] ^= 0xff;
        put(store, AccountTxs::SPEC, stranger.clone(), encoded(&7_u64))?;
        set_count(store, AccountTxs::SPEC, &stranger, |_| Some(1))
    }),
    ("length off by one", |store| count(store, AccountTxs::SPEC, |len| Some(len + 1))),
    ("length too small", |store| count(store, SetTxs::SPEC, |len| Some(len - 1))),
    ("length missing", |store| count(store, AccountTxs::SPEC, |_| None)),
    ("length that does not decode", |store| {
        let (key, _) = entry(store, AccountSetTxs::SPEC, |_, len| len > 1)?;
        put(store, COUNT, count_key(AccountSetTxs::SPEC, &key), vec![0x80])
    }),
    ("stray length", |store| {
        let (mut key, _) = entry(store, AccountTxs::SPEC, |_, _| true)?;
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
            token.uri.push('x');
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
        let (key, _) = entry(store, TokenTxs::SPEC, |ordinal, len| ordinal + 1 == len)?;
        delete(store, TokenTxs::SPEC, key)
    }),
    ("row of the log lost", |store| lose(store, NftLog::SPEC)),
    ("first row of the log lost", |store| {
        delete(store, NftLog::SPEC, rows(store, NftLog::SPEC)?.swap_remove(0).0)
    }),
    ("entry of the log lost", |store| {
        change::<NftLog, Log>(store, |log| log.entries.len() > 1 && log.entries.pop().is_some())
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
    change::<NftLog, Log>(store, |log| {
        log.entries.iter_mut().filter_map(|entry| entry.change.as_mut()).any(&mut alter)
    })
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

/// The first entry of a list for whose ordinal and length `wanted` is true.
pub(crate) fn entry(
    store: &dyn Store,
    spec: &'static TableSpec,
    wanted: impl Fn(u64, u64) -> bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot()?;
    for (key, value) in rows(store, spec)? {
        let (_, ordinal) = key.split_last_chunk::<8>().context("an ordinal")?;
        let len = snapshot.get(COUNT, &count_key(spec, &key))?.and_then(|len| u64::decode(&len));
        if wanted(u64::from_be_bytes(*ordinal), len.context("a length")?) {
            return Ok((key, value));
        }
    }
    anyhow::bail!("no such entry in {}", spec.name)
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
    let (key, _) = entry(store, spec, |_, len| len > 2)?;
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
