//! `SCHEMA.md` is generated from the sources: the doc comments of the tables, with name, tag, access and a row of the
//! format golden. `UPDATE_GOLDEN=1 cargo test --test tables` rewrites it (the format golden too).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use schema::{LISTS, RANKED, TABLES};
use store::TableSpec;

const INTRODUCTION: &str = "\
What is on disk, table by table. Generated from the doc comments of `schema/src/*.rs` by `schema/tests/tables/doc.rs`
(`UPDATE_GOLDEN=1 cargo test --test tables` rewrites it); the examples are rows of `schema/tests/format.golden`.

A table is a column family of RocksDB; the tag is its number, for an engine that has none. *Point* tables are looked up
by whole key, *Append* tables are written in key order with values that are compressed already, *Scan* tables are read
by range, and so are *Ranked* tables, which take few bytes beside the others. Keys are the components one behind the other
(`store::key`): numbers big-endian, texts with `00` as `00 ff` and ended by `00 01`. A varint has seven bits a byte, lowest
first. A *list* has the rows `owner | first ordinal → up to 32 entries` with the ordinals 0, 32, 64 … of each owner, and its
lengths in the table `count`. A *ranked set* has the rows `owner | item → value` in the order of the items, and its lengths and skip-list
nodes in the table `rank` (`store::ranked`).
";

/// `count` is declared by `store::list`, which is independent of tables.
const COUNT: &str = "Lengths of all lists; an owner without rows has none.\n\n\
                     | tag of the list (1) | owner | → length (varint)";

/// `rank` is declared by `store::ranked`, which is independent of tables.
const RANK: &str = "Lengths and skip-list nodes of all ranked sets; an owner without items has none.\n\n\
                    | tag of the set (1) | owner | 00 | → number of items, of nodes on level 1, 2, 3, 4 (varints)\n\
                    | tag of the set (1) | owner | level (1) | item | → items since the previous node (varint)";

/// A table as the sources describe it.
struct Described {
    /// File and type, `tx::Txs`.
    path: String,
    doc: String,
}

/// The doc comments of the tables that one source file declares, by table name.
fn described(module: &str, source: &str) -> BTreeMap<String, Described> {
    let (mut doc, mut found) = (String::new(), BTreeMap::new());
    for line in source.lines().map(str::trim_start) {
        if let Some(text) = line.strip_prefix("///") {
            doc.push_str(text.strip_prefix(' ').unwrap_or(text));
            doc.push('\n');
            continue;
        }
        let doc = std::mem::take(&mut doc);
        let kinds = ["pub table ", "pub list ", "pub set "];
        if let Some(declared) = kinds.into_iter().find_map(|kind| line.strip_prefix(kind)) {
            let (name, rest) = declared.split_once("(\"").unwrap();
            let (table, _) = rest.split_once('"').unwrap();
            found.insert(table.to_owned(), Described { path: format!("{module}::{name}"), doc });
        }
    }
    found
}

fn all_described() -> BTreeMap<String, Described> {
    let mut all = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // Tables are declared beside the folders.
        }
        if let Some(module) = path.file_stem().and_then(|stem| stem.to_str()) {
            all.extend(described(module, &fs::read_to_string(&path).unwrap()));
        }
    }
    all.insert(
        "count".to_owned(),
        Described { path: "store::list::COUNT".to_owned(), doc: COUNT.to_owned() },
    );
    all.insert("rank".to_owned(), Described { path: "store::RANK".to_owned(), doc: RANK.to_owned() });
    all
}

/// Rustdoc's links to items as plain code: [`crate::payload`] is `payload`.
fn without_links(doc: &str) -> String {
    doc.replace("[`crate::", "[`").replace("[`", "`").replace("`]", "`")
}

/// The layout lines of a doc comment, `| key | → value`, separated from its prose.
fn parts(doc: &str) -> (String, String) {
    let (layout, prose): (Vec<&str>, Vec<&str>) = doc.trim().lines().partition(|line| line.starts_with('|'));
    (prose.join("\n").trim().replace("\n\n\n", "\n\n"), layout.join("\n"))
}

fn section(spec: &TableSpec, described: &Described, golden: &str) -> String {
    let kind = match spec {
        list if LISTS.contains(&list) => "list",
        set if RANKED.contains(&set) => "ranked set",
        _ => "table",
    };
    let (prose, layout) = parts(&without_links(&described.doc));
    let mut text = format!(
        "\n## `{}`\n\n{kind} · tag `{:02x}` · {:?} · `{}`\n\n{prose}\n\n```text\n{layout}\n\n",
        spec.name, spec.tag, spec.access, described.path
    );
    let rows = golden.lines().filter_map(|line| line.strip_prefix(spec.name)?.strip_prefix(' '));
    // Lines of the list of tables begin the same way, with the tag and no value.
    for row in rows.filter(|row| !row.starts_with(&format!("{:02x} {:?}", spec.tag, spec.access))) {
        let (key, value) = row.split_once(' ').unwrap();
        writeln!(text, "{key} → {}", if value == "-" { "nothing" } else { value }).unwrap();
    }
    text.push_str("```\n");
    text
}

fn generated() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = fs::read_to_string(folder.join("tests/format.golden")).unwrap();
    let described = all_described();
    let mut text = format!("# Schema, format {}\n\n{INTRODUCTION}", schema::FORMAT);
    for spec in TABLES {
        let described =
            described.get(spec.name).unwrap_or_else(|| panic!("no source declares `{}`", spec.name));
        text.push_str(&section(spec, described, &golden));
    }
    text
}

#[test]
fn schema_md_is_generated_from_the_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../SCHEMA.md");
    let generated = generated();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    assert!(written == generated, "SCHEMA.md is stale: run `UPDATE_GOLDEN=1 cargo test --test tables`");
}

#[test]
fn every_table_is_documented_with_its_layout() {
    let described = all_described();
    for spec in TABLES {
        let (prose, layout) = parts(&described[spec.name].doc);
        assert!(!prose.is_empty(), "`{}` has no doc comment", spec.name);
        assert!(layout.contains('→'), "`{}` does not say its layout", spec.name);
    }
}
