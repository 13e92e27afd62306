//! Links, includes and names of files in the book and in the other Markdown files.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::markdown::{chapters, code_spans, expanded, prose};
use crate::support::repository;

/// Markdown files outside of the book, whose links are relative to the repository.
const OTHERS: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "README.md",
    "RELEASING.md",
    "SECURITY.md",
    "docs/scale.md",
    "routing/registry/README.md",
    "routing/registry/example/README.md",
    "testing/goldens/README.md",
    "testing/recordings/README.md",
];

/// The targets of `[text](target)` in `prose`.
fn targets(prose: &str) -> impl Iterator<Item = &str> {
    let ends = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    ends.filter(|target| !target.is_empty() && !target.contains("://"))
}

/// The anchor of a heading, in the book and on GitHub.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

fn has_anchor(file: &Path, wanted: &str) -> bool {
    let text = prose(&expanded(file));
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#')) == wanted)
}

/// `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            part => plain.push(part),
        }
    }
    plain
}

/// What is wrong with the link `target` of `file`, whose base directory is `base`.
fn broken(file: &Path, base: &Path, target: &str) -> Option<String> {
    let (path, fragment) = target.split_once('#').map_or((target, None), |(path, at)| (path, Some(at)));
    let to = if path.is_empty() { file.to_owned() } else { base.join(path) };
    let wrong = |reason: &str| Some(format!("{}: `{target}` {reason}", file.display()));
    if !to.exists() {
        return wrong("does not exist");
    }
    match fragment {
        Some(fragment) if !has_anchor(&to, fragment) => wrong("names a heading that does not exist"),
        _ => None,
    }
}

#[test]
fn every_link_of_a_file_in_the_repository_resolves() {
    let wrong = OTHERS.iter().flat_map(|name| {
        let file = repository(name);
        let text = prose(&expanded(&file));
        let base = file.parent().unwrap();
        targets(&text).filter_map(|target| broken(&file, base, target)).collect::<Vec<_>>()
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_link_of_the_book_leads_to_a_chapter() {
    let book = repository("docs/src");
    let config: toml::Table = std::fs::read_to_string(repository("docs/book.toml")).unwrap().parse().unwrap();
    let redirects = config["output"]["html"]["redirect"].as_table().unwrap();
    // A link out of the book would lead nowhere on the page that mdBook makes.
    let is_redirected = |target: &str| {
        let path = target.split('#').next().unwrap_or_default();
        redirects.contains_key(&format!("/{}", path.replace(".md", ".html")))
    };
    let mut wrong = Vec::new();
    for file in chapters() {
        let text = prose(&expanded(&file));
        for target in targets(&text).filter(|target| !is_redirected(target)) {
            wrong.extend(broken(&file, &book, target));
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !plain(&book.join(path)).starts_with(plain(&book)) {
                wrong.push(format!("{}: `{target}` is not in the book", file.display()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    for (from, to) in redirects {
        let page = Path::new(from.trim_start_matches('/')).parent().unwrap().join(to.as_str().unwrap());
        let chapter = plain(&book.join(page)).with_extension("md");
        assert!(chapter.is_file(), "docs/book.toml redirects {from} to {to}, which is not a chapter");
    }
}

#[test]
fn every_chapter_is_in_the_summary() {
    let summary = expanded(&repository("docs/src/SUMMARY.md"));
    let listed: BTreeSet<_> = targets(&summary).map(str::to_owned).collect();
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let files = chapters().into_iter().map(name).filter(|name| name != "SUMMARY.md");
    assert_eq!(files.collect::<BTreeSet<_>>(), listed);
}

/// A name with `my_` is of a file that the reader makes.
#[test]
fn every_file_that_the_book_names_exists() {
    let mut wrong = Vec::new();
    let mut named = 0;
    for chapter in chapters() {
        let text = std::fs::read_to_string(&chapter).unwrap();
        let text = prose(&text);
        let is_file = |span: &&str| {
            let ends = [".rs", ".toml", ".md", ".json", ".proto", ".service", ".sh"];
            let of_us = span.split('/').next().is_some_and(|top| !top.is_empty() && repository(top).is_dir());
            span.contains('/') && of_us && ends.iter().any(|end| span.ends_with(end))
        };
        let files = code_spans(&text).filter(is_file);
        for file in files.filter(|file| !file.contains("my_") && !file.contains(['*', '{', ' ', '<'])) {
            named += 1;
            if !repository(file).exists() {
                wrong.push(format!("{}: `{file}` does not exist", chapter.display()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(named > 50, "only {named} names of files were found");
}
