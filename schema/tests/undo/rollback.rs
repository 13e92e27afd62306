//! Result and cost of a rollback beyond the undo records, also if it is interrupted.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use chain::Account;
use schema::block::{Block, Blocks};
use schema::digest::{self, TableDigest};
use schema::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHash, CallsByHeight};
use schema::keys::{AccountKey, Role, hash_prefix};
use schema::meta::{self, BlockLane, CallLane, PendingNftRebuild, PendingRollback, Rewinds, RichLane};
use schema::msg_set::{MsgSet, MsgSetByNames, MsgSetByType, MsgSets};
use schema::nft::fold::{self, At};
use schema::nft::rebuild::FOLDED;
use schema::nft::{
    Change, Collection, Entry, Mint, NameChanges, NewCollection, NewUri, NonCollections, Origin,
    PendingEvent, PendingEvents, Question, Questions, TokenName, Tokens, Transfer, question_number,
};
use schema::payload::{Chunk, Codec, Kind};
use schema::rich::{Holders, set_balance};
use schema::rollback::{finish_pending, is_pending, rollback};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use schema::undo::{Lane, Record, UndoRecords};
use store::key::{All, Text};
use store::{
    Batch, Bounds, COUNT, Counts, Durability, List as _, MemStore, Message, Order, RANK, Row, Snapshot,
    Store, Table as _, TableSpec, Txn,
};

use crate::{End, commit, database, hash, records_by_key};

/// Tokens minted in each height that mints.
const MINTED: u64 = 40;

fn account(n: u64) -> Account {
    let mut bytes = [0x11; 20];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    Account::from_bytes(&bytes).unwrap()
}

/// A chain of `last` heights with a transaction each; those up to `mints` mint tokens.
pub(crate) fn chain_of(last: u64, mints: u64) -> MemStore {
    let store = database();
    let codec = Codec::load(&*store.snapshot().unwrap()).unwrap();
    let mut counts = Counts::new(10_000);
    for heights in (1..=last).collect::<Vec<_>>().chunks(100) {
        let snapshot = store.snapshot().unwrap();
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for height in heights {
            block(&mut txn, &codec, *height);
            if *height <= mints {
                mint(&mut txn, *height);
            }
        }
        let (batch, lengths) = txn.finish();
        store.commit(batch, Durability::Buffered).unwrap();
        counts.absorb(lengths);
    }
    store
}

