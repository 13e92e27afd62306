//! `cairn init`: the node is probed, and the written file starts an index.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Cairn, Played, command, get, printed, refused, run};

/// `cairn init` in `dir`, with settings that suit a recording: exit code, standard output and error.
fn init(dir: &Path, more: &[&str]) -> (i32, String, String) {
    let own = ["init", "--data", "data", "--listen", "127.0.0.1:0", "--poll", "10ms", "--reconcile", "0s"];
    let output = command(&[&own[..], more].concat()).current_dir(dir).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), out, err)
}

/// Standard output of a run that must succeed, and the file.
fn written(dir: &Path, more: &[&str]) -> (String, String) {
    let (code, out, err) = init(dir, more);
    assert_eq!(code, 0, "{err}");
    (out, fs::read_to_string(dir.join("cairn.toml")).unwrap())
}

/// `cairn run` with the file in `dir`.
fn start(dir: &Path) -> Cairn {
    let mut command = command(&["run", "--config", "cairn.toml"]);
    command.current_dir(dir);
    Cairn::spawn(command)
}

/// The services of a node without one of them.
fn without<'a>(services: &[&'a str], service: &str) -> Vec<&'a str> {
    let pairs = services.chunks(2).filter(|pair| pair[0] != service);
    pairs.flatten().copied().collect()
}

/// Exit code and message of a run that must leave no file.
fn refused_without_file(dir: &Path, more: &[&str]) -> (i32, String) {
    let (code, _, err) = init(dir, more);
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "{err}");
    (code, err)
}

