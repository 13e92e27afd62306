//! The native format: its defaults, and refusals with file, line and key.

use registry::{LoadError, Origin, Registry, load_text, load_texts};

const TWO: &str = "[[chain]]
id = 'l1-1'
name = 'initia'
l1 = true

[[chain]]
id = 'x-1'
bech32_prefix = 'x'

[[channel]]
a = 'x-1/transfer/channel-1'
b = 'l1-1/transfer/channel-0'

[[asset]]
chain = 'l1-1'
denom = 'uinit'
symbol = 'INIT'
decimals = 6
";

fn refused(text: &str) -> String {
    load_text(text).unwrap_err().to_string()
}

/// [`TWO`] with an addition.
fn two(more: &str) -> Result<Registry, LoadError> {
    load_text(&format!("{TWO}{more}"))
}

fn two_refused(more: &str) -> String {
    two(more).unwrap_err().to_string()
}

#[test]
fn missing_members_of_a_chain_have_defaults() {
    let registry =
        load_text("[[chain]]\nid = 'a-1'\nvm = 'evm'\n[[chain]]\nid = '5'\nkind = 'evm'\n").unwrap();
    let chain = |id: &str| &registry[registry.chain(id).unwrap()];
    let rollup = chain("a-1");
    assert_eq!((rollup.name.as_str(), rollup.pretty_name.as_str()), ("a-1", "a-1"));
    assert!(rollup.initia && rollup.forwards && !rollup.l1 && !rollup.testnet && !rollup.hidden);
    assert_eq!((rollup.bech32_prefix.as_str(), rollup.confirmations, rollup.block_seconds), ("init", 1, 2));
    let evm = chain("5");
    assert!(!evm.initia && !evm.forwards && evm.bech32_prefix.is_empty());
    assert_eq!((evm.confirmations, evm.block_seconds), (15, 12));
}

#[test]
fn the_coin_of_an_evm_chain_is_an_asset_that_a_file_can_extend() {
    let text = "[[chain]]\nid = '5'\nname = 'five'\nkind = 'evm'\nnative = { name = 'Five', symbol = 'FIV' }\n\
                [[asset]]\nchain = '5'\ndenom = 'FIVE-native'\nprice_usd = 1.5\n";
    let registry = load_text(&text.replace("FIVE", "five")).unwrap();
    let coin = registry.native_asset(registry.chain("5").unwrap()).unwrap();
    assert_eq!((registry[coin].symbol.as_str(), registry[coin].decimals), ("FIV", 18));
    assert_eq!(registry[coin].price_usd.as_deref(), Some("1.5"));
}

#[test]
fn a_denomination_that_can_be_computed_may_be_left_out_and_must_be_right() {
    let registry =
        two("[[asset]]\nchain = 'x-1'\nibc = { channel = 'channel-1', from = 'uinit' }\n").unwrap();
    let denom = registry::denom::of_path("transfer/channel-1/uinit");
    let asset = registry.asset(registry.chain("x-1").unwrap(), &denom).unwrap();
    assert_eq!((registry[asset].symbol.as_str(), registry[asset].decimals), ("INIT", 6));
    assert!(matches!(registry[asset].origin, Origin::Ibc { .. }));
    let wrong = two_refused(
        "[[asset]]\nchain = 'x-1'\ndenom = 'ibc/AB'\nibc = { channel = 'channel-1', from = 'uinit' }\n",
    );
    assert!(wrong.starts_with("registry.toml line 19: `asset`: denom `ibc/AB` cannot be: path"), "{wrong}");
    let path = "[[asset]]\nchain = 'x-1'\ndenom = 'ibc/AB'\npath = 'transfer/channel-9/ux'\nsymbol = 'X'\ndecimals = 3\n";
    assert!(two_refused(path).contains("denom `ibc/AB` cannot be: path `transfer/channel-9/ux` gives `ibc/"));
    let shape = two_refused("[[asset]]\nchain = 'l1-1'\ndenom = 'u'\nsymbol = 'U'\ndecimals = 6\n");
    assert!(shape.contains("denom `u`: a letter, then 2 to 127"), "{shape}");
}

