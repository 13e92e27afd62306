//! A recorded chain through the whole program: indexed, served, stopped, rolled back, continued.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Cairn, Played, digest, get, get_text, printed, refused, until};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

/// Maximum duration of a stop: the documented two seconds, and what a busy machine adds.
const STOP: Duration = Duration::from_secs(5);

/// The newest options of a table, which RocksDB writes into a file at each change.
fn options_of(table: &str, data: &Path) -> Option<String> {
    let files = fs::read_dir(data).ok()?.filter_map(|file| Some(file.ok()?.path()));
    let name = |file: &PathBuf| Some(file.file_name()?.to_str()?.to_owned());
    let newest =
        files.filter(|file| name(file).is_some_and(|name| name.starts_with("OPTIONS-"))).max_by_key(name)?;
    let text = fs::read_to_string(newest).ok()?;
    let (_, own) = text.split_once(&format!("[CFOptions \"{table}\"]"))?;
    Some(own.split_once("\n[")?.0.to_owned())
}

#[test]
fn the_files_of_tables_with_unordered_keys_are_merged_early_once_the_index_has_caught_up() {
    let played = Played::start("evm-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut cairn = Cairn::start(&played.flags("run", &data));
    cairn.logged("caught up");
    for table in ["tx_by_hash", "count"] {
        until("the options", || {
            options_of(table, &data).filter(|text| text.contains("level0_file_num_compaction_trigger=2\n"))
        });
    }
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn a_chain_is_indexed_served_stopped_rolled_back_and_continued() {
    let played = Played::start("evm-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();

    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    let arrived = cairn.logged("caught up");
    assert_eq!((&arrived["height"], &arrived["internal_tx_height"]), (&LAST.into(), &LAST.into()));
    let (code, status) = get(&format!("{url}/status"));
    assert_eq!((code, &status["height"], &status["internal_tx_height"]), (200, &LAST.into(), &LAST.into()));
    assert_eq!(status["chain_id"], "e2e-evm-1");
    assert_eq!(get(&format!("{url}/indexer/block/v1/blocks/{LAST}")).0, 200);
    assert_eq!(get_text(&format!("{url}/readyz")), (200, "ok".to_owned()));
    let (code, page) = get_text(&format!("{url}/"));
    assert!(code == 200 && page.contains("at the head of the chain"), "{code} {page}");

    let (code, message) = refused(&played.flags("run", &data));
    assert_eq!(code, 1);
    assert!(message.contains("is in use: stop the process that writes it"), "{message}");
    let (code, message) = refused(&["db", "rollback", "--to", "100", "--data", at]);
    assert!(code == 1 && message.contains("is in use"), "{message}");
    let whole = digest(&data);

    cairn.signal("TERM");
    let (code, took) = cairn.ended();
    assert!(code == Some(0) && took < STOP, "{code:?} {took:?}");
    assert_eq!(digest(&data), whole);

    let info = printed(&["db", "info", "--data", at]);
    for words in [
        "e2e-evm-1, vm evm, prefix init",
        "height 226, 655 transactions, 642 EVM",
        "bytes a transaction",
        "undo log      back to height 0, ",
    ] {
        assert!(info.contains(words), "{words} is not in\n{info}");
    }
    let tables = printed(&["db", "digest", "--tables", "--data", at]);
    assert!(tables.starts_with("table ") && tables.ends_with(&format!("\ndigest {whole}\n")), "{tables}");

    let done = printed(&["db", "rollback", "--to", "100", "--data", at]);
    assert!(done.starts_with("rolled back from height 226 to 100\n"), "{done}");
    assert!(printed(&["db", "info", "--data", at]).contains("height 100, "));
    assert_ne!(digest(&data), whole);
    let (code, message) = refused(&["db", "rollback", "--to", "101", "--data", at]);
    assert!(code == 1 && message.contains("the database holds 1 to 100"), "{message}");

    let mut cairn = Cairn::start(
        &[&played.flags("run", &data)[..], &["--metrics", "127.0.0.1:0", "--explorer", "false"]].concat(),
    );
    let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
    let url = cairn.url();
    assert_eq!(get(&format!("{url}/")).0, 404, "the pages are switched off");
    cairn.logged("caught up");
    assert_eq!(get(&format!("{url}/status")).0, 200);
    let (code, text) = get_text(&metrics);
    assert_eq!(code, 200);
    for line in [
        "cairn_height{of=\"blocks\"} 226",
        "cairn_height{of=\"rich_list\"} 226",
        "cairn_ready 1",
        "cairn_build_info{version=",
        "cairn_last_block_time_seconds 1",
        "cairn_database_bytes ",
        "cairn_lane_stopped{lane=\"internal_txs\"} 0",
        "cairn_node_endpoint_up{service=\"comet\",",
        "cairn_node_endpoint_websocket{service=\"comet\",",
        "cairn_http_requests_total{endpoint=\"/status\",status=\"200\"} 1",
        "cairn_http_request_seconds_bucket{endpoint=\"/status\",le=\"10\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let sample = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_default()
    };
    let cpu = sample("process_cpu_seconds_total");
    // The program has indexed for some seconds at most, and the exporter rounds nothing.
    assert!(0.0 < cpu && cpu < 1000.0 && cpu.fract() > 0.0, "{cpu}");
    let resident = sample("process_resident_memory_bytes");
    assert!((4e6..4e9).contains(&resident), "{resident}");
    assert!(sample("cairn_disk_free_bytes") > 1e6 && sample("cairn_database_bytes") > 1e4, "{text}");
    cairn.signal("INT");
    assert_eq!(cairn.ended().0, Some(0));
    assert_eq!(digest(&data), whole);
}

#[test]
fn a_client_beyond_its_rate_is_refused_and_probes_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &[]);
    let mut cairn = Cairn::start(&[&played.flags("run", &data)[..], &["--rate-limit", "1/s:2"]].concat());
    let url = cairn.url();
    // A third request within the second that a token takes.
    until("a refusal", || (get_text(&format!("{url}/status")).0 == 429).then_some(()));
    for path in ["healthz", "readyz"] {
        assert_ne!(get_text(&format!("{url}/{path}")).0, 429);
    }
    assert_eq!(get_text(&format!("{url}/healthz")), (200, "ok".to_owned()));
}

#[test]
fn a_database_of_another_chain_or_with_another_start_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    Played::start("move-scenario", &[]).index(&data);
    let other = Played::start("wasm-scenario", &[]);
    let (code, message) = refused(&other.flags("run", &data));
    assert_eq!(code, 2);
    assert!(message.contains("chain-id `e2e-move-1`, not `e2e-wasm-1`"), "{message}");
    let (code, message) = refused(&other.flags("query", &data));
    assert!(code == 1 && message.contains("of chain `e2e-move-1`, not `e2e-wasm-1`"), "{message}");
}

