//! A database with rows in every table, whose rows at a height are a function of the height.

use chain::{Account, U256};
use schema::block::{Block, Blocks};
use schema::digest::{self, TableDigest};
use schema::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHeight};
use schema::keys::{AccountKey, Role, hash_prefix};
use schema::meta::{self, BlockLane, CallLane};
use schema::msg_set::{MsgSet, MsgSetByNames, MsgSetByType, MsgSets};
use schema::nft::fold;
use schema::nft::{
    About, Change, Collection, Entry, Mint, NewCollection, NewName, NewUri, NonCollections, Origin, Outcome,
    PendingEvent, PendingEvents, Place, Question, Questions, TokenKey, TokenName, Transfer, renewal,
};
use schema::payload::{Chunk, Codec, Kind};
use schema::postings;
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use schema::undo::{Horizon, Lane, UndoLog};
use store::key::Text;
use store::{Batch, Bounds, Counts, Durability, MemStore, Message, Order, Store, Txn};

use crate::{database, hash};

/// Tokens minted in each height that mints.
const MINTED: u64 = 40;

fn account(n: u64) -> Account {
    let mut bytes = [0x11; 20];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    Account::from_bytes(&bytes).unwrap()
}

/// A chain of `last` heights with a transaction each, of which each lane commits some at once; those up to `mints` mint
/// tokens.
pub(crate) fn chain_of(last: u64, mints: u64, at_once: usize) -> MemStore {
    let store = database();
    let codec = Codec::load(&*store.snapshot().unwrap()).unwrap();
    let mut counts = Counts::new(10_000);
    let mut logs = [Lane::Blocks, Lane::InternalTxs].map(|lane| (lane, UndoLog::new(lane, Horizon::DEFAULT)));
    for heights in (1..=last).collect::<Vec<_>>().chunks(at_once) {
        for (lane, log) in &mut logs {
            let snapshot = store.snapshot().unwrap();
            let mut txn = Txn::new(&*snapshot, &mut counts);
            for height in heights {
                match lane {
                    Lane::Blocks => block(&mut txn, &codec, *height),
                    Lane::InternalTxs => calls(&mut txn, &codec, *height),
                    Lane::Index(_) => unreachable!("optional indexes are written by `schema::index`"),
                }
                if *lane == Lane::Blocks && *height <= mints {
                    mint(&mut txn, *height);
                }
            }
            let (batch, lengths) = log.finish(txn).unwrap();
            store.commit(batch, Durability::Buffered).unwrap();
            counts.absorb(lengths);
        }
    }
    store
}