/// A block with one transaction of each kind, by one account that is in all of them and one new account, and two call
/// frames.
fn block(txn: &mut Txn<'_>, codec: &Codec, height: u64) {
    let (busy, fresh, hash) = (account(0), account(height), hash(height));
    let digits = hex::encode(hash);
    let json = format!(r#"{{"height":"{height}","hash":"{}"}}"#, digits.to_uppercase()).into_bytes();
    let row = Block { first_tx: height, txs: 1, first_evm_tx: height, evm_txs: 1, json, ..Block::default() };
    txn.put_unread::<Blocks>(&height, &Message(row));

    let mut encoder = codec.encoder(Kind::Tx).unwrap();
    let record = format!(r#"{{"txhash":"{}","height":"{height}"}}"#, digits.to_uppercase());
    txn.put_unread::<Txs>(&height, &encoder.encode(&Chunk::of(record.as_bytes()).take()));
    txn.put_unread::<TxByHash>(&(hash_prefix(&hash), height), &());
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
    txn.put_unread::<EvmTxByHash>(&(hash_prefix(&hash), height), &());
    for owner in [(busy, Role::Involved), (fresh, Role::Involved), (busy, Role::Signer)] {
        txn.push::<AccountEvmTxs>(&(AccountKey(owner.0), owner.1), height).unwrap();
    }

    let (first, mut frames) = (2 * height - 1, Chunk::default());
    for (index, to) in [(0, &to), (1, &from)] {
        let frame = format!(
            r#"{{"height":{height},"hash":"0x{digits}","index":{index},"from":"0x{from}","to":"0x{to}"}}"#
        );
        frames.push(frame.as_bytes());
    }
    txn.put_unread::<Calls>(&first, &encoder.encode(&frames.take()));
    txn.put_unread::<CallsByHash>(&(hash_prefix(&hash), first), &2);
    txn.put_unread::<CallsByHeight>(&height, &Message(BlockCalls { first, count: 2 }));
    txn.push::<AccountCalls>(&AccountKey(busy), first).unwrap();
    txn.push::<AccountCalls>(&AccountKey(fresh), first).unwrap();
    txn.push::<AccountCalls>(&AccountKey(busy), first + 1).unwrap();

    if height.is_multiple_of(100) {
        txn.put::<NonCollections>(&AccountKey(fresh), &height);
        txn.put::<Questions>(&question_number(height, 7), &Message(Question::default()));
        txn.put::<PendingEvents>(&(AccountKey(busy), height, 7), &Message(PendingEvent::default()));
    }
    let lane =
        BlockLane { height, txs: height, evm_txs: height, hash: hash.to_vec(), ..BlockLane::default() };
    meta::put(txn, &lane);
    meta::put(txn, &CallLane { height, calls: first + 1, ..CallLane::default() });
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
    let entries =
        (1..).zip(changes).map(|(place, change)| Entry { place, tx: height, change: Some(change) }).collect();
    fold::record(txn, At { height, time: 0 }, entries).unwrap();
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
        Change::Uri(NewUri { token: earlier(3), uri: format!("ipfs://new/{height}") }),
        Change::Burn(earlier(4)),
        Change::Burn(earlier(5)),
        Change::Transfer(Transfer { token: earlier(5), owner: owner(1) }),
        mint(earlier(5), height),
        mint(earlier(6), height + 1),
        // One token has events in every height, and may be burnt.
        mint(named(0, height % 2), height / 3),
        Change::Transfer(Transfer { token: named(0, 1), owner: owner(height) }),
        Change::Origin(Origin { local, origin: format!("origin {height}") }),
    ]
}

pub(crate) fn digests(store: &dyn Store) -> Vec<TableDigest> {
    digest::tables(&*store.snapshot().unwrap()).unwrap()
}

fn copy(from: &MemStore) -> MemStore {
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

/// A store that counts read rows and held snapshots, and fails permanently after some commits.
struct Watched {
    store: MemStore,
    /// By table; for shared tables, by the first byte of the key too.
    read: Mutex<BTreeMap<(&'static str, u8), u64>>,
    commits_left: AtomicU64,
    held: AtomicU64,
    /// Maximum number of snapshots held during a commit.
    most_held: AtomicU64,
}

struct WatchedSnapshot<'a>(Box<dyn Snapshot + 'a>, &'a Watched);

impl Watched {
    fn new(store: MemStore, commits: u64) -> Self {
        let (commits_left, held, most_held) = (commits.into(), 0.into(), 0.into());
        Self { store, read: Mutex::default(), commits_left, held, most_held }
    }

    fn count(&self, table: &'static TableSpec, key: &[u8]) {
        let shared = [COUNT.tag, RANK.tag].contains(&table.tag);
        let of = if shared { key[0] } else { 0 };
        *self.read.lock().unwrap().entry((table.name, of)).or_default() += 1;
    }

    /// Rows read since the last call.
    fn take_read(&self) -> BTreeMap<(&'static str, u8), u64> {
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

impl Store for Watched {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.held.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(WatchedSnapshot(self.store.snapshot()?, self)))
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        self.most_held.fetch_max(self.held.load(Ordering::Relaxed), Ordering::Relaxed);
        match self.commits_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) {
            Ok(_) => self.store.commit(batch, durability),
            Err(_) => Err(store::Error::ReadOnly { path: "the end".into() }),
        }
    }

    fn sync(&self) -> Result<(), store::Error> {
        self.store.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.store.disk_bytes()
    }
}

impl Drop for WatchedSnapshot<'_> {
    fn drop(&mut self) {
        self.1.held.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshot for WatchedSnapshot<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, store::Error> {
        self.1.count(table, key);
        self.0.get(table, key)
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, store::Error> {
        let rows = self.0.scan(table, bounds, order, limit)?;
        for (key, _) in &rows {
            self.1.count(table, key);
        }
        Ok(rows)
    }
}

#[test]
fn a_rolled_back_database_equals_an_undisturbed_one() {
    let (end, mints) = (400, 200);
    let whole = chain_of(end, mints);
    for to in [1, 63, 64, 150, 200, 201, 330, 399, 400] {
        let store = copy(&whole);
        rollback(&store, to).unwrap();
        assert!(!is_pending(&store).unwrap());
        assert_eq!(digests(&store), digests(&chain_of(to, mints.min(to))), "back to {to}");
    }
}

#[test]
fn the_rows_read_grow_with_the_removed_rows_and_not_with_the_remaining_ones() {
    let read = |end: u64| {
        let store = Watched::new(chain_of(end, 10), u64::MAX);
        rollback(&store, end - 20).unwrap();
        assert_eq!(digests(&store.store), digests(&chain_of(end - 20, 10)));
        assert_eq!(store.most_held.load(Ordering::Relaxed), 1, "no snapshot is held from stage to stage");
        store.take_read()
    };
    // The same position between two sets, so that the same rows are removed.
    let (small, large) = (read(640), read(2560));
    // Reads the end of each list of Cosmos accounts, all sets, non-collections and pending events.
    let grows = [
        (COUNT.name, AccountTxs::SPEC.tag),
        (COUNT.name, AccountSetTxs::SPEC.tag),
        (COUNT.name, SetTxs::SPEC.tag),
        (AccountTxs::SPEC.name, 0),
        (AccountSetTxs::SPEC.name, 0),
        (SetTxs::SPEC.name, 0),
        (MsgSets::SPEC.name, 0),
        (NonCollections::SPEC.name, 0),
        (PendingEvents::SPEC.name, 0),
    ];
    for (table, rows) in &large {
        // A search in a list four times as long takes two more steps.
        let bound = small.get(table).copied().unwrap_or_default() + 2 * 3;
        assert!(
            grows.contains(table) || *rows <= bound,
            "{table:?}: {rows} rows, {bound} in a small database"
        );
        assert!(FOLDED.iter().all(|spec| spec.name != table.0), "{table:?} was read though no NFT goes");
    }
    assert_eq!(large[&(Txs::SPEC.name, 0)], 20 + 1, "each record that goes, and whether there is one");
    // Lengths are read for the accounts of removed records only.
    assert!(
        large[&(COUNT.name, AccountEvmTxs::SPEC.tag)] < 3 * 20
            && large[&(COUNT.name, AccountCalls::SPEC.tag)] < 3 * 20
    );
}

#[test]
fn a_rollback_rewinds_the_rich_list_and_invalidates_all_names() {
    let (store, to) = (chain_of(40, 30), 20);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &RichLane { height: 40, baseline: 1, ..RichLane::default() });
    });
    rollback(&store, to).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(meta::read::<RichLane>(&*snapshot).unwrap().unwrap().height, to);
    let changes = store::table::rows::<NameChanges>(&*snapshot, &All, Order::Desc, 1).unwrap();
    assert_eq!(changes[0].1, b"", "the row that stands for all names");
    assert_eq!(meta::read::<Rewinds>(&*snapshot).unwrap(), Some(Rewinds { count: 1, last_to: to }));
}