#[test]
fn the_file_of_each_vm_starts_an_index() {
    for (recording, vm) in [("evm-scenario", "evm"), ("move-scenario", "move"), ("wasm-scenario", "wasm")] {
        let dir = tempfile::tempdir().unwrap();
        let played = Played::start(recording, &[]);
        let (found, text) = written(dir.path(), &played.services());
        assert!(found.contains("is written; to index and serve the chain: cairn run --config "), "{found}");
        // The recording of wasm begins at height 4.
        assert_eq!(found.contains("The node lacks"), vm == "wasm", "{found}");

        let chain = format!("e2e-{vm}-1");
        for line in [
            format!("chain_id = \"{chain}\""),
            format!("vm = \"{vm}\""),
            "prefix = \"init\"".to_owned(),
            "poll = \"10ms\"".to_owned(),
            "#max_rewind = 10000".to_owned(),
            "#internal_txs = true".to_owned(),
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
        let mode = fs::metadata(dir.path().join("cairn.toml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o137, 0, "{mode:o}");
        assert!(text.contains(
            "# Human-readable part of account addresses; by default the node's reply, and never another"
        ));

        let mut cairn = start(dir.path());
        cairn.logged("caught up");
        cairn.signal("TERM");
        assert_eq!(cairn.ended().0, Some(0));
    }
}

#[test]
fn the_evm_of_a_chain_with_cosmos_evm_is_named_and_nothing_is_lacking_that_the_index_derives() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("cosmos-evm", &[]);
    let (found, text) = written(dir.path(), &played.services());
    assert!(
        found.contains("the EVM is that of cosmos-evm: the chain has cosmos.evm.vm.v1.MsgEthereumTx"),
        "{found}"
    );
    assert!(!found.contains("cannot be indexed"), "{found}");
    for line in
        ["chain_id = \"cosmosevm_9005-1\"", "vm = \"evm\"", "prefix = \"cosmos\"", "#internal_txs = true"]
    {
        assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_health_check_follows_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("move-scenario", &[]);
    written(dir.path(), &played.services());
    let mut cairn = start(dir.path());
    let url = cairn.url();
    cairn.logged("caught up");
    let at = url.strip_prefix("http://").unwrap();
    let check = |more: &[&str]| run(&[&["healthcheck", "--listen", at], more].concat());
    assert!(check(&[]).status.success() && check(&["--ready"]).status.success());
    assert_eq!(get(&format!("{url}/status")).1["chain_id"], "e2e-move-1");
    cairn.signal("TERM");
    cairn.ended();
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains(&format!("no response from http://{at}/healthz")), "{message}");
}

#[test]
fn a_process_without_a_node_is_healthy_and_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let dead = "http://127.0.0.1:1";
    let flags = ["run", "--chain-id", "c-1", "--vm", "none", "--comet", dead, "--listen", "127.0.0.1:0"];
    let mut cairn = Cairn::start(&[&flags[..], &["--data", data.to_str().unwrap()]].concat());
    let url = cairn.logged("listening, there is no database yet")["url"].as_str().unwrap().to_owned();
    let at = url.strip_prefix("http://").unwrap();
    assert!(run(&["healthcheck", "--listen", at]).status.success());
    let (code, message) = refused(&["healthcheck", "--ready", "--listen", at]);
    assert!(code == 1 && message.contains("/readyz answers 503: "), "{code} {message}");
}

#[test]
fn an_existing_file_is_replaced_only_by_force() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cairn.toml");
    fs::write(&file, "chain_id = \"mine\"\n").unwrap();
    let played = Played::start("move-scenario", &[]);
    let (code, _, message) = init(dir.path(), &played.services());
    assert!(code == 1 && message.contains("exists: replace it by --force"), "{code} {message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "chain_id = \"mine\"\n");
    let (_, text) = written(dir.path(), &[&played.services()[..], &["--force"]].concat());
    assert!(text.contains("chain_id = \"e2e-move-1\"\n"), "{text}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_the_node_lacks_is_listed_with_the_setting_of_the_node() {
    let played = Played::start("evm-scenario", &[]);
    let lacking = |options: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let played = Played::start("evm-scenario", options);
        written(dir.path(), &played.services())
    };
    let (found, text) = lacking(&["--fault", "json-rpc:no-tracing"]);
    assert!(found.contains("add `debug` to json-rpc.apis in app.toml"), "{found}");
    assert!(text.contains("\ninternal_txs = false\n"), "{text}");
    let (found, _) = lacking(&["--fault", "null-receipts"]);
    assert!(found.contains("indexer-disable = true under [evm] in its app.toml"), "{found}");
    let (found, _) = lacking(&["--fault", "pruned-receipts=100"]);
    assert!(found.contains("evm.indexer-retain-height = 0"), "{found}");
    let (found, _) = lacking(&["--fault", "discard-abci-responses"]);
    assert!(found.contains("discard_abci_responses = false in [storage]"), "{found}");
    for (fault, words) in [
        ("pruned=100", "the index begins at height 100: set min-retain-blocks = 0"),
        ("rest:pruned=100", "names, URIs and balances of old heights"),
        ("json-rpc:pruned=100", "internal transactions begin at a later height"),
    ] {
        let (found, _) = lacking(&["--fault", fault]);
        assert!(found.contains(words), "{fault}: {found}");
    }

    let dir = tempfile::tempdir().unwrap();
    let services = without(&played.services(), "--rest");
    let off = [&services[..], &["--rest", "http://127.0.0.1:1", "--prefix", "init"]].concat();
    let (found, text) = written(dir.path(), &off);
    assert!(found.contains("an address is left out: rest 127.0.0.1:1"), "{found}");
    assert!(found.contains("api.enable = true in its app.toml"), "{found}");
    assert!(found.contains("rich list disabled: it begins with balances from REST"), "{found}");
    assert!(text.contains("\n#rest = "), "{text}");
}

#[test]
fn without_a_terminal_a_missing_setting_is_an_error_that_names_its_flag() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("evm-scenario", &[]);
    for service in ["--comet", "--json-rpc"] {
        let (code, message) = refused_without_file(dir.path(), &without(&played.services(), service));
        assert!(code == 2 && message.contains(&format!("is not set: give {service}, ")), "{code} {message}");
        let names_key = message.contains("json-rpc.enable = true in the node's app.toml");
        assert_eq!(names_key, service == "--json-rpc", "{message}");
    }
}

#[test]
fn a_chain_at_its_first_block_lacks_nothing() {
    for (height, settled) in [("1", "#internal_txs = true"), ("2", "#internal_txs = true")] {
        let dir = tempfile::tempdir().unwrap();
        let played = Played::start("evm-scenario", &["--up-to", height]);
        let (found, text) = written(dir.path(), &played.services());
        assert!(!found.contains("The node lacks"), "height {height}: {found}");
        assert!(text.lines().any(|line| line == settled), "height {height}: {text}");
    }
    // A fault that passes writes nothing for good either.
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("evm-scenario", &["--up-to", "1", "--fault", "json-rpc:no-tracing"]);
    let (found, text) = written(dir.path(), &played.services());
    assert!(found.contains("add `debug` to json-rpc.apis"), "{found}");
    assert!(text.contains("\ninternal_txs = false\n"), "{text}");
}

