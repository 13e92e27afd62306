//! Public files that are broken, at the first start and after a good load: what they say changes, and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use registry::{Files, Loaded, Severity};
use serde_json::{Value, json};

/// A cosmos chain registry of two chains and a channel, in a folder of its own.
struct PublicFiles(tempfile::TempDir);

const CHAIN: &str = "zone/chain.json";
const ASSETS: &str = "zone/assetlist.json";
const PAIR: &str = "_IBC/hub-zone.json";

impl PublicFiles {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        for (name, id, prefix, coin) in
            [("hub", "hub-4", "cosmos", "atom"), ("zone", "zone-1", "zone", "zone")]
        {
            files.write(&format!("{name}/chain.json"), &chain(name, id, prefix).to_string());
            files.write(&format!("{name}/assetlist.json"), &assets(name, coin).to_string());
        }
        files.write(PAIR, &pair().to_string());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn load(&self, before: &Files) -> Loaded {
        registry::load_again(self.0.path(), before).unwrap()
    }

    fn first(&self) -> Loaded {
        self.load(&Files::default())
    }
}

fn chain(name: &str, id: &str, prefix: &str) -> Value {
    json!({
        "chain_name": name, "chain_id": id, "status": "live", "network_type": "mainnet", "chain_type": "cosmos",
        "bech32_prefix": prefix, "apis": { "rpc": [{ "address": "http://127.0.0.1:1" }] },
    })
}

fn assets(name: &str, coin: &str) -> Value {
    let base = format!("u{coin}");
    let units = json!([{ "denom": base, "exponent": 0 }, { "denom": coin, "exponent": 6 }]);
    let asset = json!({ "base": base, "display": coin, "symbol": coin.to_uppercase(), "denom_units": units });
    json!({ "chain_name": name, "assets": [asset] })
}

fn pair() -> Value {
    let end = |channel: &str| json!({ "channel_id": channel, "port_id": "transfer" });
    json!({
        "chain_1": { "chain_name": "hub" }, "chain_2": { "chain_name": "zone" },
        "channels": [{
            "chain_1": end("channel-1"), "chain_2": end("channel-9"), "ordering": "unordered", "version": "ics20-1",
            "tags": { "status": "ACTIVE", "preferred": true },
        }],
    })
}

/// Chains, assets and channels that can be used.
fn counts(loaded: &Loaded) -> [usize; 3] {
    let registry = &loaded.registry;
    let open = registry.channels().filter(|(_, channel)| channel.paused.is_none());
    [registry.chains().count(), registry.assets().count(), open.count()]
}

fn names(loaded: &Loaded) -> BTreeMap<String, bool> {
    let broken = loaded.files.broken().iter();
    broken.map(|file| (file.name.clone(), file.last_good.is_some())).collect()
}

fn errors(loaded: &Loaded) -> Vec<String> {
    let errors = loaded.problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

/// Texts of a file that is broken.
fn broken(good: &str) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a comma too many", good.replacen(',', ",,", 1).into()),
        ("a trailing comma", good.replace('}', ",}").into()),
        ("a conflict of a merge", format!("<<<<<<< HEAD\n{good}").into()),
        ("half a file", good[..good.len() / 2].into()),
        ("an empty file", Vec::new()),
        ("an empty object", b"{}".to_vec()),
        ("an array", format!("[{good}]").into()),
        ("null", b"null".to_vec()),
        ("bytes that are not text", [&b"\xff\xfe"[..], good.as_bytes()].concat()),
        ("text behind the end", format!("{good} x").into()),
    ]
}

