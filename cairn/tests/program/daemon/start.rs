//! Log lines about settings and database at the start.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Cairn, Played, digest, get, post, refused, until};

/// Flags without those of some settings.
fn without<'a>(flags: &[&'a str], settings: &[&str]) -> Vec<&'a str> {
    let mut left = Vec::new();
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        if settings.contains(flag) {
            flags.next();
        } else {
            left.push(*flag);
        }
    }
    left
}

#[test]
fn the_first_log_line_reports_the_database_and_the_end_of_the_previous_process() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &[]);
    let flags = played.flags("run", &data);
    let start = || {
        let mut cairn = Cairn::start(&flags);
        let line = cairn.logged("starting");
        (cairn, line)
    };
    let (mut cairn, first) = start();
    assert_eq!((&first["previous_stop"], &first["height"]), (&"none".into(), &0.into()), "{first}");
    cairn.logged("caught up");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    let (mut cairn, second) = start();
    assert_eq!(second["previous_stop"], "clean", "{second}");
    for lane in ["height", "internal_tx_height", "rich_list_height"] {
        assert_eq!(second[lane], 226, "{second}");
    }
    cairn.url();
    cairn.kill();
    let (_cairn, third) = start();
    assert_eq!(third["previous_stop"], "killed", "{third}");
}

/// Flags with other values for some settings; an empty one removes the setting.
fn with<'a>(flags: &[&'a str], settings: &[(&'a str, &'a str)]) -> Vec<&'a str> {
    let mut all = without(flags, &settings.iter().map(|(flag, _)| *flag).collect::<Vec<_>>());
    all.extend(
        settings.iter().filter(|(_, value)| !value.is_empty()).flat_map(|(flag, value)| [*flag, *value]),
    );
    all
}

/// A recording, further arguments, and a part of the error.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn a_setting_that_contradicts_the_node_is_an_error_before_the_first_row() {
    let dir = tempfile::tempdir().unwrap();
    let other = Played::start("evm-load", &[]);
    let of_other =
        |service: &str| other.services().chunks(2).find(|pair| pair[0] == service).unwrap()[1].to_owned();
    let (rest, json_rpc, comet) = (of_other("--rest"), of_other("--json-rpc"), of_other("--comet"));
    let prefix = "`prefix` is `cosmos`, and the node has `init`";
    let rows: [Row<'_>; 16] = [
        ("wasm-scenario", &[("--prefix", "cosmos")], prefix),
        ("move-scenario", &[("--prefix", "cosmos")], prefix),
        ("evm-scenario", &[("--prefix", "cosmos")], prefix),
        (
            "evm-scenario",
            &[("--prefix", "initvaloper")],
            "`prefix` is `initvaloper`, and the node has `init`",
        ),
        // Without REST the CometBFT RPC has it.
        ("wasm-scenario", &[("--prefix", "cosmos"), ("--rest", "")], prefix),
        ("wasm-scenario", &[("--prefix", "cosmos"), ("--rest", "http://127.0.0.1:1")], prefix),
        ("wasm-scenario", &[("--prefix", "INIT")], "--prefix: `INIT` is not a prefix of addresses"),
        ("evm-scenario", &[("--vm", "move")], "`vm` is `move`, and the node has `evm`"),
        ("evm-scenario", &[("--vm", "none")], "`vm` is `none`, and the node has `evm`"),
        ("evm-scenario", &[("--evm", "cosmos-evm")], "`evm` is `cosmos-evm`, and the node has `minievm`"),
        (
            "move-scenario",
            &[("--evm", "minievm")],
            "`evm` needs a chain with an EVM, and `vm` is `move`: remove it",
        ),
        ("move-scenario", &[("--vm", "wasm")], "`vm` is `wasm`, and the node has `move`"),
        ("evm-scenario", &[("--chain-id", "other-1")], "this is chain `e2e-evm-1`, not `other-1`"),
        ("evm-scenario", &[("--comet", &comet)], "not `e2e-evm-1`; correct the address or `chain_id`"),
        ("evm-scenario", &[("--rest", &rest)], "not `e2e-evm-1`; correct the address or `chain_id`"),
        ("evm-scenario", &[("--json-rpc", &json_rpc)], "this is chain `eip155:"),
    ];
    for (n, (recording, settings, words)) in rows.into_iter().enumerate() {
        let played = Played::start(recording, &[]);
        let data = dir.path().join(n.to_string());
        let (code, message) = refused(&with(&played.flags("run", &data), settings));
        assert!(code == 2 && message.contains(words), "{settings:?}: {code} {message}");
        assert_eq!(crate::support::height(&data), 0, "{settings:?}");
    }
}

