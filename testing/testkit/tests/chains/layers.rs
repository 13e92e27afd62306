//! The layer test: allowed dependencies between our crates, owners of external crates, and circular imports between the
//! modules of one crate.
//!
//! Dependencies come from `cargo metadata`, normal ones only; imports are parsed from the sources. A violation names
//! the allowed dependencies; a crate without a line in the table is a violation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// A crate, its layer, and our crates that it may import, which must be in lower layers.
struct CrateRule {
    name: &'static str,
    layer: u8,
    may_import: &'static [&'static str],
}

const fn entry(name: &'static str, layer: u8, may_import: &'static [&'static str]) -> CrateRule {
    CrateRule { name, layer, may_import }
}

/// Every crate of a lower layer.
const LOWER: &[&str] = &["*"];

fn layer(name: &str) -> Option<u8> {
    CRATES.iter().find(|entry| entry.name == name).map(|entry| entry.layer)
}

/// The layers, from the lowest up.
const CRATES: &[CrateRule] = &[
    entry("proto", 0, &[]),
    // No async, no IO, no storage.
    entry("chain", 2, &["proto"]),
    // Independent of chains.
    entry("store", 2, &[]),
    // The on-disk format; no IO.
    entry("schema", 3, &["chain", "store"]),
    // The other engine, behind a cargo feature.
    entry("slate", 3, &["store"]),
    // No storage.
    entry("node", 3, &["chain", "proto"]),
    // Independent of chains and store.
    entry("web", 3, &[]),
    // Reads files only.
    entry("registry", 3, &["chain"]),
    // Pure: no clock, no IO.
    entry("planner", 4, &["chain", "registry"]),
    // Pure as well.
    entry("messages", 5, &["chain", "planner", "proto", "registry"]),
    // Never `planner`: it tracks evidence on chains, not plans.
    entry("tracker", 4, &["chain", "node", "registry", "store"]),
    entry("ingest", 4, &["chain", "node", "schema", "store", "proto"]),
    // Never `node`: answering a request never queries one.
    entry("query", 4, &["chain", "proto", "schema", "store", "web"]),
    // The JSON API's answers as messages: never `store` or `schema`, which the handlers read.
    entry("grpc", 5, &["query", "web"]),
    // Never `ingest`, which must not be able to distinguish a replay node.
    entry("replay", 4, &["chain", "node"]),
    // No socket of its own: `replay` serves it.
    entry("synthesize", 5, &["chain", "replay"]),
    // Never `schema`, `ingest` or `query`: it has a separate database.
    entry(
        "routing-api",
        6,
        &["chain", "messages", "node", "planner", "proto", "registry", "store", "tracker", "web"],
    ),
    // Never `node`: what the index does not have is refused.
    entry("comet-rpc", 5, &["query", "web"]),
    // Reads the index through `query`, and forwards what the operator allows through `node`.
    entry("evm-rpc", 5, &["chain", "node", "query", "web"]),
    // The state of the chain only through `evm-rpc`; of `node` it has the client of verified contracts.
    entry("etherscan", 6, &["chain", "evm-rpc", "node", "query", "web"]),
    // Reads both APIs in process; the routing one through a trait, because it restarts.
    entry("explorer", 6, &["chain", "query", "web"]),
    entry("cairn", 7, LOWER),
    entry("testkit", 7, LOWER),
    // The parsers of untrusted input.
    entry("fuzz", 8, LOWER),
    entry("benches", 8, LOWER),
    // Knows the engines by their figures only.
    entry("fleet", 8, &[]),
];

/// External crates that determine the capabilities of a crate, and the only crates that may name them.
const OWNERS: &[(&str, &[&str])] = &[
    ("rocksdb", &["store"]),
    ("slatedb", &["slate"]),
    ("object_store", &["slate"]),
    // The benches compare our server with a bare one; the replay node plays faults of connections.
    ("hyper", &["web", "node", "replay", "benches"]),
    ("hyper-util", &["web", "node", "replay", "benches"]),
    ("hyper-rustls", &["node"]),
    ("rustls", &["node", "slate"]),
    ("tonic", &["proto", "node", "grpc"]),
    ("tokio-tungstenite", &["node", "replay", "web"]),
    ("cosmrs", &["chain", "proto"]),
    ("alloy", &["chain", "messages", "synthesize"]),
    // Async crates only.
    (
        "tokio",
        &[
            "node",
            "web",
            "evm-rpc",
            "grpc",
            "ingest",
            "query",
            "replay",
            "slate",
            "tracker",
            "routing-api",
            "cairn",
            "testkit",
            "fuzz",
            "benches",
        ],
    ),
    ("anyhow", &["cairn", "testkit", "benches", "fleet"]),
    ("clap", &["cairn"]),
    ("indicatif", &["cairn"]),
    ("toml", &["cairn", "registry", "fleet"]),
    ("tracing-subscriber", &["cairn"]),
    ("criterion", &["benches"]),
    ("postgres", &["benches"]),
    ("plotters", &["benches"]),
];

/// Paths into external crates, and the crates that may name them in their sources.
const PATHS: &[(&str, &[&str])] = &[
    ("hyper::server", &["web", "replay"]),
    ("hyper_util::server", &["web", "replay"]),
    ("hyper::client", &["node"]),
    ("hyper_util::client", &["node"]),
];

/// Known circles of imports between the modules of one crate. None may be added.
const CIRCLES: &[&str] = &[];

/// The path of a module or an item from the root of its crate.
type Module = Vec<String>;

/// The sources of one crate: its modules, each with the paths that its module-level `use` items name. An item of
/// `pub use` is a re-export and no import; an import of one leads to the module that it re-exports.
#[derive(Default)]
struct Sources {
    imports: BTreeMap<Module, Vec<Module>>,
    exports: BTreeMap<Module, Vec<Module>>,
}

impl Sources {
    fn read(&mut self, folder: &Path, module: &[String]) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let of_root = matches!(name.as_str(), "lib" | "main" | "mod");
            let inner = if of_root { module.to_vec() } else { [module, &[name]].concat() };
            if path.is_dir() {
                self.read(&path, &inner);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.add(inner, &std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// Unit tests are indented, and so their imports are not read.
    fn add(&mut self, module: Module, text: &str) {
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        for (at, _) in text.match_indices("use ") {
            let item = text[at + 4..].split(';').next().unwrap();
            match text[..at].rsplit('\n').next() {
                Some("") => flatten(&module, item, &mut imports),
                Some("pub " | "pub(crate) " | "pub(super) ") => flatten(&module, item, &mut exports),
                _ => {}
            }
        }
        self.imports.entry(module.clone()).or_default().extend(imports);
        self.exports.entry(module).or_default().extend(exports);
    }

    /// The module that defines the item at `path`, through at most `depth` re-exports.
    fn module_of(&self, path: &[String], depth: u8) -> Option<Module> {
        let length = (0..=path.len()).rev().find(|&length| self.imports.contains_key(&path[..length]))?;
        let (module, item) = path.split_at(length);
        let mut exports = self.exports[module].iter();
        let export = item.first().and_then(|item| exports.find(|export| export.last() == Some(item)));
        match export {
            Some(export) if depth > 0 && export[..] != *path => self.module_of(export, depth - 1),
            _ => Some(module.to_vec()),
        }
    }

    /// Groups of modules each of which imports every other one, directly or through others.
    fn circles(&self) -> BTreeSet<String> {
        let imports = |from: &Module| {
            let modules = self.imports[from].iter().filter_map(|path| self.module_of(path, 4));
            modules.filter(|to| to != from).collect::<BTreeSet<_>>()
        };
        let edges: BTreeMap<Module, BTreeSet<Module>> =
            self.imports.keys().map(|from| (from.clone(), imports(from))).collect();
        let all: BTreeMap<_, _> = edges.keys().map(|from| (from, reachable(&edges, from))).collect();
        let circle = |of: &Module| {
            let members = all[of].iter().filter(|to| all[*to].contains(of));
            let name = |module: &Module| if module.is_empty() { "lib".to_owned() } else { module.join("::") };
            members.map(|module| name(module)).collect::<Vec<_>>().join(" ")
        };
        all.iter().filter(|(from, found)| found.contains(**from)).map(|(from, _)| circle(from)).collect()
    }
}

fn reachable<'a>(edges: &'a BTreeMap<Module, BTreeSet<Module>>, from: &'a Module) -> BTreeSet<&'a Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(edges[module].iter().filter(|to| found.insert(*to)));
    }
    found
}

/// The paths of a `use` item from the crate root; paths into other crates match no module.
fn flatten(module: &[String], item: &str, paths: &mut Vec<Module>) {
    if let Some((prefix, rest)) = item.split_once('{') {
        let (mut depth, mut start) = (0, 0);
        let rest = rest.trim_end().strip_suffix('}').unwrap_or(rest);
        for (at, letter) in rest.char_indices().chain([(rest.len(), ',')]) {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    // The last item of a group over several lines has a comma too.
                    let part = rest[start..at].trim();
                    if !part.is_empty() {
                        flatten(module, &format!("{prefix}{part}"), paths);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let path = item.split(" as ").next().unwrap_or(item).trim();
    let mut whole = module.to_vec();
    for name in path.split("::").filter(|name| *name != "self") {
        match name {
            "crate" => whole.clear(),
            "super" => drop(whole.pop()),
            name => whole.push(name.to_owned()),
        }
    }
    paths.push(whole);
}

/// Normal dependencies of each workspace member, internal and external.
type Edges = BTreeMap<String, Vec<String>>;

/// A member of the workspace, as `cargo metadata` prints it. The crate of that name would give serde_json another feature in
/// tests than in the program, so Cargo would compile most crates twice.
#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Absent for a normal one.
    kind: Option<String>,
}

fn packages() -> Vec<Package> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(testkit::root());
    let printed = cargo.output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let mut packages = serde_json::from_slice::<Metadata>(&printed.stdout).unwrap().packages;
    for package in &mut packages {
        package.name = in_code(&package.name).to_owned();
    }
    packages
}

/// The name of a package of ours in code.
fn in_code(package: &str) -> &str {
    package.strip_prefix("cairn-").unwrap_or(package)
}

fn edges() -> Edges {
    let normal = |package: &Package| -> Vec<String> {
        let dependencies = package.dependencies.iter();
        dependencies.filter(|d| d.kind.is_none()).map(|d| in_code(&d.name).to_owned()).collect()
    };
    packages().iter().map(|package| (package.name.clone(), normal(package))).collect()
}

/// The violations in `edges`, one per line.
fn violations(edges: &Edges) -> Vec<String> {
    let mut found = Vec::new();
    for (from, imports) in edges {
        let Some(entry) = CRATES.iter().find(|entry| entry.name == from) else {
            found.push(format!(
                "`{from}` is not in the table: add its layer and the crates that it may import"
            ));
            continue;
        };
        for to in imports {
            let allowed = match entry.may_import {
                LOWER => layer(to) < Some(entry.layer),
                names => names.contains(&to.as_str()),
            };
            if edges.contains_key(to) && !allowed {
                found.push(format!("`{from}` imports `{to}`; it may import {:?}", entry.may_import));
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
    for entry in CRATES.iter().filter(|entry| entry.may_import != LOWER) {
        for import in entry.may_import {
            assert!(layer(import) < Some(entry.layer), "{} may not import {import}", entry.name);
            assert!(layer(import).is_some(), "{import} is not in the table");
        }
    }
}

#[test]
fn every_package_has_a_level_of_optimisation_for_tests() {
    let profile = std::fs::read_to_string(testkit::root().join("testing/profile.toml")).unwrap();
    let names: BTreeSet<_> =
        profile.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| in_code(name)).collect();
    let packages = packages();
    assert_eq!(names, packages.iter().map(|package| package.name.as_str()).collect());
}

#[test]
fn the_table_has_no_removed_crate() {
    let edges = edges();
    for entry in CRATES {
        assert!(edges.contains_key(entry.name), "{} is not a member of the workspace", entry.name);
    }
}

#[test]
fn servers_are_webs_and_client_connections_are_nodes() {
    for package in packages().iter().filter(|package| package.name != "benches") {
        let mut folders = vec![package.manifest_path.with_file_name("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                for (named, owners) in
                    PATHS.iter().filter(|(_, owners)| !owners.contains(&package.name.as_str()))
                {
                    assert!(!text.contains(named), "{} names {named} of {owners:?}", path.display());
                }
            }
        }
    }
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let mut found = BTreeSet::new();
    for package in packages() {
        let (mut sources, folder) = (Sources::default(), package.manifest_path.with_file_name("src"));
        sources.read(&folder, &[]);
        found.extend(sources.circles().iter().map(|modules| format!("{}: {modules}", package.name)));
    }
    let known: BTreeSet<String> = CIRCLES.iter().map(|circle| (*circle).to_owned()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(new.is_empty() && gone.is_empty(), "new: {new:#?}; gone, remove from `CIRCLES`: {gone:#?}");
}

#[test]
fn a_circle_is_found_through_a_re_export_and_in_groups() {
    let mut sources = Sources::default();
    for (module, text) in [
        ("", "mod a;\npub use b::inner::Thing;\n"),
        ("a", "use crate::{Thing, c::{self, Other as Another}};\n"),
        ("b", "use super::c;\n"),
        ("b::inner", "use std::fmt;\nuse super::super::a::Item;\n"),
        ("c", "mod tests {\n    use crate::a::Item;\n}\n"),
    ] {
        sources.add(module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(), text);
    }
    assert_eq!(sources.circles(), BTreeSet::from(["a b::inner".to_owned()]));
}
