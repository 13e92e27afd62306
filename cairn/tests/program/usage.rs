//! Help, version, and errors of wrong usage.

use std::fs;
use std::io::ErrorKind;

use crate::support::{assert_golden, command, printed, refused, until};

#[test]
fn the_help_of_every_command_is_the_golden_one() {
    let commands: [&[&str]; 22] = [
        &[],
        &["init"],
        &["run"],
        &["ingest"],
        &["query"],
        &["healthcheck"],
        &["demo"],
        &["replay"],
        &["record"],
        &["db"],
        &["db", "info"],
        &["db", "digest"],
        &["db", "rollback"],
        &["db", "backup"],
        &["db", "restore"],
        &["db", "export"],
        &["db", "verify"],
        &["db", "reindex"],
        &["route"],
        &["route", "check"],
        &["config"],
        &["openapi"],
    ];
    let mut text = String::new();
    for words in commands {
        let help = printed(&[words, &["--help"]].concat());
        text.push_str(
            &format!("$ cairn {} --help\n{help}\n", words.join(" ")).replace("cairn  --", "cairn --"),
        );
    }
    assert_golden("cairn/tests/golden/help.txt", &text);
}

#[test]
fn the_short_help_has_the_essential_settings_in_one_screen() {
    for words in ["run", "ingest", "query", "init"] {
        let (short, long) = (printed(&[words, "-h"]), printed(&[words, "--help"]));
        assert!(short.lines().count() < 50 && short.lines().count() * 4 < long.lines().count(), "{short}");
        for setting in ["--data <DIR>", "--comet <URL>", "--listen <ADDR>"] {
            assert!(short.contains(setting), "{setting} is not in\n{short}");
        }
        for heading in ["Node:", "Index:", "Serving:", "Limits:", "Routing:"] {
            assert!(long.lines().any(|line| line == heading), "{heading} is not in\n{long}");
        }
        assert!(long.contains("--max-client-streams") && !short.contains("--max-client-streams"), "{short}");
    }
    let all = printed(&["--help"]);
    assert!(all.contains("\n  completions  ") && all.contains("\n  man  "), "{all}");
}

#[test]
fn a_tilde_stands_for_the_home_directory_where_no_shell_replaces_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("cairn.toml");
    fs::write(&file, "data = \"~/data\"\n").unwrap();
    let info = |args: &[&str]| {
        let output = command(args).env("HOME", home.path()).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let none = format!("{} is not a database of this program", home.path().join("data").display());
    for args in [
        &["db", "info", "--config=~/cairn.toml"][..],
        &["db", "info", "--data=~/data"],
        &["db", "info", "--data", "~/./data"],
    ] {
        let message = info(args);
        assert!(
            message.contains(&none) || message.contains("/./data is not a database"),
            "{args:?}: {message}"
        );
    }
    let output =
        command(&["db", "info"]).env("HOME", home.path()).env("CAIRN_DATA", "~/data").output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains(&none));
    assert!(info(&["db", "info", "--data", "~other/data"]).contains("of `~` only one's own home is known"));
    assert!(!fs::exists("~").unwrap());
}

#[test]
fn the_openapi_document_in_the_repository_is_the_output_of_the_program() {
    assert_golden("docs/openapi/indexer.json", &printed(&["openapi"]));
    assert_golden("docs/openapi/route.json", &printed(&["openapi", "--route"]));
}

#[test]
fn the_version_has_the_commit() {
    let version = printed(&["--version"]);
    let commit = version.trim().strip_prefix(concat!("cairn ", env!("CARGO_PKG_VERSION"), " (")).unwrap();
    assert!(commit.ends_with(')') && commit.len() > 1, "{version}");
}

#[test]
fn wrong_usage_exits_with_2_and_a_fault_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("none");
    let data = data.to_str().unwrap();
    for args in [
        &["fly"][..],
        &["run", "--fly"],
        &["run"],
        &["route"],
        &["route", "check"],
        &["db"],
        &["run", "--config", "no-such-file"],
    ] {
        assert_eq!(refused(args).0, 2, "{args:?}");
    }
    let faults = [
        (&["db", "info", "--data", data][..], "holds no database yet"),
        (&["db", "digest", "--data", data], "holds no database yet"),
        (&["db", "rollback", "--to", "5", "--data", data], "holds no database yet"),
        (&["replay", "no-such-recording"], "no-such-recording"),
        (&["demo", "--recording", "no-such-recording"], "no-such-recording"),
    ];
    for (args, words) in faults {
        let (code, message) = refused(args);
        assert_eq!(code, 1, "{args:?}: {message}");
        assert!(message.contains("error: ") && message.contains(words), "{args:?}: {message}");
    }
    assert!(!dir.path().join("none").exists(), "looking at a directory must not make it");
}