#[test]
fn the_prefix_is_the_chains_with_or_without_rest() {
    let played = Played::start("wasm-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let (_, text) = written(dir.path(), &without(&played.services(), "--rest"));
    assert!(text.contains("\nprefix = \"init\"\n"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let other = [&played.services()[..], &["--prefix", "cosmos"]].concat();
    let (code, message) = refused_without_file(dir.path(), &other);
    assert!(
        code == 2 && message.contains("`cosmos` is not the prefix of the chain, which is `init`"),
        "{message}"
    );
}

#[test]
fn an_address_that_the_chain_has_no_use_for_is_left_out_and_named() {
    let (played, evm) = (Played::start("move-scenario", &[]), Played::start("evm-scenario", &[]));
    let json_rpc = evm.services().chunks(2).find(|pair| pair[0] == "--json-rpc").unwrap()[1].to_owned();
    let dir = tempfile::tempdir().unwrap();
    let services = [&played.services()[..], &["--json-rpc", &json_rpc]].concat();
    let (found, text) = written(dir.path(), &services);
    assert!(found.contains("`json_rpc` is not used and left out"), "{found}");
    assert!(text.contains("\n#json_rpc = "), "{text}");
}

#[test]
fn a_wrong_chain_a_mixed_one_and_a_dead_node_leave_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (evm, other) = (Played::start("evm-scenario", &[]), Played::start("evm-load", &[]));
    let wrong = [&evm.services()[..], &["--chain-id", "other-1"]].concat();
    let (code, message) = refused_without_file(dir.path(), &wrong);
    assert!(code == 2 && message.contains("this is chain `e2e-evm-1`, not `other-1`"), "{code} {message}");

    let of_other = |service: &str| {
        let pair = other.services().chunks(2).find(|pair| pair[0] == service).unwrap().to_vec();
        [without(&evm.services(), service), pair].concat()
    };
    let (code, message) = refused_without_file(dir.path(), &of_other("--rest"));
    assert!(code == 2 && message.contains("rest 127.0.0.1"), "{code} {message}");
    let (code, message) = refused_without_file(dir.path(), &of_other("--json-rpc"));
    assert!(code == 2 && message.contains("this is another chain"), "{code} {message}");
    let (code, message) =
        refused_without_file(dir.path(), &[&evm.services()[..], &["--vm", "move"]].concat());
    assert!(code == 2 && message.contains("--vm move: the chain has evm"), "{code} {message}");

    let (code, message) = refused_without_file(dir.path(), &["--comet", "http://127.0.0.1:1"]);
    assert!(code == 1 && message.contains("cannot connect"), "{code} {message}");
}

/// `script` of util-linux gives the program a terminal.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_it_asks_for_what_is_missing() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("evm-scenario", &[]);
    let services = played.services();
    let (file, data) = (dir.path().join("cairn.toml"), dir.path().join("data"));
    let program = command(&[]).get_program().to_str().unwrap().to_owned();
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!("{program} init --config {}", file.display()))
        .arg("/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A refused answer, the address, the node's own chain id, REST, JSON-RPC, no gRPC, the directory.
    let answers =
        ["node:1", services[1], "", services[3], services[5], "-", data.to_str().unwrap()].join("\n") + "\n";
    terminal.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    let output = terminal.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for question in [
        "CometBFT RPC of the node, http:// or https:// [http://127.0.0.1:26657]: ",
        "must begin with http:// or https://",
        "The chain's id [e2e-evm-1]: ",
        "Cosmos REST of the node [http://127.0.0.1:1317, - for none]: ",
        "[http://127.0.0.1:8545]: ",
        "[/var/lib/cairn]: ",
    ] {
        assert!(text.contains(question), "{question} is not in\n{text}");
    }
    let effective = printed(&["config", "--config", file.to_str().unwrap()]);
    for line in [
        format!("data = \"{}\"", data.display()),
        format!("json_rpc = [\"{}\"]", services[5]),
        "# grpc is not set".to_owned(),
    ] {
        assert!(effective.contains(&line), "{line} is not in\n{effective}");
    }
}
