//! A database written row by row in memory, with the API over it and a plain model of its contents.
//!
//! Every record is small JSON with its own sequence as the member `n`, so that a reply identifies its rows. NFTs are
//! in [`nfts`], and the walk of a client through a list in [`walk`].

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

pub(crate) mod nfts;
pub(crate) mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;

use chain::Account;
use query::{Build, EmptyCursor, Indexer};
use schema::block::{Block, Blocks};
use schema::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHeight};
use schema::keys::{AccountKey, Role, hash_prefix};
use schema::meta::{self, BlockLane, CallLane, Identity};
use schema::msg_set::{MsgSet, MsgSetByNames, MsgSetByType, MsgSets, joined};
use schema::payload::{Chunk, Codec, Encoder, Kind};
use schema::postings;
use schema::records::Records as _;
use schema::rewind::rewind;
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use schema::undo::{Horizon, Lane, UndoLog};
use serde_json::Value;
use store::key::Text;
use store::{Counts, Durability, MemStore, Message, Store, Txn};
use web::app::App;

/// The message types that transactions have.
pub(crate) const TYPES: [&str; 12] = [
    "a.v1.MsgOne",
    "a.v1.MsgTwo",
    "b.v1.MsgOne",
    "c.v1.MsgOne",
    "d.v1.MsgA",
    "d.v1.MsgB",
    "d.v1.MsgC",
    "d.v1.MsgD",
    "d.v1.MsgE",
    "d.v1.MsgF",
    "d.v1.MsgG",
    "d.v1.MsgH",
];

/// Account number `n`: of 20 bytes if `n` is even, else of 32.
pub(crate) fn account(n: u8) -> Account {
    let len = if n.is_multiple_of(2) { 20 } else { 32 };
    Account::from_bytes(&vec![n + 1; len]).unwrap()
}

/// The planned contents of a block.
#[derive(Clone, Debug)]
pub(crate) struct BlockPlan {
    pub(crate) txs: Vec<TxPlan>,
    pub(crate) evm_txs: Vec<EvmTxPlan>,
}

/// A Cosmos transaction, by numbers of accounts and of [`TYPES`].
#[derive(Clone, Debug)]
pub(crate) struct TxPlan {
    pub(crate) involved: BTreeSet<u8>,
    pub(crate) signers: BTreeSet<u8>,
    pub(crate) types: BTreeSet<usize>,
}

/// An EVM transaction and the two parties of each of its call frames.
#[derive(Clone, Debug)]
pub(crate) struct EvmTxPlan {
    pub(crate) involved: BTreeSet<u8>,
    pub(crate) from: u8,
    pub(crate) frames: Vec<(u8, u8)>,
}

/// A planned item with its height and hash; its sequence is its position in the list, from 1.
pub(crate) struct Placed<T> {
    pub(crate) height: u64,
    pub(crate) hash: [u8; 32],
    pub(crate) plan: T,
}

/// The database, its API, and the model.
pub(crate) struct HandMade {
    pub(crate) store: Arc<MemStore>,
    pub(crate) app: App<Indexer>,
    pub(crate) start_height: u64,
    pub(crate) height: u64,
    /// Number of the history that new blocks belong to; the same in all of them if nothing is rewound.
    pub(crate) fork: u8,
    pub(crate) txs: Vec<Placed<TxPlan>>,
    pub(crate) evm_txs: Vec<Placed<EvmTxPlan>>,
    pub(crate) calls: Vec<Placed<(u8, u8)>>,
    sets: Vec<BTreeSet<usize>>,
    encoders: [Encoder; 3],
}

impl HandMade {
    /// An empty database of a chain with the virtual machine `vm`.
    pub(crate) fn new(vm: &str, start_height: u64) -> Self {
        let store = Arc::new(MemStore::new());
        let identity = Identity {
            format: schema::FORMAT,
            chain_id: "test-1".to_owned(),
            vm: vm.to_owned(),
            prefix: "init".to_owned(),
            start_height,
        };
        schema::open::or_create(&*store, &identity).unwrap();
        let codec = Codec::load(&*store.snapshot().unwrap()).unwrap();
        Self {
            app: App::new(indexer(&store), query::ENDPOINTS).unwrap(),
            store,
            start_height,
            height: 0,
            fork: 0,
            txs: Vec::new(),
            evm_txs: Vec::new(),
            calls: Vec::new(),
            sets: Vec::new(),
            encoders: Kind::ALL.map(|kind| codec.encoder(kind).unwrap()),
        }
    }

