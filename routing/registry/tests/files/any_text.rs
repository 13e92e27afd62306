//! Registries from parts in any order, and from any text.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use registry::{denom, load_texts};

/// One rollup: the spelling of its voucher, whether it has a bridge and a wrapped token, a price.
type Rollup = (bool, bool, bool, u16);

/// The parts of a registry in the native format, each a separate text.
fn parts(rollups: &[Rollup]) -> Vec<String> {
    let mut parts = vec![
        "[[chain]]\nid = 'l1-1'\nname = 'initia'\nl1 = true\nvm = 'move'\n".to_owned(),
        "[[asset]]\nchain = 'l1-1'\ndenom = 'uinit'\nsymbol = 'INIT'\ndecimals = 6\nprice_usd = 0.5\n"
            .to_owned(),
    ];
    for (index, (stated, bridged, by_path, number)) in rollups.iter().enumerate() {
        let id = format!("r{index}-1");
        parts.push(format!("[[chain]]\nid = '{id}'\nvm = 'evm'\nblock_seconds = {number}\n"));
        parts.push(format!(
            "[[asset]]\nchain = '{id}'\ndenom = 'um{index}'\nsymbol = 'M{number}'\ndecimals = 6\n"
        ));
        let ends = [format!("'l1-1/transfer/channel-{index}'"), format!("'{id}/transfer/channel-0'")];
        let [a, b] = if *stated {
            ends
        } else {
            let [a, b] = ends;
            [b, a]
        };
        parts.push(format!("[[channel]]\na = {a}\nb = {b}\nseconds = {number}\n"));
        let voucher = denom::of_path(&format!("transfer/channel-{index}/um{index}"));
        let mut on_l1 = format!(
            "[[asset]]\nchain = 'l1-1'\nibc = {{ channel = 'channel-{index}', from = 'um{index}' }}\n"
        );
        if *stated {
            writeln!(on_l1, "denom = '{voucher}'").unwrap();
        }
        parts.push(on_l1);
        // The voucher of this rollup on the next one.
        let next = (index + 1) % rollups.len();
        let from = if *by_path { format!("transfer/channel-{index}/um{index}") } else { voucher };
        if next != index {
            parts.push(format!(
                "[[asset]]\nchain = 'r{next}-1'\nibc = {{ channel = 'channel-0', from = '{from}' }}\n"
            ));
        }
        if *bridged {
            let bridge = u64::try_from(index).unwrap() + 1;
            let l2 = denom::bridged(bridge, "uinit");
            parts.push(format!("[[bridge]]\nid = {bridge}\nl2 = '{id}'\n"));
            parts.push(format!("[[asset]]\nchain = '{id}'\nbridged = {{ from = 'uinit' }}\n"));
            parts.push(format!(
                "[[asset]]\nchain = '{id}'\ndenom = 'evm/5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'\n\
                 wrapped = {{ contract = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359', from = '{l2}' }}\n"
            ));
        }
    }
    parts
}

fn rollups() -> impl Strategy<Value = Vec<Rollup>> {
    proptest::collection::vec(any::<Rollup>(), 1..8)
}

/// The same parts in another order, in several files.
fn shuffled(parts: &[String], order: &[prop::sample::Index], files: usize) -> Vec<(String, String)> {
    let mut left: Vec<_> = parts.to_vec();
    let mut texts = vec![String::new(); files];
    for (turn, index) in order.iter().cycle().enumerate().take(parts.len()) {
        let part = left.swap_remove(index.index(left.len()));
        texts[turn % files].push_str(&part);
    }
    texts.into_iter().enumerate().map(|(index, text)| (format!("f{index}.toml"), text)).collect()
}

fn load(files: &[(String, String)]) -> Result<registry::Registry, registry::LoadError> {
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    load_texts(&files)
}

/// Files in the native format, the base of mutated texts.
fn real() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["example/chains.toml", "example/bridges.toml", "example/assets.toml"]
        .map(|name| (name.to_owned(), std::fs::read_to_string(root.join(name)).unwrap()))
        .into()
}

/// A change of a text: position, length, and replacement.
type Change = (prop::sample::Index, u8, u8, prop::sample::Index);

fn changed(text: &str, (at, length, what, other): Change) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return "[[".to_owned();
    }
    let begin = at.index(chars.len());
    let end = (begin + usize::from(length)).min(chars.len());
    let from = other.index(chars.len());
    let copied = &chars[from..(from + usize::from(length)).min(chars.len())];
    let middle: String = match what % 6 {
        0 => String::new(),
        1 => copied.iter().collect(),
        2 => "\"\u{0}é".to_owned(),
        3 => "-9999999999999999999999".to_owned(),
        4 => "/channel-0/".repeat(usize::from(length)),
        _ => "[[asset]]\n".to_owned(),
    };
    chars[..begin].iter().collect::<String>() + &middle + &chars[end..].iter().collect::<String>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_parts_and_files_does_not_matter(
        rollups in rollups(),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
        files in 1_usize..5,
    ) {
        let parts = parts(&rollups);
        let first = load(&[("f.toml".to_owned(), parts.concat())]).unwrap();
        let second = load(&shuffled(&parts, &order, files)).unwrap();
        prop_assert_eq!(first.hash(), second.hash());
        prop_assert!(first.assets().map(|(_, asset)| asset).eq(second.assets().map(|(_, asset)| asset)));
        prop_assert!(first.channels().map(|(_, part)| part).eq(second.channels().map(|(_, part)| part)));
        // Every asset of the parts is in the registry, after its parent.
        let made = parts.iter().filter(|part| part.starts_with("[[asset]]")).count();
        prop_assert_eq!(first.assets().count(), made);
        for (reference, asset) in first.assets() {
            prop_assert!(asset.origin.parent().is_none_or(|parent| parent < reference));
        }
    }

    #[test]
    fn no_text_makes_the_loader_panic(
        changes in proptest::collection::vec(any::<(u8, Change)>(), 1..6),
    ) {
        let mut files = real();
        for (file, change) in changes {
            let index = usize::from(file) % files.len();
            files[index].1 = changed(&files[index].1, change);
        }
        if let Err(error) = load(&files) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }

    #[test]
    fn no_public_registry_fails_the_load_or_makes_it_panic(
        changes in proptest::collection::vec(any::<(u8, Change)>(), 1..4),
    ) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/initia/mainnets");
        let folder = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for name in ["hotake", "initia", "strat", "yominet"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            for file in ["chain.json", "assetlist.json"] {
                let file = format!("{name}/{file}");
                files.push((file.clone(), std::fs::read_to_string(from.join(file)).unwrap()));
            }
        }
        for (file, change) in changes {
            let index = usize::from(file) % files.len();
            files[index].1 = changed(&files[index].1, change);
        }
        for (name, text) in &files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let own = tempfile::tempdir().unwrap();
        let import = format!("[import]\ninitia = '{}'\n", folder.path().display());
        std::fs::write(own.path().join("registry.toml"), import).unwrap();
        let loaded = registry::load(own.path());
        prop_assert!(loaded.is_ok(), "{:?}", loaded);
    }
}
