//! Event streams over sockets: resumption, filters, reorgs, replicas, slow readers.

pub(crate) mod client;
mod crowd;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use query::SlowReader;
use serde_json::Value;
use web::app::App;

use self::client::{Client, Event, apply, serve};
use crate::hand_made::{BlockPlan, EvmTxPlan, HandMade, TxPlan, account, indexer};

const BLOCKS: &str = "/indexer/stream/v1/blocks";
const TXS: &str = "/indexer/stream/v1/txs";

/// The contents of block `n`: none to four transactions of each kind.
pub(crate) fn plan(n: u8) -> BlockPlan {
    let tx = |i: u8| TxPlan {
        involved: BTreeSet::from([0, (n + i) % 3]),
        signers: BTreeSet::from([(n + i) % 2]),
        types: BTreeSet::from([usize::from((n + i) % 4)]),
    };
    let evm_tx = |i: u8| EvmTxPlan { involved: BTreeSet::from([(n + i) % 3]), from: i, frames: Vec::new() };
    BlockPlan { txs: (0..n % 5).map(tx).collect(), evm_txs: (0..(n + 2) % 4).map(evm_tx).collect() }
}

fn add(made: &mut HandMade, blocks: std::ops::RangeInclusive<u8>) {
    for n in blocks {
        made.add(&plan(n));
    }
}

/// A stream, and the list of its rows in the JSON interface, oldest first.
struct Stream {
    target: String,
    list: String,
    member: &'static str,
    event: &'static str,
}

impl Stream {
    fn rows(&self, made: &HandMade) -> Vec<Value> {
        let mark = if self.list.contains('?') { '&' } else { '?' };
        let list = format!("{}{mark}pagination.limit=1000&pagination.reverse=false", self.list);
        let (status, body) = made.get(&list);
        assert_eq!(status, 200, "{list}: {body}");
        body[self.member].as_array().unwrap().clone()
    }
}

/// Every stream, without and with filters.
fn streams() -> Vec<Stream> {
    let hex = account(1).to_hex();
    let txs = "/indexer/tx/v1/txs";
    let evm = "/indexer/tx/v1/evm-txs";
    let types = "msgs=a.v1.MsgOne,c.v1.MsgOne";
    let of = |target: String, list: String, member, event| Stream { target, list, member, event };
    vec![
        of(BLOCKS.to_owned(), "/indexer/block/v1/blocks".to_owned(), "blocks", "block"),
        of(TXS.to_owned(), txs.to_owned(), "txs", "tx"),
        of(format!("{TXS}?{types}"), format!("{txs}?{types}"), "txs", "tx"),
        of(format!("{TXS}?account={hex}"), format!("{txs}/by_account/{hex}"), "txs", "tx"),
        of(
            format!("{TXS}?account={hex}&is_signer=true&{types}"),
            format!("{txs}/by_account/{hex}?is_signer=true&{types}"),
            "txs",
            "tx",
        ),
        of("/indexer/stream/v1/evm-txs".to_owned(), evm.to_owned(), "txs", "evm_tx"),
        of(
            format!("/indexer/stream/v1/evm-txs?account={hex}"),
            format!("{evm}/by_account/{hex}"),
            "txs",
            "evm_tx",
        ),
    ]
}

#[test]
fn every_id_resumes_with_exactly_the_rest_on_any_replica() {
    for start_height in [1, 7] {
        let mut made = HandMade::new("evm", start_height);
        let server = serve(indexer(&made.store));
        let mut open: Vec<_> =
            streams().iter().map(|one| Client::open(server.address(), &one.target, None).unwrap()).collect();
        add(&mut made, 0..=24);
        let replica = serve(indexer(&made.store));
        for (stream, client) in streams().iter().zip(&mut open) {
            let (rows, target) = (stream.rows(&made), &stream.target);
            assert!(rows.len() > 4, "{target}");
            let events = client.take(1 + rows.len());
            assert_eq!((events[0].name.as_str(), &events[0].data["height"]), ("start", &Value::from("0")));
            assert!(events[1..].iter().all(|event| event.name == stream.event), "{target}");
            assert_eq!(
                events[1..].iter().map(|event| event.data.clone()).collect::<Vec<_>>(),
                rows,
                "{target}"
            );
            for (i, event) in events.iter().enumerate().take(rows.len()) {
                let mut by_header = Client::open(replica.address(), target, Some(&event.id)).unwrap();
                assert_eq!(by_header.take(rows.len() - i), events[i + 1..], "{target} {i}");
                let mark = if target.contains('?') { '&' } else { '?' };
                let by_query = format!("{target}{mark}last_event_id={}", event.id);
                let mut by_query = Client::open(replica.address(), &by_query, None).unwrap();
                assert_eq!(by_query.next().as_ref(), events.get(i + 1), "{target} {i}");
            }
        }
    }
}

