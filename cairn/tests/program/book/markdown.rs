//! The parts of a Markdown file that the tests of the book read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::repository;

/// A fenced block.
#[derive(Clone)]
pub(super) struct Block {
    /// The text behind the opening fence, for example `sh,server`.
    pub(super) info: String,
    pub(super) text: String,
    /// The number of the line of the opening fence, from 1.
    pub(super) line: usize,
}

/// The fenced blocks of `text`, in order.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                open = Some(Block { info: info.to_owned(), text: String::new(), line: number });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fenced block is not closed");
    blocks
}

/// The lines of `text` outside of fenced blocks.
pub(super) fn prose(text: &str) -> String {
    let mut fenced = false;
    let outside = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    });
    outside.flat_map(|line| [line, "\n"]).collect()
}

/// The text between single backticks.
pub(super) fn code_spans(prose: &str) -> impl Iterator<Item = &str> {
    prose.split('`').skip(1).step_by(2)
}

/// The file at `path` in the repository, with the files that it includes (`{{#include path}}`) in their places.
pub(super) fn expanded(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let line = |line: &str| match included(line) {
        Some(file) => expanded(&path.with_file_name(file)),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn included(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("{{#include ")?.strip_suffix("}}")?.trim())
}

/// The Markdown files in `docs/src`.
pub(super) fn chapters() -> Vec<PathBuf> {
    let files = fs::read_dir(repository("docs/src")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    files.sort();
    files
}
