//! Outages and resets of the node, with the program's reactions and log lines.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use serde_json::Value;

use crate::support::{Cairn, Played, digest, get, get_text, refused, until};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

/// Flags with another address for one service.
fn with<'a>(mut flags: Vec<&'a str>, service: &str, address: &'a str) -> Vec<&'a str> {
    let at = flags.iter().position(|flag| *flag == service).unwrap();
    flags[at + 1] = address;
    flags
}

fn until_height(url: &str, height: u64) {
    until("a height", || (get(&format!("{url}/status")).1["height"] == height).then_some(()));
}

fn until_not_ready(url: &str, reason: &str) -> String {
    until("a reason not to be ready", || {
        let (code, body) = get_text(&format!("{url}/readyz"));
        (code == 503 && body.contains(reason)).then_some(body)
    })
}

fn until_ready(url: &str) {
    until("to be ready", || (get_text(&format!("{url}/readyz")).0 == 200).then_some(()));
}

/// An address without a listener.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn an_index_is_served_if_the_node_is_down_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut played = Played::start("move-scenario", &[]);
    played.index(&data);
    played.end();
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    assert_eq!(get(&format!("{url}/status")).1["height"], 50);
    let failed = cairn.logged("the endpoint does not answer");
    assert!(failed["endpoint"].as_str().unwrap().starts_with("comet 127.0.0.1:"), "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("Connection refused"), "{failed}");
    let reason = until_not_ready(&url, "waiting for the node: comet: it cannot be reached");
    assert!(reason.starts_with(r#"{"code":14,"#), "{reason}");
    assert_eq!(get_text(&format!("{url}/healthz")).0, 200);

    played.begin(&[]);
    assert!(cairn.logged("the endpoint answers again")["outage_s"].is_u64());
    cairn.logged("caught up");
    until_ready(&url);
    cairn.signal("TERM");
    assert!(!cairn.everything().contains("the endpoint does not answer\",\"endpoint\":\"comet"));
}

#[test]
fn a_new_index_listens_and_reports_that_it_waits_for_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut played = Played::start("move-scenario", &[]);
    played.end();
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.logged("listening, there is no database yet")["url"].as_str().unwrap().to_owned();
    until_not_ready(&url, "it cannot be reached");
    for path in ["status", "indexer/block/v1/blocks", "no/such/path"] {
        let (code, body) = get(&format!("{url}/{path}"));
        assert_eq!((code, &body["code"], &body["details"]), (503, &14.into(), &Value::Array(Vec::new())));
        assert!(body["message"].as_str().unwrap().contains("waiting for the node: comet"), "{body}");
    }
    assert_eq!(get_text(&format!("{url}/healthz")), (200, "ok".to_owned()));

    played.begin(&[]);
    assert_eq!(cairn.url(), url, "the same address");
    cairn.logged("caught up");
    assert_eq!(get(&format!("{url}/status")).0, 200);
    assert_eq!(get(&format!("{url}/no/such/path")).0, 404);
    until_ready(&url);
}

#[test]
fn a_new_index_without_rest_starts_and_reports_the_setting_to_enable() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (played, rest) = (Played::start("move-scenario", &[]), nobody());
    let mut cairn = Cairn::start(&with(played.flags("run", &data), "--rest", &rest));
    // The prefix of addresses is known from the CometBFT RPC.
    let url = cairn.url();
    let failed = cairn.logged("the endpoint does not answer");
    assert!(failed["endpoint"].as_str().unwrap().starts_with("rest "), "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("api.enable = true in its app.toml"), "{failed}");
    until_height(&url, 50);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn a_running_index_continues_without_rest() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &["--block-every", "20ms"]);
    // A second node, for its REST only.
    let mut other = Played::start("evm-scenario", &[]);
    let rest = other.services().chunks(2).find(|pair| pair[0] == "--rest").unwrap()[1].to_owned();
    let mut cairn = Cairn::start(&with(played.flags("run", &data), "--rest", &rest));
    let url = cairn.url();
    until("some heights", || (get(&format!("{url}/status")).1["height"].as_u64() > Some(20)).then_some(()));
    other.end();
    until_height(&url, LAST);
    until_ready(&url);
}

#[test]
fn a_node_that_is_killed_and_restarted_is_logged_once_each_and_followed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut played = Played::start("evm-scenario", &["--up-to", "100"]);
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    cairn.logged("caught up");
    played.end();
    cairn.logged("the endpoint does not answer");
    assert_eq!(get(&format!("{url}/status")).1["height"], 100);
    played.begin(&["--up-to", "200"]);
    cairn.logged("the endpoint answers again");
    until_height(&url, 200);
    cairn.signal("TERM");
    let stderr_text = cairn.everything();
    let times = stderr_text
        .lines()
        .filter(|line| line.contains("the endpoint") && line.contains("comet 127"))
        .count();
    assert_eq!(times, 0, "{stderr_text}");
}