#[test]
fn a_parent_may_be_named_by_its_path_and_follow_its_child() {
    let child =
        "[[asset]]\nchain = 'l1-1'\nibc = { channel = 'channel-0', from = 'transfer/channel-9/ux' }\n";
    let parent = "[[asset]]\nchain = 'x-1'\npath = 'transfer/channel-9/ux'\nsymbol = 'X'\ndecimals = 3\n";
    let registry = two(&format!("{child}{parent}")).unwrap();
    let denom = registry::denom::of_path("transfer/channel-0/transfer/channel-9/ux");
    let asset = registry.asset(registry.chain("l1-1").unwrap(), &denom).unwrap();
    assert_eq!(registry.trace(asset), "transfer/channel-0/transfer/channel-9");
    assert_eq!(registry[registry.root(asset)].denom, registry::denom::of_path("transfer/channel-9/ux"));
}

#[test]
fn a_cycle_of_parents_is_refused_by_name() {
    let voucher = registry::denom::of_path("transfer/channel-1/uring");
    let ring = format!(
        "[[asset]]\nchain = 'l1-1'\ndenom = 'uring'\nibc = {{ channel = 'channel-0', from = '{voucher}' }}\n\
         [[asset]]\nchain = 'x-1'\ndenom = '{voucher}'\nibc = {{ channel = 'channel-1', from = 'uring' }}\n"
    );
    let refused = two_refused(&ring);
    assert!(refused.contains("its origin leads back to itself: `"), "{refused}");
    assert!(refused.contains("`uring` of `l1-1` from") && refused.contains(&voucher), "{refused}");
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest_known_one() {
    assert_eq!(
        refused("[[chain]]\nid = 'a'\npretty-name = 'b'\n"),
        "registry.toml line 3: `chain.pretty-name`: there is no such key; the nearest known one is `pretty_name`"
    );
    assert_eq!(
        refused("[[chain]]\nid = 'a'\n[chain.endpoints]\nrpcs = []\n"),
        "registry.toml line 4: `chain.endpoints.rpcs`: there is no such key; the nearest known one is `rpc`"
    );
    // A misspelt key is reported as unknown, not as missing.
    assert!(refused("[[chain]]\nidd = 'a'\n").contains("`chain.idd`: there is no such key"));
    assert!(refused("[[chians]]\nid = 'a'\n").contains("the nearest known one is `chain`"));
}

#[test]
fn an_invalid_value_is_refused_with_its_line_and_key() {
    let cases = [
        ("[[chain]]\nname = 'a'\n", "line 1: `chain`: `id` is missing"),
        ("[[chain]]\nid = 1\n", "line 2: `chain.id`: must be a text, not integer `1`"),
        ("[[chain]]\nid = ''\n", "line 2: `chain.id`: must be a text that is not empty"),
        ("[chain]\nid = 'a'\n", "line 1: `chain`: must be an array of tables: write `[[chain]]`"),
        (
            "[[chain]]\nid = 'a'\nvm = 'move2'\n",
            "line 3: `chain.vm`: must be one of evm, move, wasm, none, not string \"move2\"",
        ),
        (
            "[[chain]]\nid = 'a'\nl1 = 'yes'\n",
            "line 3: `chain.l1`: must be true or false, not string \"yes\"",
        ),
        (
            "[[chain]]\nid = 'a'\nconfirmations = -1\n",
            "line 3: `chain.confirmations`: must be a whole number from 0 to 4294967295, not integer `-1`",
        ),
        ("[[chain]]\nid = 'a'\nconfirmations = 4294967296\n", "must be a whole number"),
        ("[[chain]]\nid = 'a'\nblock_seconds = 1.5\n", "must be a whole number"),
        (
            "[[chain]]\nid = 'a'\nendpoints = { rpc = 'x' }\n",
            "line 3: `chain.endpoints.rpc`: must be an array",
        ),
        ("[[chain]]\nid = 'a'\nendpoints = { rpc = [''] }\n", "must be an array of texts that are not empty"),
        (
            "[[chain]]\nid = 'a'\nlogo_uri = ''\n",
            "line 3: `chain.logo_uri`: must be a text that is not empty",
        ),
        ("[[chain]]\nid = 'a'\nkind = 'EVM'\n", "line 3: `chain.kind`: must be cosmos or evm, not `EVM`"),
        ("[[chain]]\nid = 'a'\nfee_assets = [{ denom = 'u', low = 'x' }]\n", "must be a decimal number"),
        ("[[chain]]\nid = 'a'\nkind = 'evm'\n", "the id of an EVM chain is its decimal number"),
        ("[[chain]]\nid = 'a'\n", "a cosmos chain has an id and a bech32_prefix"),
        ("[[channel]]\na = 'x/channel-1'\n", "line 2: `channel.a`: must be chain, port and channel"),
        (
            "[[asset]]\nchain = 'a'\nprice_usd = 'much'\n",
            "`asset.price_usd`: must be a decimal number such as \"0.15\", not `much`",
        ),
        (
            "[[asset]]\nchain = 'a'\nterms = { fee_bps = 10001 }\n",
            "`asset.terms.fee_bps`: must be at most 10000: hundredths of a percent, not integer `10001`",
        ),
        ("[[asset]]\nchain = 'a'\nterms = { min_amount = 1.5 }\n", "must be a whole number of base units"),
        (
            "[[asset]]\nchain = 'a'\npath = 'p'\nbridged = { from = 'u' }\n",
            "one of `ibc`, `bridged`, `wrapped` and `path`",
        ),
        ("[[oft]]\nsymbol = 'a'\n[[oft.leg]]\nchain = 'a'\n", "`denom` is missing"),
        ("[[bridge_kind]]\nid = 'X'\nlogo_uri = 'a'\n", "must be one of IBC, OPINIT, LAYER_ZERO"),
        ("[[chain]]\nid = 'a'\nid = 'b'\n", "cannot be parsed: line 3, column 1: duplicate key"),
        ("[[chain\n", "registry.toml cannot be parsed"),
        ("[import]\ninitia = 'x'\n", "a text has no folder to import from"),
    ];
    for (text, wanted) in cases {
        let refused = refused(text);
        assert!(refused.contains(wanted), "{wanted}: {refused}");
        assert!(!refused.contains('\n'), "{refused}");
    }
}

#[test]
fn a_reference_to_a_missing_part_is_refused() {
    let cases = [
        (
            "[[channel]]\na = 'x-1/transfer/channel-5'\nb = 'y-1/transfer/channel-0'\n",
            "chain `y-1` is in no list",
        ),
        ("[[channel]]\na = 'x-1/transfer/channel-5'\n", "`b` is missing"),
        (
            "[[channel]]\na = 'x-1/transfer/channel-5'\nb = 'l1-1/transfer/channel-0'\n",
            "the channel is there twice: also in",
        ),
        ("[[bridge]]\nid = 1\nl2 = 'y-1'\n", "chain `y-1` is in no list"),
        ("[[bridge]]\nl2 = 'x-1'\n", "`id` is missing"),
        (
            "[[bridge]]\nid = 1\nl2 = 'x-1'\nmigrated = [{ denom = 'uinit', channel = 'channel-7' }]\n",
            "transfer/channel-7 of `l1-1`",
        ),
        ("[[asset]]\nchain = 'y-1'\ndenom = 'uy'\n", "chain `y-1` is in no list"),
        (
            "[[asset]]\nchain = 'x-1'\nibc = { channel = 'channel-1', from = 'uno' }\n",
            "it comes from `uno` of `l1-1`, which is in no list",
        ),
        (
            "[[asset]]\nchain = 'x-1'\nibc = { channel = 'channel-2', from = 'uinit' }\n",
            "channel transfer/channel-2 of `x-1` is in no list",
        ),
        ("[[asset]]\nchain = 'x-1'\nbridged = { from = 'uinit' }\n", "`x-1` has no bridge"),
        ("[[asset]]\nchain = 'x-1'\ndenom = 'uxx'\n", "`symbol` is missing"),
        ("[[asset]]\nchain = 'x-1'\ndenom = 'uxx'\nsymbol = 'X'\n", "`decimals` is missing"),
        ("[[asset]]\nchain = 'x-1'\nsymbol = 'X'\n", "`denom` is missing"),
        (
            "[[asset]]\nchain = 'l1-1'\ndenom = 'uinit'\n",
            "`uinit` is there twice: also in registry.toml line 14",
        ),
        ("[[chain]]\nid = 'x-1'\n", "chain `x-1` is there twice: also in registry.toml line 6"),
        ("[[venue]]\nname = 'v'\nchain = 'y-1'\n", "chain `y-1` is in no list"),
        (
            "[[oft]]\nsymbol = 'O'\n[[oft.leg]]\nchain = 'x-1'\ndenom = 'uo'\nkind = 'move'\ncontract = '0x2'\n",
            "chain `x-1` has no asset `uo`",
        ),
        (
            "[[oft]]\nsymbol = 'O'\n[[oft.leg]]\nchain = 'l1-1'\ndenom = 'uinit'\nkind = 'move'\ncontract = '0x2'\n",
            "`eid` is missing",
        ),
        (
            "[[oft]]\nsymbol = 'O'\n[[oft.leg]]\nchain = 'l1-1'\ndenom = 'uinit'\nkind = 'move'\ncontract = '0x2'\neid = 1\n",
            "two legs or more",
        ),
    ];
    for (more, wanted) in cases {
        let refused = two_refused(more);
        assert!(refused.contains(wanted), "{wanted}: {refused}");
        assert!(refused.starts_with("registry.toml line "), "{refused}");
    }
}

#[test]
fn json_is_equivalent_to_toml_and_names_its_keys() {
    let json = r#"{
        "chain": [{"id": "l1-1", "name": "initia", "l1": true}, {"id": "x-1", "bech32_prefix": "x"}],
        "channel": [{"a": "l1-1/transfer/channel-0", "b": "x-1/transfer/channel-1"}],
        "asset": [{"chain": "l1-1", "denom": "uinit", "symbol": "INIT", "decimals": 6}]
    }"#;
    let same = load_texts(&[("registry.json", json)]).unwrap();
    assert_eq!(same.hash(), load_text(TWO).unwrap().hash());
    let refused = |text: &str| load_texts(&[("registry.json", text)]).unwrap_err().to_string();
    assert_eq!(
        refused(&json.replace("symbol", "symbl")),
        "registry.json line 4: `asset[0].symbl`: there is no such key; the nearest known one is `symbol`"
    );
    assert!(refused(r#"{"chain": [{"id": "a", "id": "b"}]}"#).contains("the key `id` is there twice"));
    assert!(refused("[]").contains("cannot be parsed: invalid type: sequence, expected a map"));
    assert!(refused("{").contains("registry.json cannot be parsed"));
}

#[test]
fn addresses_take_keys_from_the_environment_and_no_message_contains_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{TWO}[[asset]]\nchain = 'x-1'\nsymbl = 'x'\n").replace(
        "bech32_prefix = 'x'",
        "bech32_prefix = 'x'\nendpoints = { rpc = ['https://n.example.org/${NODE_KEY}'] }",
    );
    std::fs::write(folder.path().join("chains.toml"), &text).unwrap();
    let load = |key: Option<&str>| {
        registry::load_with(folder.path(), &|name| (name == "NODE_KEY").then_some(key?.to_owned()))
    };
    let error = load(Some("s3cret")).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    assert!(error.to_string().contains("`asset.symbl`"));
    std::fs::write(
        folder.path().join("chains.toml"),
        text.replace("[[asset]]\nchain = 'x-1'\nsymbl = 'x'\n", ""),
    )
    .unwrap();
    let registry = load(Some("s3cret")).unwrap().registry;
    let endpoints = &registry.chains().find(|(_, chain)| chain.id == "x-1").unwrap().1.endpoints;
    assert_eq!(endpoints.rpc, ["https://n.example.org/s3cret"]);
    assert_eq!(endpoints.first_public(&endpoints.rpc), None);
    let others = ["https://u:p@n.example.org".to_owned(), "https://n.example.org".to_owned()];
    assert_eq!(endpoints.first_public(&others), Some("https://n.example.org"));
    let error = load(None).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "chains.toml line 9: `chain.endpoints.rpc`: the environment variable `NODE_KEY` is not set"
        ),
        "{error}"
    );
    let loaded = load(Some("s3cret")).unwrap();
    let registry = loaded.registry;
    let chain = &registry[registry.chain("x-1").unwrap()];
    assert_eq!(chain.endpoints.rpc, ["https://n.example.org/s3cret"]);
    assert!(!format!("{:?}", registry::check(&registry)).contains("s3cret"));
}

