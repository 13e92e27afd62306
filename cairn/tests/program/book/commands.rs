//! The commands of the book, run as a reader runs them.
//!
//! | block | meaning |
//! |---|---|
//! | `sh` | runs with `sh -eu` and must succeed; it is repeated until it does, because servers take a moment to start |
//! | `sh,server` | one command, which runs in the background until the end of the chapter |
//! | `sh,ignore` | is not run; the text before it names the reason |
//! | `json`, `text` after `sh` | its output: JSON of which members and elements may be left out, or some of its lines; `…` ends a shortened text |
//!
//! The blocks of a chapter run in order, in an empty directory with links to the directories of the repository.
//! `cairn` is the program under test. Each address `127.0.0.1:PORT` stands for the same address with a free port.

use std::collections::HashMap;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

use super::markdown::{Block, blocks, chapters};
use crate::support::{Cairn, repository};

/// How long a block is repeated, and the pause between.
const PATIENCE: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(200);

/// Seconds after which a command is ended.
const TIMEOUT: &str = "60";

/// The host of the addresses in the book.
const HOST: &str = "127.0.0.1:";

/// The chapters whose blocks the tests below run.
const CHAPTERS: [&str; 10] = [
    "api.md",
    "ethereum.md",
    "etherscan.md",
    "migration.md",
    "operate.md",
    "registry.md",
    "relay.md",
    "start.md",
    "swaps.md",
    "transfer.md",
];

#[test]
fn every_chapter_with_commands_is_run() {
    let has_commands = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        blocks(&text).iter().any(|block| matches!(&*block.info, "sh" | "sh,server"))
    };
    let chapters = chapters().into_iter().filter(has_commands);
    let names: Vec<_> = chapters.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, CHAPTERS);
}

#[test]
fn the_commands_of_the_start_run() {
    assert!(run("start.md") >= 5);
}

#[test]
fn the_commands_of_the_operator_guide_run() {
    assert!(run("operate.md") >= 5);
}

#[test]
fn the_requests_of_the_api_guide_are_answered_as_shown() {
    assert!(run("api.md") >= 15);
}

#[test]
fn the_requests_of_the_guide_to_json_rpc_are_answered_as_shown() {
    assert!(run("ethereum.md") >= 3);
}

#[test]
fn the_requests_of_the_chapter_on_etherscan_are_answered_as_shown() {
    assert!(run("etherscan.md") >= 4);
}

#[test]
fn the_transfer_of_the_routing_guide_is_answered_as_shown() {
    assert!(run("transfer.md") >= 5);
}

#[test]
fn the_swaps_of_the_guide_to_swaps_are_answered_as_shown() {
    assert!(run("swaps.md") >= 6);
}

#[test]
fn the_commands_of_the_guide_to_registries_run() {
    assert!(run("registry.md") >= 1);
}

#[test]
fn the_requests_of_relayers_and_bridge_operators_are_answered_as_shown() {
    assert!(run("relay.md") >= 9);
}

#[test]
fn the_commands_of_the_guide_to_migration_run() {
    assert!(run("migration.md") >= 1);
}

/// Runs the blocks of a chapter; returns how many of them.
fn run(chapter: &str) -> usize {
    let text = fs::read_to_string(repository("docs/src").join(chapter)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for name in ["docs", "routing", "testing"] {
        symlink(fs::canonicalize(repository(name)).unwrap(), dir.path().join(name)).unwrap();
    }
    let mut addresses = Addresses::default();
    let mut servers = Vec::new();
    let mut done = 0;
    let blocks = blocks(&text);
    for (index, block) in blocks.iter().enumerate() {
        let script = addresses.replaced(&block.text);
        match block.info.as_str() {
            "sh" => {
                let output = blocks.get(index + 1).filter(|next| matches!(&*next.info, "json" | "text"));
                let shown = output.map(|next| Block { text: addresses.replaced(&next.text), ..next.clone() });
                repeat(&script, shown.as_ref(), dir.path())
                    .unwrap_or_else(|reason| panic!("docs/src/{chapter}:{}: {reason}\n{script}", block.line));
                done += 1;
            }
            "sh,server" => {
                servers.push(Cairn::spawn_as_is(shell(&["sh"], &format!("exec {script}"), dir.path())));
                done += 1;
            }
            _ => {}
        }
    }
    done
}

/// `script` in `dir`, run by the command `words`, with the program under test and without the caller's settings.
fn shell(words: &[&str], script: &str, dir: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_cairn"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["-eu", "-c", script]).current_dir(dir);
    command.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CAIRN_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs `script` until it succeeds with the output that the book shows; fails with the last difference.
fn repeat(script: &str, shown: Option<&Block>, dir: &Path) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let outcome = once(script, shown, dir);
        if outcome.is_ok() || start.elapsed() > PATIENCE {
            return outcome;
        }
        thread::sleep(PAUSE);
    }
}