    /// Adds the next block, in both lanes.
    pub(crate) fn add(&mut self, plan: &BlockPlan) {
        let store = Arc::clone(&self.store);
        let snapshot = store.snapshot().unwrap();
        let mut counts = Counts::new(64);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let height = (self.height + 1).max(self.start_height);
        let block = Block {
            first_tx: self.txs.len() as u64 + 1,
            txs: plan.txs.len() as u64,
            first_evm_tx: self.evm_txs.len() as u64 + 1,
            evm_txs: plan.evm_txs.len() as u64,
            time: i64::try_from(height).unwrap() * 1_000_000_000,
            json: format!(
                r#"{{"n":{height},"height":"{height}","hash":"{:02X}{height:06X}{:056}"}}"#,
                self.fork, 0
            )
            .into_bytes(),
        };
        txn.put::<Blocks>(&height, &Message(block));
        for tx in &plan.txs {
            self.add_tx(tx, height, &mut txn);
        }
        let first = self.calls.len() as u64 + 1;
        for tx in &plan.evm_txs {
            self.add_evm_tx(tx, height, &mut txn);
        }
        let counts = plan.evm_txs.iter().map(|tx| tx.frames.len() as u64).filter(|frames| *frames > 0);
        let counts: Vec<u64> = counts.collect();
        if !counts.is_empty() {
            txn.put::<CallsByHeight>(&height, &Message(BlockCalls { first, counts }));
        }
        self.height = height;
        self.put_lanes(&mut txn);
        let (batch, _) = UndoLog::new(Lane::Blocks, Horizon::DEFAULT).finish(txn).unwrap();
        drop(snapshot);
        store.commit(batch, Durability::Buffered).unwrap();
    }