#[test]
fn a_stream_begins_with_the_next_block_and_goes_on_while_blocks_come() {
    let mut made = HandMade::new("evm", 1);
    add(&mut made, 1..=9);
    let server = serve(indexer(&made.store));
    let mut client = Client::open(server.address(), BLOCKS, None).unwrap();
    assert_eq!(client.next().map(|event| client::height(&event)), Some(9));
    let mut quiet = Client::open(server.address(), &format!("{TXS}?msgs=none.Such"), None).unwrap();
    assert_eq!(quiet.next().unwrap().name, "start");
    for n in 10..40_u8 {
        made.add(&plan(n));
        let event = client.next().unwrap();
        assert_eq!((event.name.as_str(), client::height(&event)), ("block", u64::from(n)));
    }
    // The header wins over the parameter, as a browser repeats the address when it reconnects.
    let last = client.next_id(&mut made);
    let target = format!("{BLOCKS}?last_event_id={}", last[0]);
    let mut again = Client::open(server.address(), &target, Some(&last[1])).unwrap();
    made.add(&plan(1));
    assert_eq!(client::height(&again.next().unwrap()), made.height);
}

impl Client {
    /// The ids of the next two blocks.
    fn next_id(&mut self, made: &mut HandMade) -> [String; 2] {
        [1, 2].map(|n| {
            made.add(&plan(n));
            self.next().unwrap().id
        })
    }
}

/// Reads until the rows of the client end with the last row of `expected`, and compares them.
fn converge(client: &mut Client, mut rows: Vec<Event>, expected: &[Value], about: &str) -> usize {
    let mut n_reorgs = 0;
    while rows.last().map(|row| &row.data) != expected.last() {
        let event = client.next().unwrap();
        n_reorgs += usize::from(event.name == "reorg");
        apply(&mut rows, event);
    }
    assert_eq!(rows.iter().map(|row| row.data.clone()).collect::<Vec<_>>(), expected, "{about}");
    n_reorgs
}

#[test]
fn a_reorg_takes_back_the_rows_of_removed_blocks_live_and_at_the_next_resumption() {
    let streams: Vec<_> = streams().into_iter().filter(|stream| stream.event != "evm_tx").collect();
    for (removed, added) in [(1_u8, 1_u8), (3, 1), (4, 9), (30, 33), (55, 55)] {
        let mut made = HandMade::new("evm", 1);
        let server = serve(indexer(&made.store));
        let open = |stream: &Stream| Client::open(server.address(), &stream.target, None).unwrap();
        let mut live: Vec<_> = streams.iter().map(open).collect();
        add(&mut made, 1..=60);
        let before: Vec<Vec<Event>> = streams
            .iter()
            .zip(&mut live)
            .map(|(stream, client)| client.take(1 + stream.rows(&made).len()))
            .collect();
        made.rewind(u64::from(60 - removed));
        add(&mut made, 61 - removed..=60 - removed + added);
        for ((stream, client), events) in streams.iter().zip(&mut live).zip(&before) {
            let (expected, target) = (stream.rows(&made), &stream.target);
            let about = format!("{target} {removed} {added}");
            // A stream that has sent no row of the removed blocks has nothing to take back.
            let is_sent = events[1..].iter().any(|event| client::height(event) > u64::from(60 - removed));
            let n_reorgs = converge(client, events[1..].to_vec(), &expected, &about);
            assert_eq!(n_reorgs > 0, is_sent, "{about}");
            for last in (1..events.len()).rev().step_by(3) {
                let mut away = Client::open(server.address(), target, Some(&events[last].id)).unwrap();
                let is_removed = client::height(&events[last]) > u64::from(60 - removed);
                let n_reorgs = converge(&mut away, events[1..=last].to_vec(), &expected, &about);
                assert_eq!(n_reorgs, usize::from(is_removed), "{about} {last}");
            }
        }
    }
}

#[test]
fn a_replica_that_is_behind_waits_until_it_reaches_the_id() {
    let (mut ahead, mut behind) = (HandMade::new("evm", 1), HandMade::new("evm", 1));
    add(&mut ahead, 1..=20);
    add(&mut behind, 1..=15);
    let servers = [serve(indexer(&ahead.store)), serve(indexer(&behind.store))];
    let start = Client::open(servers[0].address(), BLOCKS, None).unwrap().next().unwrap();
    let mut client = Client::open(servers[1].address(), BLOCKS, Some(&start.id)).unwrap();
    add(&mut behind, 16..=22);
    let events = client.take(2);
    assert_eq!(events.iter().map(client::height).collect::<Vec<_>>(), [21, 22]);
    assert!(events.iter().all(|event| event.name == "block"));
}