#[test]
fn a_chain_with_cosmos_evm_is_indexed_with_verified_receipts_and_all_calls_and_served_as_its_node_serves_it()
{
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("cosmos-evm", &[]);
    let data = dir.path().join("data");
    let flags = played.flags("run", &data);
    let mut cairn = Cairn::start(&[&flags[..], &["--evm-listen", "127.0.0.1:0"]].concat());
    let ours = cairn.logged("serving Ethereum's JSON-RPC")["url"].as_str().unwrap().to_owned();
    let url = cairn.url();
    until("all blocks, calls and balances", || {
        let status = get(&format!("{url}/status")).1;
        let lanes = ["height", "internal_tx_height", "rich_list_height"];
        lanes.iter().all(|lane| status[lane] == 330).then_some(())
    });
    let (code, holders) = get(&format!("{url}/indexer/richlist/v1/ATEST?pagination.limit=1000"));
    let (code_of_address, of_address) =
        get(&format!("{url}/indexer/richlist/v1/0x{}?pagination.limit=1000", "ee".repeat(20)));
    assert_eq!((code, code_of_address, &holders["holders"]), (200, 200, &of_address["holders"]));
    assert!(
        holders["holders"].as_array().unwrap().len() > 30 && holders.get("incomplete").is_none(),
        "{holders}"
    );
    let ask = |url: &str, method: &str, params: Value| -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        post(&format!("{}/", url.trim_end_matches('/')), &request).1["result"].clone()
    };
    let node = *played.services().last().unwrap();
    assert_eq!(ask(&ours, "eth_chainId", json!([])), "0x232d");
    let mut receipts = 0;
    for height in 1..=330 {
        let height = format!("{height:#x}");
        let recorded = ask(node, "eth_getBlockReceipts", json!([height]));
        assert_eq!(ask(&ours, "eth_getBlockReceipts", json!([height])), recorded, "{height}");
        for (index, receipt) in recorded.as_array().unwrap().iter().enumerate() {
            receipts += 1;
            let tx = ask(&ours, "eth_getTransactionByHash", json!([receipt["transactionHash"]]));
            for member in ["blockHash", "blockNumber", "from", "to", "type"] {
                assert_eq!(tx[member], receipt[member], "{member} of {tx}");
            }
            assert_eq!((&tx["gasPrice"], &tx["chainId"]), (&receipt["effectiveGasPrice"], &json!("0x232d")));
            assert_eq!(tx["transactionIndex"], format!("{index:#x}"));
        }
    }
    assert_eq!(receipts, 493);
    cairn.signal("TERM");
    let log = cairn.everything();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");

    // Its Cosmos transactions alone are refused: the chain has an EVM.
    let other = dir.path().join("none");
    let (code, message) = refused(&with(&played.flags("run", &other), &[("--vm", "none")]));
    assert!(code == 2 && message.contains("`vm` is `none`, and the node has `evm`"), "{code} {message}");
}

#[test]
fn a_node_that_is_down_at_the_start_is_compared_with_the_settings_when_it_answers() {
    let dir = tempfile::tempdir().unwrap();
    let mut played = Played::start("wasm-scenario", &[]);
    played.end();
    let flags =
        played.flags("run", &dir.path().join("data")).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let flags: Vec<_> = flags.iter().map(String::as_str).chain(["--prefix", "cosmos"]).collect();
    let mut cairn = Cairn::start(&flags);
    cairn.logged("listening, there is no database yet");
    played.begin(&[]);
    cairn.logged_about("`prefix` is `cosmos`, and the node has `init`");
    assert_eq!(cairn.ended().0, Some(2));
}

#[test]
fn one_of_two_addresses_of_another_chain_is_excluded() {
    let dir = tempfile::tempdir().unwrap();
    let (played, other) = (Played::start("evm-scenario", &[]), Played::start("evm-load", &[]));
    let both = |service: &str| {
        let of = |played: &Played| {
            played.services().chunks(2).find(|pair| pair[0] == service).unwrap()[1].to_owned()
        };
        format!("{},{}", of(&other), of(&played))
    };
    let (comet, rest, json_rpc) = (both("--comet"), both("--rest"), both("--json-rpc"));
    let [mixed, calm] = ["mixed", "calm"].map(|name| dir.path().join(name));
    let flags = played.flags("ingest", &mixed);
    let mut cairn =
        Cairn::start(&with(&flags, &[("--comet", &comet), ("--rest", &rest), ("--json-rpc", &json_rpc)]));
    let excluded = "the endpoint serves another chain and is excluded: correct its address";
    let mut services: Vec<_> = (0..3)
        .map(|_| cairn.logged(excluded)["endpoint"].as_str().unwrap().split(' ').next().unwrap().to_owned())
        .collect();
    services.sort();
    assert_eq!(services, ["comet", "json-rpc", "rest"]);
    cairn.logged("caught up");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    played.index(&calm);
    assert_eq!(digest(&mixed), digest(&calm));
}