/// A block with one transaction of each kind, by one account that is in all of them and one new account.
fn block(txn: &mut Txn<'_>, codec: &Codec, height: u64) {
    let (busy, fresh, hash) = (account(0), account(height), hash(height));
    let digits = hex::encode(hash);
    let json = format!(r#"{{"height":"{height}","hash":"{}"}}"#, digits.to_uppercase()).into_bytes();
    let row = Block { first_tx: height, txs: 1, first_evm_tx: height, evm_txs: 1, json, ..Block::default() };
    txn.put_unread::<Blocks>(&height, &Message(row));

    let mut encoder = codec.encoder(Kind::Tx).unwrap();
    let record = format!(r#"{{"txhash":"{}","height":"{height}"}}"#, digits.to_uppercase());
    txn.put_unread::<Txs>(&height, &encoder.encode(&Chunk::of(record.as_bytes()).take()));
    postings::add::<TxByHash>(txn, [(hash_prefix(&hash), height, 0)]);
    let set = u32::try_from(height / 64).unwrap();
    if height.is_multiple_of(64) {
        let name = format!("type{set}");
        txn.put_unread::<MsgSets>(&set, &Message(MsgSet { names: vec![name.clone()], first_tx: height }));
        txn.put_unread::<MsgSetByNames>(&Text(name.clone()), &u64::from(set));
        txn.put_unread::<MsgSetByType>(&(Text(name), set), &());
    }
    txn.push::<SetTxs>(&set, height).unwrap();
    for involved in [busy, fresh] {
        txn.push::<AccountTxs>(&(AccountKey(involved), Role::Involved), height).unwrap();
        txn.push::<AccountSetTxs>(&(AccountKey(involved), Role::Involved, set), height).unwrap();
    }

    let (from, to) = (hex::encode(busy.as_bytes()), hex::encode(fresh.as_bytes()));
    let record = format!(r#"{{"transactionHash":"0x{digits}","from":"0x{from}","to":"0x{to}","logs":[]}}"#);
    txn.put_unread::<EvmTxs>(&height, &encoder.encode(&Chunk::of(record.as_bytes()).take()));
    postings::add::<EvmTxByHash>(txn, [(hash_prefix(&hash), height, 0)]);
    for owner in [(busy, Role::Involved), (fresh, Role::Involved), (busy, Role::Signer)] {
        txn.push::<AccountEvmTxs>(&(AccountKey(owner.0), owner.1), height).unwrap();
    }

    note_refusals(txn, height);
    let lane =
        BlockLane { height, txs: height, evm_txs: height, hash: hash.to_vec(), ..BlockLane::default() };
    meta::put(txn, &lane);
}

/// Two call frames between the same accounts.
fn calls(txn: &mut Txn<'_>, codec: &Codec, height: u64) {
    let (busy, fresh) = (account(0), account(height));
    let [digits, from, to] = [&hash(height)[..], busy.as_bytes(), fresh.as_bytes()].map(hex::encode);
    let mut encoder = codec.encoder(Kind::Tx).unwrap();
    let (first, mut frames) = (2 * height - 1, Chunk::default());
    for (index, to) in [(0, &to), (1, &from)] {
        let frame = format!(
            r#"{{"height":{height},"hash":"0x{digits}","index":{index},"from":"0x{from}","to":"0x{to}"}}"#
        );
        frames.push(frame.as_bytes());
    }
    txn.put_unread::<Calls>(&first, &encoder.encode(&frames.take()));
    txn.put_unread::<CallsByHeight>(&height, &Message(BlockCalls { first, counts: vec![2] }));
    txn.push::<AccountCalls>(&AccountKey(busy), first).unwrap();
    txn.push::<AccountCalls>(&AccountKey(fresh), first).unwrap();
    txn.push::<AccountCalls>(&AccountKey(busy), first + 1).unwrap();
    meta::put(txn, &CallLane { height, calls: first + 1, ..CallLane::default() });
}

/// Rows of metadata queries, at some heights.
fn note_refusals(txn: &mut Txn<'_>, height: u64) {
    let (busy, fresh) = (account(0), account(height));
    if height.is_multiple_of(100) {
        txn.put::<NonCollections>(&(AccountKey(fresh), height), &());
        // Open since then, with a note for each later transfer.
        let question = Question {
            about: Some(About::Uri(TokenKey::default())),
            later: vec![Place::of_event(height, 8)],
            ..Question::default()
        };
        txn.put::<Questions>(&Place::of_event(height, 7), &Message(question));
        txn.put::<PendingEvents>(&(AccountKey(busy), height, 7), &Message(PendingEvent::default()));
    }
}

fn mint(txn: &mut Txn<'_>, height: u64) {
    let collection = account(height % 3).as_bytes().to_vec();
    let made = NewCollection {
        address: collection.clone(),
        collection: Collection { name: format!("name {}", height % 4), height, ..Collection::default() },
    };
    let tokens = (1..=MINTED).map(|n| {
        let token = TokenName { collection: collection.clone(), token_id: format!("{height}-{n}") };
        let owner = account(n % 7).as_bytes().to_vec();
        Change::Mint(Mint { token, owner, uri: format!("ipfs://{height}/{n}"), ..Mint::default() })
    });
    let mut changes: Vec<_> = [Change::Collection(made)].into_iter().chain(tokens).collect();
    if height > 3 {
        changes.extend(changes_of_earlier_tokens(&collection, height));
    }
    for (ordinal, change) in (1..).zip(changes) {
        let entry = Entry { time: 0, tx: height, change: Some(change) };
        fold::record(txn, &Place::of_event(height, ordinal), entry).unwrap();
    }
    if height.is_multiple_of(5) {
        let place = Place::of_event(height, 500);
        let collection = AccountKey(account(height % 3));
        renewal::request(txn, collection, renewal::encode_range(U256::from(height), U256::from(99)), &place)
            .unwrap();
    }
}

/// Events of tokens that the collection's previous height minted, and of its name.
fn changes_of_earlier_tokens(collection: &[u8], height: u64) -> Vec<Change> {
    let named = |height: u64, n: u64| TokenName {
        collection: collection.to_vec(),
        token_id: format!("{height}-{n}"),
    };
    let earlier = |n| named(height - 3, n);
    let owner = |n: u64| account(n % 7).as_bytes().to_vec();
    // Objects are taken over from height to height, as are some tokens.
    let object = |n: u64| [account(1_000 + n % 2).as_bytes(), &[7; 12]].concat();
    let mint = |token, n| Change::Mint(Mint { token, owner: owner(n), object: object(n), ..Mint::default() });
    let local = format!("name {}", height / 10);
    vec![
        Change::Transfer(Transfer { token: earlier(1), owner: owner(height) }),
        Change::Transfer(Transfer { token: earlier(2), owner: owner(2) }),
        Change::Uri(NewUri { token: earlier(3), uri: format!("ipfs://new/{height}"), ..NewUri::default() }),
        Change::Uri(NewUri { token: earlier(7), outcome: Outcome::Open.into(), ..NewUri::default() }),
        Change::Burn(earlier(4)),
        Change::Burn(earlier(5)),
        Change::Transfer(Transfer { token: earlier(5), owner: owner(1) }),
        mint(earlier(5), height),
        mint(earlier(6), height + 1),
        // One token has events in every height, and may be burnt.
        mint(named(0, height % 2), height / 3),
        Change::Transfer(Transfer { token: named(0, 1), owner: owner(height) }),
        Change::Origin(Origin { local, origin: format!("origin {height}") }),
        Change::Name(NewName {
            address: collection.to_vec(),
            name: format!("name {}", height % 5),
            ..NewName::default()
        }),
    ]
}

pub(crate) fn digests(store: &dyn Store) -> Vec<TableDigest> {
    digest::tables(&*store.snapshot().unwrap()).unwrap()
}

pub(crate) fn copy(from: &MemStore) -> MemStore {
    let store = MemStore::new();
    copy_into(from, &store);
    store
}

pub(crate) fn copy_into(from: &MemStore, store: &dyn Store) {
    let (snapshot, mut batch) = (from.snapshot().unwrap(), Batch::new());
    for spec in schema::TABLES {
        for (key, value) in snapshot.scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap() {
            batch.put(spec, key, value);
        }
    }
    store.commit(batch, Durability::Buffered).unwrap();
}