#[test]
fn a_query_process_follows_a_database_that_another_one_makes_and_makes_again_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let flags =
        ["query", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut query = Cairn::start(&flags);
    let metrics = query.logged("metrics")["url"].as_str().unwrap().to_owned();
    query.logged("waiting for the database");

    let played = Played::start("evm-scenario", &["--block-every", "10ms"]);
    let ingest = Cairn::start(&played.flags("ingest", &data));
    let url = query.url();
    let mut heights = Vec::new();
    let mut until_height = |height| {
        until("a height in the query process", || {
            let (_, status) = get(&format!("{url}/status"));
            heights.push(status["height"].as_u64().unwrap());
            (status["height"].as_u64() >= Some(height)
                && status["internal_tx_height"].as_u64() >= Some(height))
            .then_some(())
        });
    };
    until_height(20);
    ingest.kill();
    let ingest = Cairn::start(&played.flags("ingest", &data));
    until_height(LAST);
    assert!(heights.is_sorted(), "{heights:?}");
    assert_eq!(get_text(&format!("{url}/readyz")), (200, "ok".to_owned()));
    assert_eq!(
        get(&format!("{url}/indexer/tx/v1/txs?pagination.limit=5")).1["txs"].as_array().unwrap().len(),
        5
    );
    let (code, counted) = get_text(&metrics);
    let line = "cairn_http_requests_total{endpoint=\"/indexer/tx/v1/txs\",status=\"200\"} 1";
    assert!(code == 200 && counted.contains(line), "{counted}");
    assert!(counted.contains("cairn_ready 1") && counted.contains("cairn_disk_free_bytes "), "{counted}");

    for process in [ingest, query] {
        process.signal("TERM");
        let (code, took) = process.ended();
        assert!(code == Some(0) && took < STOP, "{code:?} {took:?}");
    }
}

