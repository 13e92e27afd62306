//! Who may import whom: the crates' own edges, and the owners of outside crates, over `cargo metadata`.
//!
//! Only normal dependencies count: tests may import what they like. An edge that is not in the table is named with what
//! is allowed, and a crate that is not in the table cannot be added unseen.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// A crate, its layer, and what it may import of ours, which must lie in lower layers.
struct Place {
    name: &'static str,
    layer: u8,
    may_import: &'static [&'static str],
}

const fn place(name: &'static str, layer: u8, may_import: &'static [&'static str]) -> Place {
    Place { name, layer, may_import }
}

const EVERY_LIBRARY: &[&str] = &[
    "proto",
    "chain",
    "store",
    "schema",
    "node",
    "web",
    "registry",
    "planner",
    "messages",
    "tracker",
    "ingest",
    "query",
    "replay",
    "routing-api",
];

/// The house, from the ground up.
const HOUSE: &[Place] = &[
    place("proto", 0, &[]),
    // No async, no IO, no storage.
    place("chain", 2, &["proto"]),
    // Knows no chain.
    place("store", 2, &[]),
    // What is where on disk; no IO.
    place("schema", 3, &["chain", "store"]),
    // No storage.
    place("node", 3, &["chain", "proto"]),
    // Knows no chain and no store.
    place("web", 3, &[]),
    // Knows the world from files alone.
    place("registry", 3, &["chain"]),
    // Pure: no clock, no IO.
    place("planner", 4, &["chain", "registry"]),
    // Pure as well.
    place("messages", 5, &["chain", "planner", "registry"]),
    // Never `planner`: what is on a chain is followed, not what was planned.
    place("tracker", 4, &["chain", "node", "registry", "store"]),
    place("ingest", 4, &["chain", "node", "schema", "store", "proto"]),
    // Never `node`: answering a request never asks one.
    place("query", 4, &["chain", "schema", "store", "web"]),
    // Never `ingest`, which must not be able to tell a replay from a node.
    place("replay", 4, &["chain", "node", "web"]),
    // Never `schema`, `ingest` or `query`: it has a database of its own.
    place("routing-api", 6, &["chain", "messages", "node", "planner", "registry", "store", "tracker", "web"]),
    place("cli", 7, EVERY_LIBRARY),
    place("testkit", 7, EVERY_LIBRARY),
    // Whatever reads what others send.
    place(
        "fuzz",
        8,
        &[
            "proto", "chain", "store", "schema", "node", "web", "registry", "planner", "messages", "tracker",
            "ingest", "query", "replay", "testkit",
        ],
    ),
    place(
        "benches",
        8,
        &[
            "proto",
            "chain",
            "store",
            "schema",
            "node",
            "web",
            "registry",
            "planner",
            "messages",
            "tracker",
            "ingest",
            "query",
            "replay",
            "routing-api",
            "testkit",
        ],
    ),
];

/// Outside crates that decide what a crate can do, and the only ones that may name them.
const OWNERS: &[(&str, &[&str])] = &[
    ("rocksdb", &["store"]),
    // The benches compare our server with a bare one.
    ("hyper", &["web", "node", "benches"]),
    ("hyper-util", &["web", "node", "benches"]),
    ("hyper-rustls", &["node"]),
    ("rustls", &["node"]),
    ("tonic", &["proto", "node"]),
    ("tokio-tungstenite", &["node", "replay"]),
    ("cosmrs", &["chain", "proto"]),
    ("alloy", &["chain", "messages", "tracker"]),
    // Who may wait.
    (
        "tokio",
        &["node", "web", "ingest", "replay", "tracker", "routing-api", "cli", "testkit", "fuzz", "benches"],
    ),
    ("anyhow", &["cli", "testkit", "benches"]),
    ("clap", &["cli"]),
    ("indicatif", &["cli"]),
    ("toml", &["cli", "registry"]),
    ("tracing-subscriber", &["cli"]),
    ("criterion", &["benches"]),
];

/// Paths into outside crates that one crate of the program alone may name, in its sources.
const PATHS: &[(&str, &str)] = &[
    ("hyper::server", "web"),
    ("hyper_util::server", "web"),
    ("hyper::client", "node"),
    ("hyper_util::client", "node"),
];

/// Normal dependencies of each member of the workspace, ours and others'.
type Edges = BTreeMap<String, Vec<String>>;

fn metadata() -> Metadata {
    let manifest = testkit::root().join("Cargo.toml");
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap()
}

fn edges() -> Edges {
    let normal = |package: &cargo_metadata::Package| -> Vec<String> {
        let dependencies = package.dependencies.iter();
        dependencies.filter(|d| d.kind == DependencyKind::Normal).map(|d| d.name.clone()).collect()
    };
    metadata().packages.iter().map(|package| (package.name.to_string(), normal(package))).collect()
}

/// What is wrong with `edges`, an item a line.
fn violations(edges: &Edges) -> Vec<String> {
    let mut found = Vec::new();
    for (from, imports) in edges {
        let Some(place) = HOUSE.iter().find(|place| place.name == from) else {
            found.push(format!(
                "`{from}` is not in the table: say which layer it is in and what it may import"
            ));
            continue;
        };
        for to in imports {
            if edges.contains_key(to) && !place.may_import.contains(&to.as_str()) {
                found.push(format!("`{from}` imports `{to}`; it may import {:?}", place.may_import));
            }
            let owners = OWNERS.iter().find(|(name, _)| name == to).map_or(&[][..], |(_, owners)| owners);
            if !owners.is_empty() && !owners.contains(&from.as_str()) {
                found.push(format!("`{from}` names `{to}`, which belongs to {owners:?}"));
            }
        }
    }
    found
}

#[test]
fn crates_import_only_what_the_table_allows() {
    assert_eq!(violations(&edges()), [""; 0]);
}

#[test]
fn a_forbidden_edge_is_named() {
    let mut edges = edges();
    edges.get_mut("query").unwrap().push("node".to_owned());
    edges.get_mut("web").unwrap().push("rocksdb".to_owned());
    edges.insert("util".to_owned(), Vec::new());
    let found = violations(&edges).join("\n");
    for part in ["`query` imports `node`", "`web` names `rocksdb`", "`util` is not in the table"] {
        assert!(found.contains(part), "{part} in {found}");
    }
}

#[test]
fn imports_go_down_only() {
    let layer = |name: &str| HOUSE.iter().find(|place| place.name == name).map(|place| place.layer);
    for place in HOUSE {
        for import in place.may_import {
            assert!(layer(import) < Some(place.layer), "{} may not import {import}", place.name);
            assert!(layer(import).is_some(), "{import} is not in the table");
        }
    }
}

#[test]
fn the_table_holds_no_crate_that_is_gone() {
    let edges = edges();
    for place in HOUSE {
        assert!(edges.contains_key(place.name), "{} is not a member of the workspace", place.name);
    }
}

#[test]
fn servers_are_webs_and_client_connections_are_nodes() {
    for package in metadata().packages.iter().filter(|package| *package.name != "benches") {
        let mut folders = vec![package.manifest_path.with_file_name("src").into_std_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                for (named, owner) in PATHS.iter().filter(|(_, owner)| *owner != package.name.as_str()) {
                    assert!(!text.contains(named), "{} names {named}, which is {owner}'s", path.display());
                }
            }
        }
    }
}