#[test]
fn rows_beside_a_removed_range_remain() {
    let (store, to, contract) = (chain_of(40, 30), 20, [0xcc; 20]);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &RichLane { height: to, baseline: 1, ..RichLane::default() });
        set_balance(txn, &contract, &[1; 20], Some([7; 32])).unwrap();
        for lane in [1_u8, 2] {
            for height in [to, to + 1] {
                txn.put::<UndoRecords>(&(lane, height, 0), &Message(Record::default()));
            }
        }
    });
    rollback(&store, to).unwrap();
    assert_eq!(records_by_key(&store), [(to, 0), (to, 0)]);
    let snapshot = store.snapshot().unwrap();
    // Its counts share a table with those of the NFTs.
    assert_eq!(store::ranked::len::<Holders>(&*snapshot, &contract).unwrap(), 1);
}

#[test]
fn a_rollback_writes_only_the_nfts_of_removed_events() {
    let read = |end: u64| {
        let store = Watched::new(chain_of(end, end), u64::MAX);
        rollback(&store, end - 4).unwrap();
        assert_eq!(digests(&store.store), digests(&chain_of(end - 4, end - 4)));
        store.take_read()
    };
    let (small, large) = (read(100), read(400));
    let of_sets = |read: &BTreeMap<(&'static str, u8), u64>, name| {
        read.iter().filter(|((table, _), _)| *table == name).map(|(_, rows)| rows).sum::<u64>()
    };
    for spec in FOLDED {
        let (small, large) = (of_sets(&small, spec.name), of_sets(&large, spec.name));
        assert!(large < 2 * small + 10, "{}: {small} rows, then {large}", spec.name);
    }
}

