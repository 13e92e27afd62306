//! The program on an S3 interface (versitygw): an indexer, query servers without any local state, copies, and the fleet.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails there")]
#![allow(clippy::print_stdout, reason = "prints figures")]
#![allow(dead_code, reason = "the included modules have more")]

mod copy;
mod fleet;
#[path = "../../../crates/slate/tests/s3/gateway.rs"]
mod gateway;
#[path = "../program/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use support::{Cairn, Played, command, digest, get, get_text, until};

use crate::gateway::{Gateway, URL};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

/// The program with `args`, and the gateway's address and credentials.
fn start(gateway: &Gateway, args: &[&str]) -> Cairn {
    let mut command = command(args);
    command.envs(gateway.variables());
    Cairn::spawn(command)
}

fn indexer(gateway: &Gateway, played: &Played) -> Cairn {
    start(gateway, &played.flags("run", Path::new(URL)))
}

fn follower(gateway: &Gateway, played: &Played) -> (Cairn, String) {
    let any = "127.0.0.1:0";
    let flags = ["query", "--data", URL, "--chain-id", played.chain(), "--listen", any, "--metrics", any];
    let mut cairn = start(gateway, &flags);
    assert_requests_are_counted(&mut cairn);
    let url = cairn.url();
    (cairn, url)
}

/// The database is open once it serves, so there were requests; a query server makes no others.
fn assert_requests_are_counted(server: &mut Cairn) {
    let metrics = server.logged("metrics")["url"].as_str().unwrap().to_owned();
    until("requests in the metrics", || {
        let (_, scraped) = get_text(&metrics);
        assert!(!scraped.contains("{request=\"put\"}"), "{scraped}");
        let counted = ["requests_total{request=\"get\"}", "bytes_total{direction=\"read\"}"];
        counted.iter().all(|name| scraped.contains(&format!("cairn_object_store_{name}"))).then_some(())
    });
}

/// `cairn db digest` of the database of `chain` at `location`; the settings are written to `dir`.
fn digest_in(dir: &Path, location: &str, chain: &str) -> Command {
    let file = dir.join("cairn.toml");
    std::fs::write(&file, format!("data = {location:?}\nchain_id = {chain:?}\n")).unwrap();
    command(&["db", "digest", "--config", file.to_str().unwrap()])
}

/// The digest that `command` prints.
fn digest_of(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().strip_prefix("digest ").unwrap().to_owned()
}

/// The digest of the database in the gateway.
fn remote_digest(gateway: &Gateway, played: &Played, dir: &Path) -> String {
    let mut command = digest_in(dir, URL, played.chain());
    command.envs(gateway.variables());
    digest_of(command)
}

fn index_with_rocksdb(dir: &Path) -> PathBuf {
    let data = dir.join("data");
    Played::start("evm-scenario", &[]).index(&data);
    data
}

/// Waits until the server has all of the chain.
fn await_all(url: &str) {
    until("the whole chain", || {
        let (_, status) = get(&format!("{url}/status"));
        (status["height"] == LAST
            && status["internal_tx_height"] == LAST
            && status["rich_list_height"] == LAST)
            .then_some(())
    });
}

/// Sets the flag when it is dropped, also by a failed assertion: the threads that it ends would be awaited for ever.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All strings under the key `name` in `value`.
fn texts(value: &Value, name: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.extend(value.as_str().filter(|_| key == name).map(str::to_owned));
            texts(value, name, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| texts(value, name, found)),
        _ => {}
    }
}

