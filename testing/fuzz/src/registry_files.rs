//! Registry files, native and public: a consistent registry, the same for the same files, or an error of one line.

use std::path::Path;
use std::sync::LazyLock;

use planner::Graph;
use registry::{LoadError, Registry};
use serde_json::Value;
use tempfile::TempDir;

use crate::edit;
use crate::input::Input;

/// Tables, keys and values of the native format.
pub const WORDS: &[&str] = &[
    "[[chain]]\n",
    "[[asset]]\n",
    "[[channel]]\n",
    "[[bridge]]\n",
    "[[oft]]\n",
    "[import]\n",
    "bridged = { from = 'uinit' }\n",
    "ibc = { channel = 'channel-0', from = 'uinit' }\n",
    "wrapped = { contract = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359', from = 'uinit' }\n",
    "decimals = 255\n",
    "price_usd = 1e308\n",
    "transfer/channel-0/",
    "ibc/",
    "l2/",
    "${HOME}",
    "inf",
    "nan",
    "-1",
    "18446744073709551616",
];

/// Files of a public registry in the layout of Initia's.
const PUBLIC: [&str; 4] = ["hotake", "initia", "strat", "yominet"];
const PUBLIC_FILES: [&str; 2] = ["chain.json", "assetlist.json"];

/// Files of the cosmos chain registry.
const COSMOS: [&str; 7] = [
    "_IBC/initia-noble.json",
    "_IBC/initia-osmosis.json",
    "celestia/chain.json",
    "initia/chain.json",
    "initia/assetlist.json",
    "noble/assetlist.json",
    "osmosis/chain.json",
];

/// Input: a byte for the form: native text in TOML or JSON, or a public file by number with edits or as a text.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    match input.byte() % 6 {
        0 | 1 => native(&[("registry.toml", &String::from_utf8_lossy(input.rest()))]),
        2 => native(&[("registry.json", &String::from_utf8_lossy(input.rest()))]),
        3 => example(input),
        form => public(form == 5, input),
    }
}

/// Checks files in the native format.
fn native(files: &[(&str, &str)]) -> bool {
    match registry::load_texts(files) {
        Ok(registry) => {
            sound(&registry);
            let again = registry::load_texts(files).expect("the same files are a registry again");
            assert_eq!(registry.hash(), again.hash(), "the same files are the same registry");
            registry.chains().next().is_some()
        }
        Err(error) => {
            one_line(&error);
            false
        }
    }
}

fn one_line(error: &LoadError) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.contains('\n'), "one line: {text:?}");
}

/// Checks the example registry with mutated bytes.
fn example(mut input: Input<'_>) -> bool {
    let mut files = EXAMPLE.clone();
    while !input.is_empty() {
        let file = usize::from(input.byte()) % files.len();
        let text = &mut files[file].1;
        let at = usize::from(input.short()) % (text.len() + 1);
        let (removed, with) = (usize::from(input.byte() % 32), input.piece());
        let mut bytes = std::mem::take(text).into_bytes();
        let end = (at + removed).min(bytes.len());
        bytes.splice(at..end, with.iter().copied());
        *text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let texts: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    native(&texts)
}

static EXAMPLE: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    let folder = testkit::root().join("routing/registry/example");
    let text = |name| (name, std::fs::read_to_string(folder.join(name)).unwrap());
    ["chains.toml", "bridges.toml", "assets.toml"].map(text).to_vec()
});

/// Checks the invariants of every registry.
fn sound(registry: &Registry) {
    for (asset, part) in registry.assets() {
        assert!(part.origin.parent().is_none_or(|parent| parent < asset), "a parent comes first");
        assert!(registry.asset(part.chain, &part.denom).is_some(), "an asset is found by its denomination");
        registry.trace(asset);
        registry.root(asset);
    }
    for (chain, part) in registry.chains() {
        assert_eq!(registry.chain(&part.id), Some(chain));
    }
    registry::check(registry);
    let graph = Graph::new(registry);
    assert!(graph.nodes() >= registry.assets().count());
}

/// A public registry, one file of which is mutated.
struct Public {
    folder: TempDir,
    files: Vec<(String, String)>,
}

impl Public {
    fn copy(from: &Path, files: impl IntoIterator<Item = String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let read = |file: String| {
            let text = std::fs::read_to_string(from.join(&file)).unwrap();
            let place = folder.path().join(&file);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, &text).unwrap();
            (file, text)
        };
        let files = files.into_iter().map(read).collect();
        Self { folder, files }
    }
}

thread_local! {
    static REGISTRIES: [Public; 2] = {
        let tests = testkit::root().join("routing/registry/tests");
        let initia = PUBLIC.iter().flat_map(|name| PUBLIC_FILES.map(|file| format!("{name}/{file}")));
        [
            Public::copy(&tests.join("initia/mainnets"), initia),
            Public::copy(&tests.join("chain-registry"), COSMOS.map(str::to_owned)),
        ]
    };
}

fn public(as_text: bool, mut input: Input<'_>) -> bool {
    REGISTRIES.with(|registries| {
        let Public { folder, files } = &registries[usize::from(input.byte()) % 2];
        let (file, text) = &files[usize::from(input.byte()) % files.len()];
        let changed = if as_text {
            input.rest().to_vec()
        } else {
            let mut value: Value = serde_json::from_str(text).unwrap();
            edit::apply(&mut value, &mut input);
            value.to_string().into_bytes()
        };
        let place = folder.path().join(file);
        std::fs::write(&place, changed).unwrap();
        let loaded = registry::load_with(folder.path(), &|_| None);
        std::fs::write(&place, text).unwrap();
        // An invalid file is skipped and does not affect the others.
        match loaded {
            Ok(loaded) => sound(&loaded.registry),
            Err(error) => panic!("{file}: {error}"),
        }
        true
    })
}

/// Native files, and edits of public files.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = EXAMPLE.iter().map(|(_, text)| [&[0], text.as_bytes()].concat()).collect();
    let all: String = EXAMPLE.iter().map(|(_, text)| text.as_str()).collect();
    seeds.push([&[0], all.as_bytes()].concat());
    seeds.push([&[2], br#"{"chain":[{"id":"a-1","vm":"evm"}],"asset":[{"chain":"a-1","denom":"u","symbol":"U","decimals":6}]}"#.as_slice()].concat());
    seeds.push(vec![3, 0, 0, 40, 4, 3, b'a', b'b', b'c']);
    for registry in 0_u8..2 {
        for file in 0_u8..8 {
            seeds.push(vec![4, registry, file, 0, 12, 2, 3, b'a', b'b', b'c']);
        }
        seeds.push([&[5, registry, 0], b"{\"chain_id\":\"a-1\"}".as_slice()].concat());
    }
    seeds
}
