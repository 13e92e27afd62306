//! Filters compared with a plain scan of all logs, also with fingerprints of which most collide.

use std::ops::RangeInclusive;
use std::sync::Arc;

use chain::evm::dialect::Dialect;
use chain::evm::log_filter::LogFilter;
use proptest::prelude::*;
use schema::block::{Block, Blocks};
use schema::evm_tx::EvmTxs;
use schema::index::State;
use schema::logs::{Content, Fingerprint, LOGS, LogTxs, fingerprint};
use schema::meta::{self, BlockLane, Identity, Meta};
use schema::payload::{Chunk, Payload};
use store::key::Text;
use store::{Counts, Durability, MemStore, Message, Store as _, Txn};

use super::super::{Error, EvmView};
use super::LogLimits;
use crate::indexer::{Build, EmptyCursor, Indexer};

/// A log: its contract and topics, by number.
type Log = (u8, Vec<u8>);

/// Logs by block and transaction.
type Chain = Vec<Vec<Vec<Log>>>;

const START: u64 = 5;

fn address(n: u8) -> [u8; 20] {
    [n; 20]
}

fn topic(n: u8) -> [u8; 32] {
    [n; 32]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// One byte of a fingerprint, so that most lists hold the transactions of several contents.
fn colliding(content: Content<'_>) -> Fingerprint {
    let mut short = fingerprint(content);
    short[0] = 0;
    short[1..7].fill(0);
    short[7] %= 8;
    short
}

/// The JSON of a log.
fn json((contract, topics): &Log, height: u64, index: usize) -> String {
    let topics: Vec<String> = topics.iter().map(|n| format!("\"{}\"", hex(&topic(*n)))).collect();
    format!(
        r#"{{"address":"{}","topics":[{}],"data":"0x","blockNumber":"{height:#x}","transactionHash":"","transactionIndex":"","blockHash":"","logIndex":"{index:#x}","removed":false}}"#,
        hex(&address(*contract)),
        topics.join(",")
    )
}

/// A database of `chain`, whose lists have the fingerprints that `hash` makes.
fn database(chain: &Chain, hash: fn(Content<'_>) -> Fingerprint) -> Indexer {
    let store = Arc::new(MemStore::new());
    let identity = Identity {
        format: schema::FORMAT,
        chain_id: "test-1".to_owned(),
        vm: "evm".to_owned(),
        prefix: "init".to_owned(),
        start_height: START,
    };
    schema::open::or_create(&*store, &identity).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(64);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    let (mut seq, mut height) = (1, START - 1);
    for txs in chain {
        height += 1;
        let block = Block { first_tx: 1, first_evm_tx: seq, evm_txs: txs.len() as u64, ..Block::default() };
        txn.put::<Blocks>(&height, &Message(block));
        let mut index = 0;
        for logs in txs {
            let mut owners = Vec::new();
            let mut texts = Vec::new();
            for log in logs {
                texts.push(json(log, height, index));
                index += 1;
                let (contract, topics) = (address(log.0), &log.1);
                owners.push(hash(Content::Address(&contract)));
                for (place, n) in topics.iter().enumerate() {
                    owners.push(hash(Content::Topic(place, &topic(*n))));
                    if place == 0 {
                        owners.push(hash(Content::Event(&contract, &topic(*n))));
                    }
                }
            }
            let record = format!(r#"{{"blockNumber":"{height:#x}","logs":[{}]}}"#, texts.join(","));
            txn.put::<EvmTxs>(&seq, &Payload([&[0], &Chunk::single(record.as_bytes()).take()[..]].concat()));
            owners.sort_unstable();
            owners.dedup();
            for owner in &owners {
                txn.push::<LogTxs>(owner, seq).unwrap();
            }
            seq += 1;
        }
    }
    meta::put(&mut txn, &BlockLane { height, evm_txs: seq - 1, hash: vec![0; 32], ..BlockLane::default() });
    let state = State { version: LOGS.version, from: START, height, time: 0, numbered: 0 };
    txn.put::<Meta>(&Text("index/logs".to_owned()), &prost::Message::encode_to_vec(&state));
    let (batch, _) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();
    let build = Build { version: "test".to_owned(), commit: "unknown".to_owned() };
    Indexer::open(store, build, EmptyCursor::Null).unwrap()
}

/// The logs of `chain` that a filter selects, by a plain scan.
fn scan(
    chain: &Chain,
    (addresses, topics): &(Vec<u8>, Vec<Vec<u8>>),
    heights: RangeInclusive<u64>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (height, txs) in (START..).zip(chain) {
        for (index, log) in txs.iter().flatten().enumerate() {
            let of_address = addresses.is_empty() || addresses.contains(&log.0);
            let has = |(place, any): (usize, &Vec<u8>)| {
                log.1.get(place).is_some_and(|topic| any.is_empty() || any.contains(topic))
            };
            if heights.contains(&height) && of_address && topics.iter().enumerate().all(has) {
                found.push(json(log, height, index));
            }
        }
    }
    found
}

fn array(logs: &[String]) -> String {
    format!("[{}]", logs.join(","))
}

fn read(
    view: &EvmView<'_>,
    filter: &(Vec<u8>, Vec<Vec<u8>>),
    heights: RangeInclusive<u64>,
    logs: u64,
    hash: fn(Content<'_>) -> Fingerprint,
) -> Result<String, Error> {
    let addresses = filter.0.iter().map(|n| address(*n)).collect();
    let topics = filter.1.iter().map(|any| any.iter().map(|n| topic(*n)).collect()).collect();
    let limits = LogLimits { logs, bytes: usize::MAX };
    let json = view.logs_by(&LogFilter::new(addresses, topics), heights, limits, hash)?;
    Ok(String::from_utf8(json).unwrap())
}

fn chain() -> impl Strategy<Value = Chain> {
    let log = (0..4_u8, prop::collection::vec(0..5_u8, 0..=4));
    let tx = prop::collection::vec(log, 0..5);
    prop::collection::vec(prop::collection::vec(tx, 0..40), 1..8)
}

fn filter() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<u8>>)> {
    (prop::collection::vec(0..5_u8, 0..3), prop::collection::vec(prop::collection::vec(0..6_u8, 0..3), 0..=4))
}

proptest! {
    #[test]
    fn a_filter_selects_what_a_scan_finds_whatever_collides(
        chain in chain(),
        filters in prop::collection::vec((filter(), 0..9_u64, 0..9_u64), 1..6),
    ) {
        for hash in [fingerprint as fn(Content<'_>) -> Fingerprint, colliding] {
            let indexer = database(&chain, hash);
            let view = indexer.evm(Dialect::Fixed).unwrap();
            for (filter, from, blocks) in &filters {
                let heights = START + from..=START + from + blocks;
                let expected = array(&scan(&chain, filter, heights.clone()));
                prop_assert_eq!(read(&view, filter, heights, u64::MAX, hash).unwrap(), expected);
            }
        }
    }

    #[test]
    fn the_suggested_ranges_together_give_all_logs(chain in chain(), filter in filter(), limit in 1..6_u64) {
        let indexer = database(&chain, fingerprint);
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let (mut from, mut to, mut whole, mut requests) = (START, view.head(), Vec::new(), 0);
        while from <= view.head() {
            requests += 1;
            prop_assert!(requests < 100, "no progress");
            match read(&view, &filter, from..=to, limit, fingerprint) {
                Ok(logs) => {
                    whole.push(logs);
                    (from, to) = (to + 1, view.head());
                }
                Err(Error::TooMany { retry, limit: reported }) => {
                    prop_assert!(retry.0 == from && (from..to).contains(&retry.1) && reported == limit);
                    to = retry.1;
                }
                Err(error) => prop_assert!(false, "{error:?}"),
            }
        }
        let parts: Vec<_> = whole.iter().map(|part| &part[1..part.len() - 1]).filter(|part| !part.is_empty()).collect();
        let all = scan(&chain, &filter, START..=view.head());
        prop_assert_eq!(format!("[{}]", parts.join(",")), array(&all));
    }
}

#[test]
fn heights_that_are_not_indexed_are_an_error_and_never_a_short_list() {
    let chain = vec![vec![vec![(1, vec![2])]]; 4];
    let indexer = database(&chain, fingerprint);
    let view = indexer.evm(Dialect::Fixed).unwrap();
    let read = |heights| read(&view, &(Vec::new(), Vec::new()), heights, 10, fingerprint);
    assert!(matches!(read(START - 1..=START), Err(Error::Pruned { first: START })));
    assert_eq!(read(START + 9..=START + 10).unwrap(), "[]");
    assert_eq!(
        read(START + 3..=u64::MAX).unwrap(),
        array(&scan(&chain, &(Vec::new(), Vec::new()), START + 3..=START + 3))
    );
    let lagging = |state: &State| {
        let indexer = database(&chain, fingerprint);
        let mut batch = store::Batch::new();
        let key = store::Key::to_bytes(&Text("index/logs".to_owned()));
        batch.put(<Meta as store::Table>::SPEC, key, prost::Message::encode_to_vec(state));
        indexer.store().commit(batch, Durability::Buffered).unwrap();
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let limits = LogLimits::default();
        [START + 1, START + 3]
            .map(|to| view.logs(&LogFilter::default(), START..=to, limits).map(|logs| logs.len() > 2))
    };
    let state = State { version: LOGS.version, from: START, height: START + 2, time: 0, numbered: 0 };
    let [within, beyond] = lagging(&state);
    assert!(within.unwrap());
    assert!(
        matches!(beyond, Err(Error::Behind { index: "logs", from: START, height, is_written: false }) if height == START + 2)
    );
    assert!(matches!(lagging(&State { version: LOGS.version + 1, ..state }), [Err(Error::Off("logs")), _]));
}