    /// Gives the last transaction of each kind the hash of the first, as if the same bytes were in two blocks, and finds them by it.
    pub(crate) fn repeat_first(&mut self) {
        let (tx, evm_tx) = (self.txs.len() as u64, self.evm_txs.len() as u64);
        let (hash, evm_hash) = (self.txs[0].hash, self.evm_txs[0].hash);
        let (hex, evm_hex) = (chain::hash::to_hex(&hash).to_uppercase(), chain::hash::to_hex(&evm_hash));
        let height = self.height;
        let record = format!(r#"{{"txhash":"{hex}","height":"{height}","code":0,"n":{tx}}}"#);
        let evm_record = format!(
            r#"{{"n":{evm_tx},"blockNumber":"0x{height:x}","transactionHash":"0x{evm_hex}","type":"0x2"}}"#
        );
        let record = self.encoders[0].encode(&Chunk::single(record.as_bytes()).take());
        let evm_record = self.encoders[1].encode(&Chunk::single(evm_record.as_bytes()).take());
        self.write(|txn| {
            txn.put::<Txs>(&tx, &record);
            postings::add::<TxByHash>(txn, [(hash_prefix(&hash), tx, 0)]);
            txn.put::<EvmTxs>(&evm_tx, &evm_record);
            postings::add::<EvmTxByHash>(txn, [(hash_prefix(&evm_hash), evm_tx, 0)]);
        });
    }

    /// Removes the blocks above `to`, which must have no call frames; the next ones belong to another history.
    pub(crate) fn rewind(&mut self, to: u64) {
        assert!(self.calls.is_empty());
        assert_eq!(rewind(&*self.store, to).unwrap().to, to);
        (self.height, self.fork) = (to, self.fork + 1);
        self.txs.retain(|tx| tx.height <= to);
        self.evm_txs.retain(|tx| tx.height <= to);
        self.sets.clear();
        for tx in &self.txs {
            if !self.sets.contains(&tx.plan.types) {
                self.sets.push(tx.plan.types.clone());
            }
        }
    }

    fn put_lanes(&self, txn: &mut Txn<'_>) {
        let height = self.height;
        let (txs, evm_txs) = (self.txs.len() as u64, self.evm_txs.len() as u64);
        meta::put(txn, &BlockLane { height, txs, evm_txs, time: 0, hash: vec![0; 32] });
        if self.calls.is_empty() {
            return;
        }
        meta::put(txn, &CallLane { height, calls: self.calls.len() as u64, ..CallLane::default() });
    }

    fn add_tx(&mut self, plan: &TxPlan, height: u64, txn: &mut Txn<'_>) {
        let seq = self.txs.len() as u64 + 1;
        let hash = hash(0xc0, seq);
        let hex = chain::hash::to_hex(&hash).to_uppercase();
        let messages: Vec<String> =
            plan.types.iter().map(|n| format!(r#"{{"@type":"/{}"}}"#, TYPES[*n])).collect();
        let record = format!(
            r#"{{"txhash":"{hex}","height":"{height}","code":0,"n":{seq},"fork":{},"tx":{{"body":{{"messages":[{}]}}}}}}"#,
            self.fork,
            messages.join(",")
        );
        txn.put::<Txs>(&seq, &self.encoders[0].encode(&Chunk::single(record.as_bytes()).take()));
        postings::add::<TxByHash>(txn, [(hash_prefix(&hash), seq, 0)]);
        let set = self.set(&plan.types, seq, txn);
        txn.push::<SetTxs>(&set, seq).unwrap();
        for (role, accounts) in [(Role::Involved, &plan.involved), (Role::Signer, &plan.signers)] {
            for n in accounts {
                txn.push::<AccountTxs>(&(AccountKey(account(*n)), role), seq).unwrap();
                txn.push::<AccountSetTxs>(&(AccountKey(account(*n)), role, set), seq).unwrap();
            }
        }
        self.txs.push(Placed { height, hash, plan: plan.clone() });
    }

    fn set(&mut self, types: &BTreeSet<usize>, seq: u64, txn: &mut Txn<'_>) -> u32 {
        if let Some(known) = self.sets.iter().position(|set| set == types) {
            return u32::try_from(known).unwrap();
        }
        let set = u32::try_from(self.sets.len()).unwrap();
        self.sets.push(types.clone());
        let names: Vec<String> = types.iter().map(|n| TYPES[*n].to_owned()).collect();
        for name in &names {
            txn.put::<MsgSetByType>(&(Text(name.clone()), set), &());
        }
        txn.put::<MsgSetByNames>(&Text(joined(&names)), &u64::from(set));
        txn.put::<MsgSets>(&set, &Message(MsgSet { names, first_tx: seq }));
        set
    }

    fn add_evm_tx(&mut self, plan: &EvmTxPlan, height: u64, txn: &mut Txn<'_>) {
        let seq = self.evm_txs.len() as u64 + 1;
        let hash = hash(0xe5, seq);
        let hex = chain::hash::to_hex(&hash);
        let to = plan.involved.iter().find(|n| **n != plan.from).unwrap_or(&plan.from);
        let [from, to] = [plan.from, *to].map(|n| account(n).to_hex());
        let record = format!(
            r#"{{"n":{seq},"blockNumber":"0x{height:x}","from":"{from}","to":"{to}","transactionHash":"0x{hex}","type":"0x2"}}"#
        );
        txn.put::<EvmTxs>(&seq, &self.encoders[1].encode(&Chunk::single(record.as_bytes()).take()));
        postings::add::<EvmTxByHash>(txn, [(hash_prefix(&hash), seq, 0)]);
        for n in &plan.involved {
            txn.push::<AccountEvmTxs>(&(AccountKey(account(*n)), Role::Involved), seq).unwrap();
        }
        txn.push::<AccountEvmTxs>(&(AccountKey(account(plan.from)), Role::Signer), seq).unwrap();
        for part in plan.frames.chunks(Calls::MAX_RECORDS) {
            self.add_frames(part, height, hash, txn);
        }
        self.evm_txs.push(Placed { height, hash, plan: plan.clone() });
    }

    fn add_frames(&mut self, part: &[(u8, u8)], height: u64, hash: [u8; 32], txn: &mut Txn<'_>) {
        let (first, hex) = (self.calls.len() as u64 + 1, chain::hash::to_hex(&hash));
        let mut chunk = Chunk::default();
        for (seq, (from, to)) in (first..).zip(part) {
            chunk.push(format!(r#"{{"height":{height},"hash":"0x{hex}","n":{seq}}}"#).as_bytes());
            for n in BTreeSet::from([from, to]) {
                txn.push::<AccountCalls>(&AccountKey(account(*n)), seq).unwrap();
            }
            self.calls.push(Placed { height, hash, plan: (*from, *to) });
        }
        txn.put::<Calls>(&first, &self.encoders[2].encode(&chunk.take()));
    }

    /// Commits the writes of `rows`.
    pub(crate) fn write(&self, rows: impl FnOnce(&mut Txn<'_>)) {
        let snapshot = self.store.snapshot().unwrap();
        let mut counts = Counts::new(64);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        rows(&mut txn);
        let (batch, _) = txn.finish();
        drop(snapshot);
        self.store.commit(batch, Durability::Buffered).unwrap();
    }

    /// Status and JSON of `GET target`.
    pub(crate) fn get(&self, target: &str) -> (u16, Value) {
        let response = self.app.get(target);
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }
}

/// The API over a database.
pub(crate) fn indexer(store: &Arc<MemStore>) -> Indexer {
    let build = Build { version: "1.2.3".to_owned(), commit: "abc".to_owned() };
    let shared: Arc<dyn Store> = Arc::<MemStore>::clone(store);
    Indexer::open(shared, build, EmptyCursor::Null).unwrap()
}

/// Hashes of which each two share their first bytes: by-hash reads must check both.
fn hash(kind: u8, seq: u64) -> [u8; 32] {
    let mut hash = [kind; 32];
    hash[..8].copy_from_slice(&(seq / 2).to_be_bytes());
    hash[24..].copy_from_slice(&seq.to_be_bytes());
    hash
}