#[test]
fn a_demo_without_its_recording_lists_the_searched_places() {
    let dir = tempfile::tempdir().unwrap();
    // A copy of the program without a recording in a parent directory.
    let program = dir.path().join("cairn");
    fs::copy(env!("CARGO_BIN_EXE_cairn"), &program).unwrap();
    // A process that another test starts may have inherited the file while it was written.
    let output = until("a program that nobody writes", || {
        let run = std::process::Command::new(&program).arg("demo").current_dir(dir.path()).output();
        match run {
            Err(busy) if busy.kind() == ErrorKind::ExecutableFileBusy => None,
            other => Some(other.unwrap()),
        }
    });
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("recordings/evm-scenario") && message.contains("--recording DIR"), "{message}");
}

#[test]
fn a_missing_setting_is_reported_with_every_way_to_give_it() {
    let steps = [
        (&[][..], &["chain_id", "vm", "comet", "data"][..]),
        (&["--chain-id", "c-1"], &["vm", "comet", "data"]),
        (&["--vm", "evm"], &["comet", "json_rpc", "data"]),
        (&["--comet", "http://127.0.0.1:1"], &["json_rpc", "data"]),
        (&["--json-rpc", "http://127.0.0.1:1"], &["data"]),
    ];
    let mut args = vec!["run"];
    for (more, settings) in steps {
        args.extend(more);
        let (code, message) = refused(&args);
        assert_eq!(code, 2, "{message}");
        let lines: Vec<_> = message.strip_prefix("error: ").unwrap().lines().collect();
        let (hint, named) = lines.split_last().unwrap();
        assert_eq!(*hint, "`cairn init` asks the node for them and writes the file");
        let named: Vec<_> = named.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
        assert_eq!(named, settings, "{message}");
        let way = "`data` is not set: give --data, CAIRN_DATA or `data` in the file";
        assert!(lines.contains(&way), "{message}");
    }
    let (code, message) = refused(&["query"]);
    assert!(
        code == 2 && message.starts_with("error: `data` is not set: give --follow (or --data), "),
        "{message}"
    );
}

#[test]
fn an_invalid_value_is_refused_with_its_place_and_the_allowed_values() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cairn.toml");
    let config = |text: &str| {
        fs::write(&file, text).unwrap();
        refused(&["config", "--config", file.to_str().unwrap()])
    };
    let (code, message) = config("chain_id = \"c\"\nlook_ahead = 5000\n");
    assert_eq!(code, 2);
    assert!(
        message.ends_with("cairn.toml line 2: `look_ahead`: `5000` is not a number from 1 to 1024\n"),
        "{message}"
    );
    let (_, message) = config("\npagination.empty_curser = \"null\"\n");
    assert!(
        message.contains("line 2: `pagination.empty_curser`")
            && message.contains("`pagination.empty_cursor`"),
        "{message}"
    );
    let (_, message) = config("look_ahead = \n");
    assert!(message.contains("cairn.toml: ") && message.contains("line 1"), "{message}");

    let (code, message) = refused(&["config", "--vm", "EVM"]);
    assert_eq!(
        (code, message.as_str()),
        (2, "error: --vm: unknown vm \"EVM\": use evm, move, wasm or none\n")
    );

    let output = command(&["config"]).env("CAIRN_POLL", "often").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(message, "error: CAIRN_POLL: `often` is not a time from 10ms to 60s\n");
}

#[test]
fn passwords_in_addresses_are_shown_nowhere() {
    let secret = "https://me:hunter2@node.example/hunter2";
    let shown = printed(&["config", "--comet", secret]);
    assert!(
        shown.contains("comet = [\"https://***@node.example/***\"]") && !shown.contains("hunter2"),
        "{shown}"
    );
    let help = command(&["run", "--help"]).env("CAIRN_COMET", secret).output().unwrap();
    assert!(help.status.success() && !String::from_utf8(help.stdout).unwrap().contains("hunter2"));
    let (code, message) = refused(&["config", "--comet", "ftp://me:hunter2@node.example/hunter2"]);
    assert!(
        code == 2 && message.contains("ftp://***@node.example/***") && !message.contains("hunter2"),
        "{message}"
    );
}