#[test]
fn an_id_that_does_not_fit_is_refused_with_the_reason() {
    let mut made = HandMade::new("evm", 1);
    add(&mut made, 1..=9);
    let server = serve(indexer(&made.store));
    let id = |made: &HandMade, target: &str| {
        Client::open(serve(indexer(&made.store)).address(), target, None).unwrap().next().unwrap().id
    };
    let mut other = HandMade::new("evm", 1);
    other.fork = 9;
    add(&mut other, 1..=5);
    let mut long = HandMade::new("evm", 1);
    add(&mut long, 1..=90);
    for (id, status, part) in [
        ("no-id".to_owned(), 400, "must be the id of an event of this stream"),
        (id(&made, TXS), 400, "must be the id of an event of this stream"),
        (id(&other, BLOCKS), 400, "of another chain"),
        (id(&long, BLOCKS), 503, "at height 90, but this index is at 9"),
    ] {
        let (refused, body) = Client::open(server.address(), BLOCKS, Some(&id)).unwrap_err();
        assert_eq!(refused, status, "{body}");
        assert!(body.contains(part) && body.contains("last_event_id"), "{body}");
    }
    for (target, status, part) in [
        (format!("{TXS}?account=nobody"), 400, "account"),
        (
            format!("{TXS}?msgs={}", (0..65).map(|n| format!("a.{n}")).collect::<Vec<_>>().join(",")),
            400,
            "at most 64",
        ),
    ] {
        let (refused, body) = Client::open(server.address(), &target, None).unwrap_err();
        assert_eq!(refused, status, "{body}");
        assert!(body.contains(part), "{body}");
    }
    let plain = serve(indexer(&HandMade::new("move", 1).store));
    assert_eq!(Client::open(plain.address(), "/indexer/stream/v1/evm-txs", None).unwrap_err().0, 404);
}

#[test]
fn a_slow_reader_is_dropped_with_an_event_that_names_the_reason_and_resumes() {
    let mut made = HandMade::new("evm", 1);
    let slow = SlowReader { blocks: 3, time: Duration::ZERO };
    let app = Arc::new(App::new(indexer(&made.store).with_slow_reader(slow), query::ENDPOINTS).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut stream = app.open(BLOCKS).unwrap();
    let mut next = || runtime.block_on(stream.next());
    assert_eq!(next().unwrap().name(), "start");
    add(&mut made, 1..=1);
    assert_eq!(next().unwrap().name(), "block");
    // Ten blocks come in the time of one event.
    let end = loop {
        add(&mut made, 1..=10);
        let event = next().unwrap();
        if event.name() != "block" {
            break event;
        }
        assert!(made.height < 1000, "the stream has no end");
    };
    let reason: Value = serde_json::from_slice(end.data()).unwrap();
    assert_eq!(end.name(), "end");
    assert!(reason["reason"].as_str().unwrap().contains("reads too slowly"), "{reason}");
    assert!(next().is_none());
    // A reader that resumes may be as far behind as it was.
    let id = std::str::from_utf8(end.id()).unwrap();
    let rest = app.open(&format!("{BLOCKS}?last_event_id={id}")).unwrap();
    let last = format!(r#"{{"n":{},"#, made.height);
    let is_before =
        |event: &web::event::Event| std::future::ready(!event.data().starts_with(last.as_bytes()));
    let rest: Vec<_> = runtime.block_on(rest.take_while(is_before).collect());
    assert!(rest.len() > 4 && rest.iter().all(|event| event.name() == "block"));
}

#[test]
fn a_stream_that_catches_up_is_not_read_on_the_thread_of_the_requests() {
    let mut made = HandMade::new("evm", 1);
    let app = Arc::new(App::new(indexer(&made.store), query::ENDPOINTS).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut first = app.open(BLOCKS).unwrap();
    let start = runtime.block_on(first.next()).unwrap();
    add(&mut made, 1..=40);
    let id = std::str::from_utf8(start.id()).unwrap();
    let mut late = app.open(&format!("{BLOCKS}?last_event_id={id}")).unwrap();
    runtime.block_on(async {
        assert!(late.next().now_or_never().is_none(), "the rows were read at once");
        let all: Vec<_> = late.take(40).collect().await;
        assert!(all.iter().all(|event| event.name() == "block"));
    });
}