fn once(script: &str, shown: Option<&Block>, dir: &Path) -> Result<(), String> {
    let output = shell(&["timeout", TIMEOUT, "sh"], script, dir).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("{}: {out}{err}", output.status));
    }
    let difference = match shown {
        Some(block) if block.info == "json" => {
            let parse = |text: &str| serde_json::from_str(text).map_err(|error| format!("{error}: {text}"));
            difference(&parse(&block.text)?, &parse(&out)?, "the answer")
        }
        Some(block) => missing_line(&block.text, &format!("{out}{err}")),
        None => None,
    };
    difference.map_or(Ok(()), Err)
}

/// A line of `shown` that `output` does not have.
fn missing_line(shown: &str, output: &str) -> Option<String> {
    let has = |line: &str| match line.strip_suffix('…') {
        Some(start) => output.lines().any(|found| found.trim().starts_with(start)),
        None => output.lines().any(|found| found.trim() == line),
    };
    let missing = shown.lines().map(str::trim).find(|line| !line.is_empty() && !has(line))?;
    Some(format!("no line `{missing}` in\n{output}"))
}

/// A member or element of `shown` that `answer` does not have.
fn difference(shown: &Value, answer: &Value, path: &str) -> Option<String> {
    match (shown, answer) {
        (Value::Object(shown), Value::Object(answer)) => shown.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            answer.get(name).map_or_else(
                || Some(format!("{path} is missing in {answer:?}")),
                |found| difference(value, found, &path),
            )
        }),
        (Value::Array(shown), Value::Array(answer)) => shown.iter().enumerate().find_map(|(index, value)| {
            let path = format!("{path}[{index}]");
            answer
                .get(index)
                .map_or_else(|| Some(format!("{path} is missing")), |found| difference(value, found, &path))
        }),
        (Value::String(shown), Value::String(answer))
            if shown.strip_suffix('…').is_some_and(|start| answer.starts_with(start)) =>
        {
            None
        }
        (shown, answer) => (shown != answer).then(|| format!("{path} is {answer}, not {shown}")),
    }
}

/// Free ports for those of the book.
#[derive(Default)]
struct Addresses(HashMap<String, u16>);

impl Addresses {
    /// `text` with the free ports.
    fn replaced(&mut self, text: &str) -> String {
        let mut parts = text.split(HOST);
        let mut replaced = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let (port, rest) = part.split_at(end);
            let free = *self.0.entry(port.to_owned()).or_insert_with(free_port);
            replaced.extend([HOST, &free.to_string(), rest]);
        }
        replaced
    }
}

/// A port that is free now, below those that the system gives to other tests (from 32768 on Linux), and not given before.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
    let mut candidates = (0..100).map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed) % 100);
    candidates.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

#[test]
fn a_shown_answer_may_be_shortened_and_not_wrong() {
    let answer = serde_json::json!({ "a": [1, 2], "b": "long text", "c": null });
    let check = |shown: Value| difference(&shown, &answer, "the answer");
    assert_eq!(check(serde_json::json!({ "a": [1], "b": "long…" })), None);
    assert_eq!(check(serde_json::json!({ "a": [2] })), Some("the answer.a[0] is 1, not 2".to_owned()));
    assert_eq!(
        check(serde_json::json!({ "b": "short…" })).unwrap(),
        "the answer.b is \"long text\", not \"short…\""
    );
    assert!(check(serde_json::json!({ "d": 1 })).unwrap().starts_with("the answer.d is missing"));
    assert_eq!(missing_line("one\nth…", "zero\n one \nthree"), None);
    assert!(missing_line("two", "one").unwrap().starts_with("no line `two`"));
}
