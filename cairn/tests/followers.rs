//! `cairn query` beside the writing process: every reply is of one snapshot; and its age.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]
#![allow(clippy::print_stdout, reason = "prints figures")]

#[path = "program/support/mod.rs"]
mod support;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Cairn, Played, get, repository, until};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

/// Transactions up to each height of the recording; the first entry is for height 0.
fn totals() -> Vec<u64> {
    let file = File::open(repository("testing/recordings/evm-scenario/blocks.ndjson.zst")).unwrap();
    let mut totals = vec![0];
    for line in BufReader::new(zstd::Decoder::new(file).unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let txs = line["block"]["block"]["data"]["txs"].as_array().map_or(0, Vec::len);
        totals.push(totals.last().unwrap() + u64::try_from(txs).unwrap());
    }
    totals
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

/// One reply about transactions and one about blocks, each of which must be of one height; returns the later height.
fn look(url: &str, totals: &[u64]) -> u64 {
    let page = "pagination.limit=1&pagination.count_total=true&pagination.reverse=true";
    let (status, txs) = get(&format!("{url}/indexer/tx/v1/txs?{page}"));
    assert_eq!(status, 200, "{txs}");
    let total = number(&txs["pagination"]["total"]);
    if let Some(newest) = txs["txs"].as_array().unwrap().first() {
        let height = number(&newest["height"]);
        assert_eq!(totals[usize::try_from(height).unwrap()], total, "up to height {height}");
    } else {
        assert_eq!(total, 0);
    }
    let (status, blocks) = get(&format!("{url}/indexer/block/v1/blocks?{page}"));
    assert_eq!(status, 200, "{blocks}");
    let height = blocks["blocks"].as_array().unwrap().first().map_or(0, |block| number(&block["height"]));
    assert_eq!(number(&blocks["pagination"]["total"]), height);
    height
}

fn follower(data: &Path) -> (Cairn, String) {
    let mut cairn = Cairn::start(&["query", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let url = cairn.url();
    (cairn, url)
}

#[test]
fn every_answer_is_of_one_height_while_blocks_come() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let totals = totals();
    let played = Played::start("evm-scenario", &["--block-every", "10ms"]);
    let mut writer = Cairn::start(&played.flags("run", &data));
    let url = writer.url();
    let followers = [follower(&data), follower(&data)];
    let urls = [&url, &followers[0].1, &followers[1].1];
    let answers: Vec<usize> = thread::scope(|scope| {
        let threads = urls.map(|url| {
            scope.spawn(|| {
                let mut seen = Vec::new();
                while seen.last() != Some(&LAST) {
                    let height = look(url, &totals);
                    assert!(seen.last().is_none_or(|last| *last <= height), "{height} after {seen:?}");
                    seen.push(height);
                }
                seen.dedup();
                seen.len()
            })
        });
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert!(answers.iter().all(|heights| *heights > 3), "too few heights were seen: {answers:?}");
}

/// The time at which each height was first seen at a server.
fn sightings(url: &str, last: u64) -> Vec<(u64, Instant)> {
    let mut seen: Vec<(u64, Instant)> = Vec::new();
    while seen.last().is_none_or(|(height, _)| *height < last) {
        let (_, status) = get(&format!("{url}/status"));
        let height = status["height"].as_u64().unwrap_or(0);
        if seen.last().is_none_or(|(known, _)| *known < height) {
            seen.push((height, Instant::now()));
        }
        thread::sleep(Duration::from_millis(1)); // Leaves CPU time to the servers.
    }
    seen
}

fn percentile(ages: &[Duration], percent: usize) -> Duration {
    ages[(ages.len() * percent / 100).min(ages.len() - 1)]
}

/// The delay with which each of three followers shows a height after its writer.
fn ages(recording: &str, every: &[&str], first: u64, last: u64) -> Vec<Duration> {
    let dir = tempfile::tempdir().unwrap();
    let data: PathBuf = dir.path().join("data");
    let played = Played::start(recording, every);
    let mut writer = Cairn::start(&played.flags("run", &data));
    let url = writer.url();
    let followers = [follower(&data), follower(&data), follower(&data)];
    until("the first heights", || {
        (get(&format!("{url}/status")).1["height"].as_u64()? >= first).then_some(())
    });
    let all = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let writer = scope.spawn(|| sightings(&url, last));
        let followers = followers.each_ref().map(|(_, url)| scope.spawn(|| sightings(url, last)));
        let written = writer.join().unwrap();
        for follower in followers {
            let shown = follower.join().unwrap();
            for (height, at) in &written {
                let (_, seen) = shown.iter().find(|(shown, _)| shown >= height).unwrap();
                all.lock().unwrap().push(seen.saturating_duration_since(*at));
            }
        }
    });
    let mut ages = all.into_inner().unwrap();
    ages.sort();
    println!(
        "{recording} {every:?}: {} sightings, p50 {:?}, p99 {:?}, most {:?}",
        ages.len(),
        percentile(&ages, 50),
        percentile(&ages, 99),
        ages.last().unwrap()
    );
    ages
}

#[test]
#[ignore = "measures: cargo test --release --test followers -- --ignored --nocapture"]
fn three_followers_are_at_most_a_tenth_of_a_second_behind() {
    let steady = ages("evm-scenario", &["--block-every", "100ms"], 5, LAST);
    let full_speed = ages("evm-load", &[], 1, 770);
    assert!(percentile(&steady, 99) < Duration::from_millis(100));
    assert!(!full_speed.is_empty());
}