#[test]
fn a_query_process_survives_a_temporarily_missing_database() {
    let dir = tempfile::tempdir().unwrap();
    let (data, away) = (dir.path().join("data"), dir.path().join("away"));
    let played = Played::start("evm-scenario", &["--block-every", "10ms"]);
    let ingest = Cairn::start(&played.flags("ingest", &data));
    let mut query = Cairn::start(&["query", "--follow", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let url = query.url();
    let height = || get(&format!("{url}/status")).1["height"].as_u64().unwrap();
    until("a height", || (height() > 0).then_some(()));
    ingest.signal("TERM");
    assert_eq!(ingest.ended().0, Some(0));

    std::fs::rename(&data, &away).unwrap();
    query.logged("the database cannot be followed for now");
    until("not to be ready", || (get_text(&format!("{url}/readyz")).0 == 503).then_some(()));
    std::fs::rename(&away, &data).unwrap();
    query.logged("the database is followed again");
    let _ingest = Cairn::start(&played.flags("ingest", &data));
    until("the last height", || (height() == LAST).then_some(()));
    assert_eq!(get_text(&format!("{url}/readyz")), (200, "ok".to_owned()));
    query.signal("TERM");
    assert_eq!(query.ended().0, Some(0));
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let played = Played::start("move-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let mut cairn = Cairn::start(&played.flags("run", dir.path()));
    let url = cairn.url();
    cairn.logged("caught up");
    // A request that does not end delays the clean stop for the whole grace period.
    let mut stream = std::net::TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /status HTTP/1.1\r\n").unwrap();
    cairn.signal("INT");
    cairn.logged("stopping; a second signal ends the process at once");
    cairn.signal("INT");
    assert_eq!(cairn.ended().0, Some(130));
}

#[test]
fn a_recording_of_a_replayed_node_is_a_chain_for_the_demo() {
    // The whole chain: the replies about state that a recording has are those of its last height.
    let played = Played::start("move-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("again");
    let out = out.to_str().unwrap();
    let reloaded = printed(&[&["record", "--out", out], &played.services()[..]].concat());
    assert!(reloaded.contains("again: e2e-move-1 heights 1 to 50, 34 transactions"), "{reloaded}");

    let mut demo = Cairn::start(&["demo", "--recording", out, "--listen", "127.0.0.1:0"]);
    demo.line("e2e-move-1 is indexed: 34 transactions in heights 1 to 50");
}

#[test]
fn a_start_that_the_node_has_pruned_is_refused_with_its_first_height() {
    // This chain's recording begins at height 4.
    let played = Played::start("wasm-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let (code, message) = refused(&[&played.flags("run", dir.path())[..], &["--start-height", "2"]].concat());
    assert_eq!(code, 1);
    assert!(
        message.contains("\nerror: height 2 is the next to index, but the node only has 4 and later"),
        "{message}"
    );
}

#[test]
fn a_program_that_waits_for_its_node_stops_on_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let nobody = "http://127.0.0.1:1";
    let mut cairn = Cairn::start(
        &[
            &[
                "run",
                "--data",
                data.to_str().unwrap(),
                "--listen",
                "127.0.0.1:0",
                "--chain-id",
                "c",
                "--vm",
                "move",
            ][..],
            &["--comet", nobody, "--rest", nobody],
        ]
        .concat(),
    );
    cairn.logged_about("status");
    cairn.signal("TERM");
    let (code, took) = cairn.ended();
    assert!(code == Some(0) && took < STOP, "{code:?} {took:?}");
}

#[test]
fn a_node_of_another_chain_ends_the_program_with_the_reason() {
    let played = Played::start("move-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let mut flags = played.flags("run", dir.path());
    let chain = flags.iter().position(|flag| *flag == "e2e-move-1").unwrap();
    flags[chain] = "another-1";
    let (code, message) = refused(&flags);
    assert!(code == 2 && message.contains("another-1") && message.contains("e2e-move-1"), "{message}");
}

#[test]
fn an_address_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, message) = refused(&[
        "demo",
        "--recording",
        "testing/recordings/move-scenario",
        "--listen",
        &address,
        "--route-listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(code, 1);
    assert!(
        message.contains(&format!("cannot listen on {address}; choose another address with --listen")),
        "{message}"
    );
}
