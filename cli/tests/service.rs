//! A recorded chain through the whole program: indexed, served, stopped, rolled back, continued.

mod support;

use std::time::Duration;

use support::{Cairn, Played, digest, get, printed, refused, until};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

/// In which a stop must be done.
const STOP: Duration = Duration::from_secs(2);

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

    let (code, said) = refused(&played.flags("run", &data));
    assert_eq!(code, 1);
    assert!(said.contains("is in use: stop the process that writes it"), "{said}");
    let (code, said) = refused(&["db", "rollback", "--to", "100", "--data", at]);
    assert!(code == 1 && said.contains("is in use"), "{said}");
    let whole = digest(&data);

    cairn.signal("TERM");
    let (code, took) = cairn.ended();
    assert!(code == Some(0) && took < STOP, "{code:?} {took:?}");
    assert_eq!(digest(&data), whole);

    let info = printed(&["db", "info", "--data", at]);
    for words in
        ["e2e-evm-1, vm evm, prefix init", "height 226, 655 transactions, 642 EVM", "bytes a transaction"]
    {
        assert!(info.contains(words), "{words} is not in\n{info}");
    }
    let tables = printed(&["db", "digest", "--tables", "--data", at]);
    assert!(tables.starts_with("table ") && tables.ends_with(&format!("\ndigest {whole}\n")), "{tables}");

    let done = printed(&["db", "rollback", "--to", "100", "--data", at]);
    assert!(done.starts_with("rolled back from height 226 to 100\n"), "{done}");
    assert!(printed(&["db", "info", "--data", at]).contains("height 100, "));
    assert_ne!(digest(&data), whole);
    let (code, said) = refused(&["db", "rollback", "--to", "101", "--data", at]);
    assert!(code == 1 && said.contains("the database holds 1 to 100"), "{said}");

    let mut cairn = Cairn::start(&played.flags("run", &data));
    cairn.logged("caught up");
    cairn.signal("INT");
    assert_eq!(cairn.ended().0, Some(0));
    assert_eq!(digest(&data), whole);
}

#[test]
fn a_database_of_another_chain_or_with_another_start_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    Played::start("move-scenario", &[]).index(&data);
    let other = Played::start("wasm-scenario", &[]);
    let (code, said) = refused(&other.flags("run", &data));
    assert_eq!(code, 1);
    assert!(said.contains("chain-id `e2e-move-1`, not `e2e-wasm-1`"), "{said}");
    let (code, said) = refused(&other.flags("query", &data));
    assert!(code == 1 && said.contains("of chain `e2e-move-1`, not `e2e-wasm-1`"), "{said}");
}

#[test]
fn a_query_process_follows_a_database_that_another_one_makes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut query = Cairn::start(&["query", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    query.logged("waiting for the database");

    let played = Played::start("evm-scenario", &["--block-every", "5ms"]);
    let ingest = Cairn::start(&played.flags("ingest", &data));
    let url = query.url();
    let mut heights = Vec::new();
    until("all heights in the query process", || {
        let (_, status) = get(&format!("{url}/status"));
        heights.push(status["height"].as_u64().unwrap());
        (status["height"] == LAST && status["internal_tx_height"] == LAST).then_some(())
    });
    assert!(heights.is_sorted(), "{heights:?}");
    assert_eq!(
        get(&format!("{url}/indexer/tx/v1/txs?pagination.limit=5")).1["txs"].as_array().unwrap().len(),
        5
    );

    for process in [ingest, query] {
        process.signal("TERM");
        let (code, took) = process.ended();
        assert!(code == Some(0) && took < STOP, "{code:?} {took:?}");
    }
}

#[test]
fn a_program_that_waits_for_its_node_stops_when_it_is_told() {
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
    let (code, said) = refused(&flags);
    assert!(code == 1 && said.contains("another-1") && said.contains("e2e-move-1"), "{said}");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = refused(&["demo", "--recording", "recordings/move-scenario", "--listen", &address]);
    assert_eq!(code, 1);
    assert!(
        said.contains(&format!("cannot listen on {address}; choose another address with --listen")),
        "{said}"
    );
}