#[test]
fn no_error_quotes_an_address() {
    for endpoints in ["'http://u:s3cret@n'", "{ rpc = 'http://u:s3cret@n' }", "{ rpc = { s3cret = 1 } }"] {
        let error = refused(&format!("[[chain]]\nid = 'a'\nendpoints = {endpoints}\n"));
        assert!(error.starts_with("registry.toml line 3: `chain.endpoints"), "{error}");
        assert!(error.contains("must be") && !error.contains("s3cret"), "{error}");
    }
    let json = r#"{"chain": [{"id": "a", "endpoints": {"rest": "http://u:s3cret@n"}}]}"#;
    let error = load_texts(&[("registry.json", json)]).unwrap_err().to_string();
    assert_eq!(error, "registry.json line 1: `chain[0].endpoints.rest`: must be an array");
}

#[test]
fn an_amount_beyond_64_bits_may_be_a_number() {
    let terms = format!("terms = {{ min_amount = {}, fee_amount = '{}' }}", i128::MAX, chain::U256::MAX);
    let asset = "[[asset]]\nchain = 'x-1'\ndenom = 'uxx'\nsymbol = 'X'\ndecimals = 6\n";
    let registry = two(&format!("{asset}{terms}\n")).unwrap();
    let asset = registry.asset(registry.chain("x-1").unwrap(), "uxx").unwrap();
    assert_eq!(registry[asset].terms.min_amount.to_string(), i128::MAX.to_string());
    assert_eq!(registry[asset].terms.fee_amount, chain::U256::MAX);
}

#[test]
fn the_hash_identifies_the_content() {
    let hash = load_text(TWO).unwrap().hash().to_owned();
    assert_eq!(hash.len(), 64);
    assert_eq!(load_text(&format!("# a remark\n{TWO}")).unwrap().hash(), hash);
    for (from, to) in [("decimals = 6", "decimals = 7"), ("channel-1'", "channel-2'"), ("'x'", "'y'")] {
        assert_ne!(load_text(&TWO.replace(from, to)).unwrap().hash(), hash, "{from}");
    }
}

#[test]
fn other_json_in_the_folder_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("chains.toml"), TWO).unwrap();
    std::fs::write(folder.path().join("scenario.json"), "no registry").unwrap();
    std::fs::write(folder.path().join("more.registry.json"), r#"{"venue": [{"name": "v", "chain": "x-1"}]}"#)
        .unwrap();
    assert_eq!(registry::load(folder.path()).unwrap().registry.venues().len(), 1);
}
