//! Files, environment and flags; the output of `cairn config` can be read back.

use std::fs;

use crate::support::{assert_golden, command, printed, repository};

/// The printed settings, without their sources.
fn values(text: &str) -> Vec<&str> {
    let end = |line: &str| line.find(" # ").unwrap_or(line.len());
    text.lines().map(|line| &line[..end(line)]).filter(|line| !line.starts_with("# ")).collect()
}

#[test]
fn the_example_file_is_generated_and_parses() {
    assert_golden("config.example.toml", &printed(&["config", "--example"]));
    let file = repository("config.example.toml");
    let effective = printed(&["config", "--config", file.to_str().unwrap()]);
    assert!(effective.contains("data = \"/var/lib/cairn\" # "), "{effective}");
}

#[test]
fn the_example_without_comment_signs_parses_and_has_the_defaults() {
    let example = printed(&["config", "--example"]);
    let all: String = example
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.toml");
    fs::write(&file, all).unwrap();
    let effective = printed(&["config", "--config", file.to_str().unwrap()]);
    assert!(!effective.contains("is not set") && !effective.contains("# default"), "{effective}");
    for line in values(&printed(&["config"])) {
        assert!(values(&effective).contains(&line), "{line} is the default, but not in\n{effective}");
    }
}

#[test]
fn the_output_of_config_is_read_back_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cairn.toml");
    let flags = [
        "--chain-id",
        "007",
        "--comet",
        "http://a:1,http://b:2",
        "--cors",
        "none",
        "--log",
        "info,ingest=debug",
    ];
    let more = ["--pagination-empty-cursor", "string", "--start-height", "5", "--internal-txs", "false"];
    let first = printed(&[&["config"], &flags[..], &more].concat());
    fs::write(&file, &first).unwrap();
    let second = printed(&["config", "--config", file.to_str().unwrap()]);
    assert_eq!(values(&first), values(&second));
    assert!(first.contains("chain_id = \"007\" # --chain-id\n"), "{first}");
    assert!(second.contains("comet = [\"http://a:1\", \"http://b:2\"] # "), "{second}");
    assert!(second.contains("[pagination]\nempty_cursor = \"string\""), "{second}");
}

#[test]
fn a_flag_overrides_the_environment_and_that_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cairn.toml");
    fs::write(&file, "poll = \"1s\"\nlook_ahead = 1\ncache = \"16MiB\"\n").unwrap();
    let output = command(&["config", "--poll", "3s"])
        .env("CAIRN_CONFIG", &file)
        .env("CAIRN_POLL", "2s")
        .env("CAIRN_LOOK_AHEAD", "2")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in ["poll = \"3s\" # --poll\n", "look_ahead = 2 # CAIRN_LOOK_AHEAD\n", "cache = \"16MiB\" # "] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn variables_of_rollytics_are_taken_below_every_source_of_cairn_and_warned_of() {
    let variables = [
        ("VM_TYPE", "evm"),
        ("CHAIN_ID", "theirs-1"),
        ("RPC_URL", "http://a:1,http://b:2"),
        ("PORT", "3000"),
        ("DB_DSN", "postgres://me:hunter2@db/x"),
    ];
    let run = |args: &[&str]| {
        let output = command(args).envs(variables).env("CAIRN_CHAIN_ID", "ours-1").output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (_, shown, _) = run(&["config", "--listen", "127.0.0.1:9"]);
    for line in [
        "vm = \"evm\" # VM_TYPE",
        "comet = [\"http://a:1\", \"http://b:2\"] # RPC_URL",
        "chain_id = \"ours-1\" # CAIRN_CHAIN_ID",
        "listen = \"127.0.0.1:9\" # --listen",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    // It ends because an address is not set.
    let (code, _, log) = run(&["run"]);
    assert_eq!(code, Some(2), "{log}");
    let taken = "settings taken from variables of rollytics: set those of cairn \
                 variables=\"RPC_URL -> comet, PORT -> listen, VM_TYPE -> vm\"";
    let ignored = "variables of rollytics without effect: remove them variables=\"DB_DSN\"";
    assert!(log.contains(taken) && log.contains(ignored) && log.contains("`json_rpc` is not set"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}