#[test]
fn a_disabled_rich_list_is_reported_with_the_reason_by_log_and_api() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &[]);
    let mut flags = without(&played.flags("run", &data), &["--rest"]);
    flags.extend(["--prefix", "init"]);
    let mut cairn = Cairn::start(&flags);
    let entry = cairn.logged("rich list disabled");
    assert!(entry["level"] == "WARN" && entry["reason"].as_str().unwrap().ends_with("set `rest`"), "{entry}");
    let url = cairn.url();
    let (_, status) = get(&format!("{url}/status"));
    assert_eq!(status["rich_list_off"], entry["reason"], "{status}");
    let (code, refused) = get(&format!("{url}/indexer/richlist/v1/GAS"));
    let message = refused["message"].as_str().unwrap();
    assert!(
        code == 404 && message.starts_with("[NOT_FOUND] denom not found: GAS; the rich list is off: "),
        "{message}"
    );
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));

    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    cairn.logged("caught up");
    assert!(get(&format!("{url}/status")).1.get("rich_list_off").is_none());
}

#[test]
fn a_feature_that_a_setting_disables_is_logged_with_the_setting() {
    let dir = tempfile::tempdir().unwrap();
    for recording in ["move-scenario", "wasm-scenario"] {
        let played = Played::start(recording, &[]);
        let data = dir.path().join(recording);
        let mut flags = without(&played.flags("run", &data), &["--rest"]);
        flags.extend(["--prefix", "init"]);
        let mut cairn = Cairn::start(&flags);
        let warned = cairn.logged("no REST address, NFTs are not indexed: set `rest`");
        assert_eq!(warned["level"], "WARN", "{warned}");
    }
    let played = Played::start("evm-scenario", &[]);
    let data = dir.path().join("evm");
    let mut cairn = Cairn::start(&[&played.flags("run", &data)[..], &["--rich-list", "false"]].concat());
    let logged = cairn.logged("rich list disabled");
    let reason = "the setting `rich_list` is false";
    assert_eq!((&logged["level"], &logged["reason"]), (&"INFO".into(), &reason.into()), "{logged}");
    let url = cairn.url();
    assert_eq!(get(&format!("{url}/status")).1["rich_list_off"], reason);
}

#[test]
fn another_vm_or_start_than_the_databases_is_refused_whether_or_not_the_node_answers() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut played = Played::start("evm-scenario", &[]);
    played.index(&data);
    played.end();
    let flags = played.flags("run", &data);
    let vm = [&without(&flags, &["--vm"])[..], &["--vm", "move"]].concat();
    let (code, message) = refused(&vm);
    assert!(code == 2 && message.contains("the database was made with vm `evm`, not `move`"), "{message}");
    let (code, message) = refused(&[&flags[..], &["--prefix", "cosmos"]].concat());
    assert!(
        code == 2 && message.contains("the database was made with prefix `init`, not `cosmos`"),
        "{message}"
    );
    let (code, message) = refused(&[&flags[..], &["--start-height", "5"]].concat());
    assert!(
        code == 2 && message.contains("the database was made with start-height `1`, not `5`"),
        "{message}"
    );
}

#[test]
fn swapped_addresses_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("move-scenario", &[]);
    let flags = played.flags("run", dir.path());
    let at = |service: &str| flags[flags.iter().position(|flag| *flag == service).unwrap() + 1];
    let mut swapped = without(&flags, &["--comet", "--rest"]);
    swapped.extend(["--comet", at("--rest"), "--rest", at("--comet")]);
    let mut cairn = Cairn::start(&swapped);
    let mut named = Vec::new();
    for _ in 0..2 {
        let line = cairn.logged("the endpoint does not answer");
        assert!(line["error"].as_str().unwrap().contains("is this the right service?"), "{line}");
        named.push(line["endpoint"].as_str().unwrap().to_owned());
    }
    named.sort();
    let place = |service, flag| format!("{service} {}", at(flag).strip_prefix("http://").unwrap());
    assert_eq!(named, [place("comet", "--rest"), place("rest", "--comet")]);
}

/// Ends a process, if it still runs, when a test ends.
struct EndOf(String);

impl Drop for EndOf {
    fn drop(&mut self) {
        drop(Command::new("kill").args(["-9", &self.0]).stderr(Stdio::null()).status());
    }
}

#[test]
fn a_program_that_was_started_in_a_terminal_stops_when_the_terminal_is_closed() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: there is no `script`, which makes a terminal");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (data, process) = (dir.path().join("data"), dir.path().join("process"));
    let played = Played::start("move-scenario", &[]);
    let inner = format!(
        "echo $$ > {}; exec {} {} --log-format json",
        process.display(),
        env!("CARGO_BIN_EXE_cairn"),
        played.flags("run", &data).join(" ")
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &inner, "/dev/null"]).current_dir(dir.path()).stdin(Stdio::null());
    let mut terminal = Cairn::spawn_as_is(terminal);
    let _end = EndOf(
        until("the process", || fs::read_to_string(&process).ok().filter(|id| id.ends_with('\n')))
            .trim()
            .to_owned(),
    );
    terminal.printed_about("caught up");
    assert!(data.join("running").exists());
    terminal.kill();
    until("a clean stop", || (!data.join("running").exists()).then_some(()));
}