#[test]
fn an_index_whose_node_is_down_for_a_minute_is_not_ready_reports_the_endpoint_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let mut played = Played::start("evm-scenario", &["--up-to", "150"]);
    let mut cairn = Cairn::start(&played.flags("run", &dir.path().join("data")));
    let url = cairn.url();
    cairn.logged("caught up");
    until_ready(&url);
    played.end();
    cairn.logged("the endpoint does not answer");
    // Shorter outages, such as a restart of the node, leave it ready.
    until_ready(&url);
    // More than a minute passes here. The height is the tip minus `ready_lag`.
    let reason = until_not_ready(&url, "no endpoint of the node that has height 100 has answered for 6");
    assert!(reason.contains("; comet: it cannot be reached"), "{reason}");
    assert_eq!(get(&format!("{url}/status")).1["height"], 150, "it still serves");
    played.begin(&[]);
    until_height(&url, LAST);
    until_ready(&url);
}

#[test]
fn a_node_that_has_pruned_the_balances_of_old_heights_delays_the_rich_list_alone_with_one_warning() {
    let dir = tempfile::tempdir().unwrap();
    // A round takes 5 s: the chain grows for three of them.
    let played = Played::start("evm-scenario", &["--block-every", "60ms"]);
    // A second node, for its REST only: it has the state of the last height only.
    let other = Played::start("evm-scenario", &["--fault", "rest:pruned=1000"]);
    let rest = other.services().chunks(2).find(|pair| pair[0] == "--rest").unwrap()[1].to_owned();
    let mut cairn = Cairn::start(&with(played.flags("run", &dir.path().join("data")), "--rest", &rest));
    let url = cairn.url();
    let warning = "baseline state pruned, trying a later height";
    let warned = cairn.logged(warning);
    let (_, status) = get(&format!("{url}/status"));
    assert!(status["height"].as_u64() >= warned["latest"].as_u64(), "blocks go on: {status}");
    assert_eq!((&warned["level"], &status["rich_list_height"]), (&"WARN".into(), &0.into()));
    until("every lane", || {
        let (_, status) = get(&format!("{url}/status"));
        ["height", "internal_tx_height", "rich_list_height"]
            .iter()
            .all(|lane| status[lane] == LAST)
            .then_some(())
    });
    until_ready(&url);
    cairn.signal("TERM");
    assert!(!cairn.everything().contains(warning), "once a minute");
}

#[test]
fn a_node_that_hangs_is_followed_when_it_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("evm-scenario", &["--block-every", "20ms"]);
    let mut cairn = Cairn::start(&played.flags("run", &dir.path().join("data")));
    let url = cairn.url();
    let height = || get(&format!("{url}/status")).1["height"].as_u64().unwrap();
    until("some heights", || (height() > 20).then_some(()));
    played.node.signal("STOP");
    let mut before = height();
    // Replies in flight are indexed; then there are none.
    until("a height that stays", || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        (std::mem::replace(&mut before, height()) == height()).then_some(())
    });
    assert!(before < LAST);
    played.node.signal("CONT");
    until_height(&url, LAST);
}

#[test]
fn a_node_that_does_not_trace_is_logged_with_the_setting_and_other_lanes_continue() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("evm-scenario", &["--fault", "json-rpc:no-tracing"]);
    let data = dir.path().join("data");
    let mut cairn = Cairn::start(&[&played.flags("run", &data)[..], &["--metrics", "127.0.0.1:0"]].concat());
    let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
    let url = cairn.url();
    let stopped = cairn.logged("lane stopped, retrying");
    until("the lane to count as stopped", || stopped_lanes(&metrics).eq(&["internal_txs"]).then_some(()));
    let state = r#"cairn_lane_state{lane="internal_txs",state="stopped"} 1"#;
    until("the state of the lane", || get_text(&metrics).1.contains(state).then_some(()));
    assert_eq!(stopped["lane"], "internal_txs");
    assert!(stopped["error"].as_str().unwrap().contains("add `debug`"), "{stopped}");
    until_height(&url, LAST);
    until("the reason in the readiness", || {
        let (code, body) = get_text(&format!("{url}/readyz"));
        let shown = "no call traces from the node: debug namespace missing, add `debug` to json-rpc.apis in app.toml \
                     (json-rpc.api of cosmos/evm and ethermint)";
        (code == 200
            && body.starts_with("ok, but internal_txs stopped after height ")
            && body.ends_with(shown))
        .then_some(())
    });
    // No node can trace the first block.
    assert!(get(&format!("{url}/status")).1["internal_tx_height"].as_u64() <= Some(1));
}

