//! Killed at random moments and started again, the program ends with the database of an undisturbed run.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Cairn, Played, digest, get, height, until};

const KILLS: u64 = 5;

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

#[test]
fn a_database_after_kills_is_the_one_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    let (calm, rough) = (dir.path().join("calm"), dir.path().join("rough"));
    Played::start("evm-scenario", &[]).index(&calm);

    let played = Played::start("evm-scenario", &["--block-every", "20ms"]);
    // Any heights suffice; these are spread, and the scheduler determines the moment within a commit.
    for kill in 0..KILLS {
        let height = 10 + kill * (LAST - 60) / KILLS;
        let mut cairn = Cairn::start(&played.flags("run", &rough));
        let url = cairn.url();
        until("the height to be killed at", || {
            let (_, status) = get(&format!("{url}/status"));
            (status["height"].as_u64()? >= height).then_some(())
        });
        cairn.kill();
    }
    let mut cairn = Cairn::start(&played.flags("run", &rough));
    let url = cairn.url();
    until("the whole chain", || {
        let (_, status) = get(&format!("{url}/status"));
        let lanes = ["height", "internal_tx_height", "rich_list_height"];
        lanes.iter().all(|lane| status[lane] == LAST).then_some(())
    });
    cairn.kill();
    assert_eq!(digest(&rough), digest(&calm));
}

/// Kills of an ingest at full speed.
const KILLS_AT_SPEED: u32 = 50;

/// Printed on failure, to repeat the run.
const SEED: u64 = 0x5eed_ca1f;

#[test]
fn an_ingest_at_full_speed_survives_fifty_kills_at_random_moments() {
    let dir = tempfile::tempdir().unwrap();
    let (calm, rough) = (dir.path().join("calm"), dir.path().join("rough"));
    // As many transactions as fill several commits.
    let played = Played::start("evm-load", &["--up-to", "260"]);
    let start = Instant::now();
    played.index(&calm);
    // Opening a database, including RocksDB's log, is part of every run; a kill during it tests no commit.
    let run = start.elapsed() / 12;

    let mut random = SEED;
    let mut grown = 0;
    for _ in 0..KILLS_AT_SPEED {
        let cairn = Cairn::start(&played.flags("run", &rough));
        // xorshift64: any spread suffices, and it is the same in every run.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let after = run.mul_f64(f64::from(u32::try_from(random >> 32).unwrap()) / f64::from(u32::MAX) * 2.0);
        cairn.kill_after(after);
        let height = height(&rough);
        assert!(height >= grown, "seed {SEED:#x}: height {height} after {grown}");
        grown = height;
    }
    played.index(&rough);
    assert_eq!(digest(&rough), digest(&calm), "seed {SEED:#x}");
    assert!(run > Duration::ZERO && grown > 0, "seed {SEED:#x}: no run came far enough to be worth a kill");
}

/// Withdrawals of `l1-l2` that were claimed on the layer one.
const CLAIMS: usize = 7;

/// The withdrawals and outputs of the bridge, once all that the layer one says is known.
fn bridge(cairn: &mut Cairn) -> [Value; 2] {
    let url = cairn.url();
    let list = |name: &str| {
        get(&format!("{url}/indexer/bridge/v1/{name}?pagination.limit=100&pagination.reverse=false")).1
    };
    let withdrawals = until("all claims", || {
        let all = list("withdrawals");
        let claimed = all["withdrawals"].as_array()?.iter().filter(|one| one["claimed_tx"].is_string());
        (claimed.count() == CLAIMS).then_some(all)
    });
    [withdrawals, list("outputs")]
}

#[test]
fn killed_while_it_asks_the_layer_one_the_program_ends_with_the_bridge_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    let (calm, rough) = (dir.path().join("calm"), dir.path().join("rough"));
    let (l1, l2) = (Played::start("l1-l2/l1", &[]), Played::start("l1-l2/l2", &[]));
    let services = l1.services();
    let bridged = ["--bridge-l1", services[3], "--bridge-poll", "1s"];
    let start = Instant::now();
    let mut cairn = Cairn::start(&[&l2.flags("run", &calm)[..], &bridged].concat());
    let wanted = bridge(&mut cairn);
    cairn.kill();
    let run = start.elapsed();

    for life in 1..=8 {
        let cairn = Cairn::start(&[&l2.flags("run", &rough)[..], &bridged].concat());
        cairn.kill_after(run * life / 12);
    }
    let mut cairn = Cairn::start(&[&l2.flags("run", &rough)[..], &bridged].concat());
    assert_eq!(bridge(&mut cairn), wanted);
    cairn.kill();
    for data in [&calm, &rough] {
        l2.index(data);
    }
    assert_eq!(digest(&rough), digest(&calm));
}