#[test]
fn damaged_nfts_are_rebuilt_by_a_rollback() {
    let (whole, to) = (chain_of(60, 60), 40);
    let store = copy(&whole);
    let mut batch = Batch::new();
    batch.delete_range(RANK, vec![Tokens::SPEC.tag], vec![Tokens::SPEC.tag + 1]);
    store.commit(batch, Durability::Buffered).unwrap();
    rollback(&store, to).unwrap();
    assert_eq!(digests(&store), digests(&chain_of(to, to)));
}

#[test]
fn a_rebuild_that_an_earlier_version_began_is_finished() {
    let (whole, to) = (chain_of(60, 30), 20);
    // It stored no position.
    let store = copy(&whole);
    commit(&store, End::Plain, |txn| meta::put(txn, &PendingRollback { to, ..PendingRollback::default() }));
    finish_pending(&store).unwrap();
    assert_eq!(digests(&store), digests(&chain_of(to, to)));
    // It emptied the tables of NFTs row by row.
    let store = copy(&whole);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &PendingNftRebuild::default());
        let (token, _) = store::table::rows::<Tokens>(txn, &All, Order::Asc, 1).unwrap().remove(0);
        txn.delete::<Tokens>(&token);
    });
    finish_pending(&store).unwrap();
    assert_eq!(digests(&store), digests(&whole));
    // It wrote the sets together with the tokens.
    let store = copy(&whole);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &PendingNftRebuild { emptied: true, height: 25, indexes_last: false });
    });
    finish_pending(&store).unwrap();
    assert_eq!(digests(&store), digests(&whole));
}

#[test]
fn missing_or_damaged_records_leave_no_dependent_rows() {
    let (whole, to) = (chain_of(200, 0), 150);
    let wanted = digests(&chain_of(to, 0));
    for (spec, seq) in
        [(Txs::SPEC, 200), (Txs::SPEC, 151), (EvmTxs::SPEC, 170), (Calls::SPEC, 399), (Calls::SPEC, 351)]
    {
        for damaged in [None, Some(vec![0xff, 1, 2])] {
            let store = copy(&whole);
            let mut batch = Batch::new();
            let key = u64::to_be_bytes(seq).to_vec();
            match damaged {
                None => batch.delete(spec, key),
                Some(value) => batch.put(spec, key, value),
            }
            store.commit(batch, Durability::Buffered).unwrap();
            rollback(&store, to).unwrap();
            assert_eq!(digests(&store), wanted, "{} {seq}", spec.name);
        }
    }
}

#[test]
fn an_interrupted_rollback_continues_at_its_position() {
    let (end, to, mints) = (400, 120, 130);
    let whole = chain_of(end, mints);
    let wanted = digests(&chain_of(to, to));
    for commits in 0.. {
        let store = Watched::new(copy(&whole), commits);
        let begun = rollback(&store, to);
        assert_eq!(
            is_pending(&store.store).unwrap(),
            commits > 0 && begun.is_err(),
            "after {commits} commits"
        );
        if begun.is_ok() {
            assert!(commits > 20, "only {commits} commits");
            break;
        }
        if commits == 0 {
            continue;
        }
        // Readers access no row that is being removed.
        let snapshot = store.store.snapshot().unwrap();
        assert_eq!(Lane::ALL.map(|lane| lane.height(&*snapshot).unwrap()), [to, to]);
        drop(snapshot);
        // It is interrupted repeatedly, after fewer commits than the fold takes: if it restarted each time, it would
        // never end.
        let mut rounds = 0;
        loop {
            store.commits_left.store(1 + rounds % 3, Ordering::Relaxed);
            rounds += 1;
            if finish_pending(&store).is_ok() {
                break;
            }
            assert!(rounds < 60, "it does not get to its end");
        }
        assert_eq!(digests(&store.store), wanted, "after {commits} commits");
    }
}