/// The lanes that have stopped, by the metrics at `url`.
fn stopped_lanes(url: &str) -> Vec<String> {
    let (_, text) = get_text(url);
    let lanes = text.lines().filter_map(|line| line.strip_prefix(r#"cairn_lane_stopped{lane=""#));
    lanes.filter_map(|lane| lane.strip_suffix(r#""} 1"#)).map(str::to_owned).collect()
}

#[test]
fn a_node_that_keeps_no_results_stops_the_index_until_it_is_corrected() {
    let dir = tempfile::tempdir().unwrap();
    let mut played = Played::start("evm-scenario", &["--fault", "comet:discard-abci-responses"]);
    let data = dir.path().join("data");
    let mut cairn = Cairn::start(&[&played.flags("run", &data)[..], &["--metrics", "127.0.0.1:0"]].concat());
    let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
    let url = cairn.url();
    let stopped = cairn.logged("index stopped by the node, retrying");
    assert!(stopped["error"].as_str().unwrap().contains("discard_abci_responses"), "{stopped}");
    until("the lane to count as stopped", || stopped_lanes(&metrics).eq(&["blocks"]).then_some(()));
    played.end();
    played.begin(&[]);
    until_height(&url, LAST);
    assert!(stopped_lanes(&metrics).is_empty());
    let (_, text) = get_text(&metrics);
    let state =
        |state: &str, value: u8| format!(r#"cairn_lane_state{{lane="blocks",state="{state}"}} {value}"#);
    for line in [state("running", 1), state("waiting", 0), state("stopped", 0)] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_node_that_is_rolled_back_and_makes_the_same_blocks_again_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut played = Played::start("evm-scenario", &["--up-to", "150"]);
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    cairn.logged("caught up");
    played.end();
    cairn.logged("the endpoint does not answer");
    played.begin(&["--up-to", "149"]);
    cairn.logged("the endpoint answers again");
    assert_eq!(get(&format!("{url}/status")).1["height"], 150);
    played.end();
    played.begin(&[]);
    until_height(&url, LAST);
    cairn.signal("TERM");
    assert!(!cairn.everything().contains("another history"));
}

#[test]
fn a_node_that_is_rolled_back_and_makes_another_block_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (data, undisturbed) = (dir.path().join("data"), dir.path().join("undisturbed"));
    let other = ["--fork-at", "148", "--fork-seed", "3"];
    let mut played = Played::start("evm-scenario", &[]);
    played.end();
    played.begin(&other);
    played.index(&undisturbed);
    played.end();
    played.begin(&["--up-to", "149"]);
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    cairn.logged("caught up");
    played.end();
    played.begin(&other);
    let back = cairn.logged("rewound");
    assert_eq!((&back["from"], &back["to"]), (&149.into(), &148.into()), "{back}");
    let all = |status: &Value| {
        ["height", "internal_tx_height", "rich_list_height"].map(|lane| status[lane] == LAST)
    };
    until("every lane", || (all(&get(&format!("{url}/status")).1) == [true; 3]).then_some(()));
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    assert_eq!(digest(&data), digest(&undisturbed));
}

#[test]
fn a_restarted_chain_with_the_same_id_ends_the_program_with_one_instruction_and_a_distinct_code() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut played = Played::start("evm-scenario", &["--up-to", "150"]);
    played.index(&data);
    let whole = digest(&data);
    played.end();
    played.begin(&["--fork-at", "0", "--fork-seed", "3", "--up-to", "100"]);
    for max_rewind in ["1000000", "10"] {
        let (code, stderr_text) =
            refused(&[&played.flags("run", &data)[..], &["--max-rewind", max_rewind]].concat());
        assert_eq!(code, 3, "{stderr_text}");
        let instruction = "error: the index at height 150 belongs to another history: the node has none of its blocks. If the \
                           chain was begun anew, delete the data directory or give another one (--data)";
        assert!(
            stderr_text.contains(instruction) && !stderr_text.contains("raise max_rewind"),
            "{stderr_text}"
        );
        assert!(!stderr_text.contains("caught up"), "{stderr_text}");
    }
    assert_eq!(digest(&data), whole, "nothing is removed");
}