#[test]
fn a_broken_file_stays_in_its_last_good_version_and_is_named() {
    let files = PublicFiles::new();
    let good = files.first();
    assert_eq!((counts(&good), names(&good), errors(&good)), ([2, 2, 1], BTreeMap::new(), vec![]));
    for name in [CHAIN, ASSETS, PAIR] {
        let text = files.read(name);
        for (what, bytes) in broken(&text) {
            std::fs::write(files.path(name), bytes).unwrap();
            let now = files.load(&good.files);
            assert_eq!(now.registry.hash(), good.registry.hash(), "{name}: {what}");
            assert_eq!(names(&now), BTreeMap::from([(name.to_owned(), true)]), "{what}");
            assert!(errors(&now)[0].contains(name), "{what}: {:?}", now.problems);
            assert!(errors(&now)[0].ends_with("its last good version stays in use"), "{:?}", now.problems);
            // Also after any number of loads.
            let again = files.load(&now.files);
            assert_eq!(again.registry.hash(), good.registry.hash(), "{what}");
            let read = |loaded: &Loaded| loaded.files.broken()[0].last_good;
            assert_eq!(read(&again), read(&now), "{what}");
        }
        files.write(name, &text);
        let repaired = files.load(&files.load(&good.files).files);
        assert_eq!((names(&repaired), errors(&repaired)), (BTreeMap::new(), vec![]));
    }
}

#[test]
fn a_file_that_is_broken_at_the_first_start_is_named_and_changes_nothing_else() {
    for (name, left) in [(CHAIN, [1, 1, 0]), (ASSETS, [2, 1, 1]), (PAIR, [2, 2, 0])] {
        let files = PublicFiles::new();
        let text = files.read(name);
        for (what, bytes) in broken(&text) {
            std::fs::write(files.path(name), bytes).unwrap();
            let loaded = files.first();
            assert_eq!(counts(&loaded), left, "{name}: {what}");
            assert_eq!(names(&loaded), BTreeMap::from([(name.to_owned(), false)]), "{what}");
            assert!(
                errors(&loaded)[0].contains(name) && errors(&loaded)[0].ends_with("the file is left out")
            );
        }
        // A good version takes over.
        files.write(name, &text);
        assert_eq!(counts(&files.load(&files.first().files)), [2, 2, 1]);
    }
}

#[test]
fn a_byte_order_mark_is_no_fault() {
    let files = PublicFiles::new();
    let good = files.first();
    for name in [CHAIN, ASSETS, PAIR] {
        files.write(name, &format!("\u{feff}{}", files.read(name)));
    }
    let now = files.first();
    assert_eq!((now.registry.hash(), errors(&now)), (good.registry.hash(), vec![]));
}

/// The text with one text replaced.
fn changed(text: &str, (from, to): (&str, &str)) -> String {
    assert!(text.contains(from), "{from} in {text}");
    text.replacen(from, to, 1)
}

