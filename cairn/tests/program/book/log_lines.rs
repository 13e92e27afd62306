//! The log lines in `docs/src/logs.md`, against the sources: all warnings and errors, and some others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::repository;

/// Directories of the sources of what operators run; `replay/` is for those who test.
const SOURCES: &[&str] = &["cairn", "crates", "frontends", "ingest", "proto", "query", "routing", "schema"];

/// Parts that are not in the program.
const NOT_SHIPPED: &[&str] = &["tests", "examples", "benches", "tests.rs"];

/// A level and a message.
type Line = (&'static str, String);

#[test]
fn every_warning_and_error_is_documented_and_every_documented_one_exists() {
    let mut logged = BTreeSet::new();
    for dir in SOURCES {
        collect(&repository(dir), &mut logged);
    }
    assert!(logged.len() > 50, "only {} messages were found", logged.len());
    let documented: BTreeSet<_> =
        fs::read_to_string(repository("docs/src/logs.md")).unwrap().lines().filter_map(row).collect();
    let missing: Vec<_> = logged.difference(&documented).filter(|(level, _)| *level != "info").collect();
    let stale: Vec<_> = documented.difference(&logged).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "not in docs/src/logs.md: {missing:#?}\nonly there: {stale:#?}"
    );
}

/// The level and the message of a row of a table.
fn row(line: &str) -> Option<Line> {
    let mut columns = line.strip_prefix('|')?.split('|').map(str::trim);
    let level = match columns.next()? {
        "INFO" => "info",
        "WARN" => "warn",
        "ERROR" => "error",
        _ => return None,
    };
    // A message with backticks is between two of them.
    let message = columns.next()?;
    let message = message.strip_prefix("`` ").and_then(|rest| rest.strip_suffix(" ``")).unwrap_or(message);
    Some((
        level,
        message.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).unwrap_or(message).to_owned(),
    ))
}

fn collect(path: &Path, found: &mut BTreeSet<Line>) {
    let name = path.file_name().unwrap().to_str().unwrap();
    if NOT_SHIPPED.contains(&name) {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|end| end == "rs") {
        let text = fs::read_to_string(path).unwrap();
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .flat_map(|line| [line, "\n"])
            .collect();
        for level in ["info", "warn", "error"] {
            for (at, call) in code.match_indices(&format!("{level}!(")) {
                let before = code[..at].chars().next_back();
                if !before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                    let message = last_text(&code[at + call.len()..]);
                    let message = message.unwrap_or_else(|| panic!("no message: {}", path.display()));
                    found.insert((level, constant(&code, &message).unwrap_or(message)));
                }
            }
        }
    }
}

/// The last string literal before the parenthesis that closes the arguments `code`: the message of the macro.
fn last_text(code: &str) -> Option<String> {
    let (mut depth, mut last) = (1, None);
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '"' => last = Some(literal(&mut chars)),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    last
}

/// The value of the constant that is the whole of a message such as `{NAME}`.
fn constant(code: &str, message: &str) -> Option<String> {
    let name = message.strip_prefix('{')?.strip_suffix('}')?;
    let (_, value) = code.split_once(&format!("const {name}: &str = \""))?;
    Some(literal(&mut value.chars()))
}

/// The rest of a string literal. A line break after a backslash is left out, with the blanks that follow.
fn literal(chars: &mut std::str::Chars<'_>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('\n') => *chars = chars.as_str().trim_start().chars(),
                other => text.extend(other),
            },
            c => text.push(c),
        }
    }
    text
}