/// Paths of lists in both directions and of what they name.
fn paths(url: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let (mut hashes, mut evm, mut accounts) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for list in
        ["tx/v1/txs", "tx/v1/evm-txs", "tx/v1/evm-internal-txs", "block/v1/blocks", "nft/v1/collections"]
    {
        for reverse in [true, false] {
            let page =
                format!("pagination.limit=100&pagination.count_total=true&pagination.reverse={reverse}");
            let path = format!("/indexer/{list}?{page}");
            let (status, body) = get(&format!("{url}{path}"));
            assert_eq!(status, 200, "{path}: {body}");
            texts(&body, "txhash", &mut hashes);
            texts(&body, "transactionHash", &mut evm);
            texts(&body, "from", &mut accounts);
            texts(&body, "sender", &mut accounts);
            paths.push(path);
        }
    }
    paths.extend(hashes.iter().map(|hash| format!("/indexer/tx/v1/txs/{hash}")));
    paths.extend(evm.iter().map(|hash| format!("/indexer/tx/v1/evm-txs/{hash}")));
    for account in &accounts {
        paths.push(format!("/indexer/tx/v1/txs/by_account/{account}?pagination.count_total=true"));
        paths.push(format!("/indexer/tx/v1/evm-txs/by_account/{account}?pagination.count_total=true"));
    }
    paths.extend((1..=LAST).map(|height| format!("/indexer/tx/v1/txs/by_height/{height}")));
    paths
}

#[test]
fn a_query_server_on_s3_answers_as_one_on_rocksdb() {
    let dir = tempfile::tempdir().unwrap();
    let local = index_with_rocksdb(dir.path());
    let gateway = Gateway::start();
    let played = Played::start("evm-scenario", &[]);
    let mut writer = indexer(&gateway, &played);
    let written = writer.url();
    await_all(&written);
    let (_follower, remote) = follower(&gateway, &played);
    let mut beside = Cairn::start(&["query", "--data", local.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let rocks = beside.url();
    let paths = paths(&rocks);
    assert!(paths.len() > 400, "{}", paths.len());
    for path in &paths {
        let expected = get_text(&format!("{rocks}{path}"));
        assert_eq!(get_text(&format!("{remote}{path}")), expected, "{path}");
        assert_eq!(get_text(&format!("{written}{path}")), expected, "{path}");
    }
    println!("{} answers are equal", paths.len());
    writer.signal("TERM");
    assert_eq!(writer.ended().0, Some(0));
    assert_eq!(remote_digest(&gateway, &played, dir.path()), digest(&local));
}

#[test]
fn query_servers_answer_while_the_writer_is_killed_and_replaced_ten_times() {
    let dir = tempfile::tempdir().unwrap();
    let local = index_with_rocksdb(dir.path());
    let gateway = Gateway::start();
    let played = Played::start("evm-scenario", &["--block-every", "50ms"]);
    let mut writer = indexer(&gateway, &played);
    let mut url = writer.url();
    let followers = [(); 3].map(|()| follower(&gateway, &played));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _done = Done(&done);
        let readers = followers.each_ref().map(|(_, url)| {
            let done = &done;
            scope.spawn(move || {
                let (mut last, mut answers) = (0, 0_u64);
                while !done.load(Ordering::Relaxed) {
                    let (status, body) = get(&format!(
                        "{url}/indexer/block/v1/blocks?pagination.limit=1&pagination.count_total=true&pagination.reverse=true"
                    ));
                    assert_eq!(status, 200, "{body}");
                    let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
                    let height = body["blocks"].as_array().unwrap().first().map_or(0, |block| number(&block["height"]));
                    assert_eq!(number(&body["pagination"]["total"]), height);
                    assert!(height >= last, "{height} after {last}");
                    last = height;
                    answers += 1;
                }
                answers
            })
        });
        for kill in 0..10 {
            let height = 10 + kill * 20;
            until("the height to be killed at", || {
                (get(&format!("{url}/status")).1["height"].as_u64()? >= height).then_some(())
            });
            // Every other time the next one begins while the last one still runs.
            if kill % 2 == 0 {
                writer.signal("KILL");
            }
            let overtaken = std::mem::replace(&mut writer, indexer(&gateway, &played));
            url = writer.url();
            // It ends by itself, with the code for "do not start it again".
            assert_eq!(overtaken.ended().0, (kill % 2 != 0).then_some(3));
        }
        await_all(&url);
        for (_, url) in &followers {
            await_all(url);
        }
        done.store(true, Ordering::Relaxed);
        let answers = readers.map(|reader| reader.join().unwrap());
        println!("answers of the three query servers: {answers:?}");
    });
    writer.signal("TERM");
    assert_eq!(writer.ended().0, Some(0));
    assert_eq!(remote_digest(&gateway, &played, dir.path()), digest(&local));
}