#[test]
fn a_member_of_a_wrong_type_and_a_repeated_key_keep_the_last_good_version() {
    let cases = [
        (CHAIN, (r#""apis":{"#, r#""apis":[{"#), "a list of objects that does not end"),
        (CHAIN, (r#""zone-1""#, "5"), "a number as the chain id"),
        (CHAIN, (r#""zone-1""#, r#""""#), "an empty chain id"),
        (CHAIN, (r#""bech32_prefix":"zone""#, r#""bech32_prefix":["zone"]"#), "a list as prefix"),
        (CHAIN, (r#""bech32_prefix""#, r#""bech32Prefix""#), "a renamed member"),
        (CHAIN, (r#"{"rpc":[{"address":"http://127.0.0.1:1"}]}"#, r#""http""#), "a text as apis"),
        (CHAIN, (r#"[{"address":"http://127.0.0.1:1"}]"#, "{}"), "an object as rpc"),
        (CHAIN, (r#""http://127.0.0.1:1""#, "1"), "a number as address"),
        (CHAIN, (r#""status":"live""#, r#""status":5"#), "a number as status"),
        (CHAIN, (r#""status":"live""#, r#""status":"live","status":"killed""#), "two states"),
        (ASSETS, (r#""uzone""#, "5"), "a number as base"),
        (ASSETS, (r#""base":"uzone""#, r#""base":"uzone","base":"uother""#), "two bases"),
        (ASSETS, (r#""exponent":6"#, r#""exponent":"6""#), "a text as exponent"),
        (ASSETS, (r#""display":"zone""#, r#""display":"other""#), "a display unit that is none"),
        (ASSETS, (r#""symbol""#, r#""symbols""#), "no symbol"),
        (PAIR, (r#""channel-9""#, "9"), "a number as channel"),
        (PAIR, (r#""channel_id":"channel-9","#, ""), "no channel"),
        (PAIR, (r#"{"preferred":true,"status":"ACTIVE"}"#, "[]"), "a list as tags"),
        (PAIR, (r#"{"chain_name":"zone"}"#, r#""zone""#), "a text as chain"),
    ];
    let files = PublicFiles::new();
    let good = files.first();
    for (name, change, what) in cases {
        let text = files.read(name);
        files.write(name, &changed(&text, change));
        let now = files.load(&good.files);
        assert_eq!(now.registry.hash(), good.registry.hash(), "{what}");
        assert_eq!(names(&now), BTreeMap::from([(name.to_owned(), true)]), "{what}");
        assert!(errors(&now)[0].contains(name), "{what}: {:?}", now.problems);
        // At the first start the rest of the file counts, and the problem names the file.
        let first = files.first();
        assert!(first.problems.iter().any(|problem| problem.to_string().contains(name)), "{what}");
        assert!(first.registry.chain("hub-4").is_some(), "{what}");
        files.write(name, &text);
    }
}

#[test]
fn a_flaw_that_was_always_there_does_not_keep_a_file_from_changing() {
    let files = PublicFiles::new();
    let text = changed(&files.read(ASSETS), (r#""display":"zone""#, r#""display":"other""#));
    files.write(ASSETS, &text);
    let first = files.first();
    assert_eq!(counts(&first), [2, 1, 1]);
    let more = changed(
        &text,
        (
            r#""assets":["#,
            r#""assets":[{"base":"uxx","display":"uxx","symbol":"X","denom_units":[{"denom":"uxx","exponent":0}]},"#,
        ),
    );
    files.write(ASSETS, &more);
    let now = files.load(&first.files);
    assert_eq!((counts(&now), names(&now)), ([2, 2, 1], BTreeMap::new()));
}

#[test]
fn a_file_that_is_gone_stays_and_a_folder_that_is_gone_is_removed() {
    let files = PublicFiles::new();
    let good = files.first();
    for name in [CHAIN, ASSETS, PAIR] {
        let text = files.read(name);
        std::fs::remove_file(files.path(name)).unwrap();
        let now = files.load(&files.load(&good.files).files);
        assert_eq!(now.registry.hash(), good.registry.hash(), "{name}");
        assert_eq!(names(&now), BTreeMap::from([(name.to_owned(), true)]));
        files.write(name, &text);
    }
    std::fs::remove_dir_all(files.path("_IBC")).unwrap();
    assert_eq!(counts(&files.load(&good.files)), [2, 2, 1]);
    files.write(PAIR, &pair().to_string());
    std::fs::remove_dir_all(files.path("zone")).unwrap();
    let now = files.load(&good.files);
    assert_eq!((counts(&now), names(&now)), ([1, 1, 0], BTreeMap::new()));
}

#[test]
fn the_built_site_stays_in_its_last_good_version() {
    let site = tempfile::tempdir().unwrap();
    let mut l1 = chain("initia", "interwoven-1", "init");
    l1["metadata"] = json!({ "is_l1": true });
    let chains = json!([l1, chain("yard", "yard-1", "init")]).to_string();
    let write = |text: &str| std::fs::write(site.path().join("chains.json"), text).unwrap();
    write(&chains);
    let good = registry::load(site.path()).unwrap();
    assert_eq!(good.registry.chains().count(), 2);
    for text in [&chains[1..], "", r#"{"chains":[]}"#, &chains.replacen("\"yard-1\"", "1", 1)] {
        write(text);
        let now = registry::load_again(site.path(), &good.files).unwrap();
        assert_eq!(now.registry.hash(), good.registry.hash(), "{text}");
        assert_eq!(names(&now), BTreeMap::from([("chains.json".to_owned(), true)]));
    }
    write("");
    let error = registry::load(site.path()).unwrap_err().to_string();
    assert!(error.contains("chains.json"), "{error}");
}

#[test]
fn unknown_words_are_neutral_and_reported_and_the_old_words_keep_their_meaning() {
    let files = PublicFiles::new();
    let text = files.read(PAIR);
    let with = |status: &str| changed(&text, (r#""status":"ACTIVE""#, &format!(r#""status":"{status}""#)));
    for (status, is_open, is_known) in [
        ("ACTIVE", true, true),
        ("active", true, true),
        ("live", true, true),
        ("Live ", true, true),
        ("OPERATIONAL", true, false),
        ("", true, false),
        ("INACTIVE", false, true),
        ("inactive", false, true),
        ("CLOSED", false, true),
        ("PENDING", false, true),
        ("killed", false, true),
        ("upcoming", false, true),
    ] {
        files.write(PAIR, &with(status));
        let loaded = files.first();
        assert_eq!(counts(&loaded)[2], usize::from(is_open), "{status}");
        let reported = loaded.problems.iter().any(|problem| problem.what.contains("is unknown, 1 times"));
        assert_eq!(reported, !is_known, "{status}: {:?}", loaded.problems);
        assert_eq!(errors(&loaded), [""; 0]);
    }
    files.write(PAIR, &changed(&text, (r#","tags":{"preferred":true,"status":"ACTIVE"}"#, "")));
    assert_eq!(counts(&files.first()), [2, 2, 1]);
    for (version, is_known) in [("ics-20", true), ("ICS20-1", true), ("ics20-2", true), ("ics99-1", false)] {
        files.write(PAIR, &changed(&text, ("ics20-1", version)));
        let loaded = files.first();
        assert_eq!(counts(&loaded)[2], 1, "{version}");
        assert_eq!(loaded.problems.is_empty(), is_known, "{version}: {:?}", loaded.problems);
    }
    files.write(PAIR, &text);
    let text = files.read(CHAIN);
    for (change, chains) in [
        ((r#""status":"live""#, r#""status":"running""#), 2),
        ((r#""status":"live""#, r#""status":"LIVE""#), 2),
        ((r#""status":"live""#, r#""status":"Killed""#), 1),
        ((r#""chain_type":"cosmos""#, r#""chain_type":"Cosmos""#), 2),
        ((r#""chain_type":"cosmos""#, r#""chain_type":"cosmos-sdk""#), 2),
        ((r#""chain_type":"cosmos""#, r#""chain_type":"eip155""#), 1),
        ((r#""network_type":"mainnet""#, r#""network_type":"main""#), 2),
    ] {
        files.write(CHAIN, &changed(&text, change));
        let loaded = files.first();
        assert_eq!(loaded.registry.chains().count(), chains, "{change:?}");
        assert!(loaded.registry.chains().all(|(_, chain)| !chain.testnet), "{change:?}");
        let is_reported = loaded.problems.iter().any(|problem| problem.what.contains("is unknown"));
        assert_eq!(
            is_reported,
            ["running", "cosmos-sdk", "\"main\""].iter().any(|word| change.1.contains(word))
        );
    }
}

#[test]
fn deprecated_tokens_and_chains_are_hidden() {
    let files = PublicFiles::new();
    let text = changed(&files.read(ASSETS), (r#""base""#, r#""deprecated":true,"base""#));
    files.write(ASSETS, &text);
    let registry = files.first().registry;
    let hidden: Vec<_> = registry.assets().map(|(_, asset)| (asset.denom.as_str(), asset.hidden)).collect();
    assert_eq!(hidden, [("uatom", false), ("uzone", true)]);
    let site = tempfile::tempdir().unwrap();
    let mut old = chain("yard", "yard-1", "init");
    old["metadata"] = json!({ "deprecated": true });
    std::fs::write(site.path().join("chains.json"), json!([old]).to_string()).unwrap();
    let registry = registry::load(site.path()).unwrap().registry;
    assert!(registry.chains().all(|(_, chain)| chain.hidden));
}

/// A folder that imports a registry in each layout.
fn both(initia: &Path, cosmos: &Path) -> tempfile::TempDir {
    let own = tempfile::tempdir().unwrap();
    let [initia, cosmos] = [initia, cosmos].map(|dir| dir.display().to_string());
    let text = format!("[import]\ninitia = {initia:?}\nchain_registry = {cosmos:?}\n");
    std::fs::write(own.path().join("registry.toml"), text).unwrap();
    own
}

#[test]
fn a_name_means_a_chain_of_its_own_registry() {
    let (cosmos, initia) = (PublicFiles::new(), tempfile::tempdir().unwrap());
    // Another chain with the name of one of the cosmos chain registry.
    let path = initia.path().join("mainnets/zone");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("chain.json"), chain("zone", "yard-1", "init").to_string()).unwrap();
    let voucher = registry::denom::of_path("transfer/channel-1/uzone");
    let mut list = assets("hub", "atom");
    let mut asset = assets("hub", "zone")["assets"][0].clone();
    asset["base"] = json!(voucher);
    asset["denom_units"] = json!([{ "denom": "zone", "exponent": 6 }]);
    asset["traces"] = json!([{
        "type": "ibc",
        "counterparty": { "chain_name": "zone", "base_denom": "uzone", "channel_id": "channel-9" },
        "chain": { "channel_id": "channel-1", "path": "transfer/channel-1/uzone" },
    }]);
    list["assets"].as_array_mut().unwrap().push(asset);
    cosmos.write("hub/assetlist.json", &list.to_string());
    let loaded = registry::load(both(initia.path(), cosmos.0.path()).path()).unwrap();
    let registry = &loaded.registry;
    let chain_of = |denom: &str| {
        let asset = registry.asset(registry.chain("hub-4").unwrap(), denom).unwrap();
        registry[registry[registry.root(asset)].chain].id.as_str()
    };
    assert_eq!(chain_of(&voucher), "zone-1");
    let (_, channel) = registry.channels().next().unwrap();
    let ends = [&channel.a, &channel.b].map(|end| registry[end.chain].id.as_str());
    assert_eq!((ends, registry.channels().count()), (["hub-4", "zone-1"], 1));
    let none = registry.chain("yard-1").unwrap();
    assert_eq!(
        (registry.assets().filter(|(_, asset)| asset.chain == none).count(), &*loaded.problems),
        (0, &[][..])
    );
}

#[test]
fn a_second_chain_with_the_name_or_the_id_of_another_takes_nothing_from_it() {
    let files = PublicFiles::new();
    let good = files.first();
    // A copy with another id: the name means neither, and the chains stay.
    files.write("copy/chain.json", &chain("zone", "copy-1", "copy").to_string());
    let loaded = files.load(&good.files);
    assert_eq!((loaded.registry.chains().count(), counts(&loaded)[2]), (3, 0));
    assert!(loaded.problems.iter().any(|problem| problem.what.contains("is that of two chains")));
    // A copy with the same id: the folder that was known before stays, with all that it says.
    files.write("a-copy/chain.json", &chain("other", "zone-1", "wrong").to_string());
    files.write("a-copy/assetlist.json", &assets("other", "zone").to_string());
    std::fs::remove_dir_all(files.path("copy")).unwrap();
    let mut loaded = files.load(&good.files);
    for _ in 0..3 {
        assert_eq!(loaded.registry.hash(), good.registry.hash(), "{:?}", loaded.problems);
        assert!(loaded.problems.iter().any(|problem| problem.what.contains("`zone-1` is there twice")));
        loaded = files.load(&loaded.files);
    }
}
