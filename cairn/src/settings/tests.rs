//! The precedence and the errors of settings.

use super::sources::{SERVICE, Sources};
use super::values::{Source, Value};
use std::time::Duration;

use web::limits::Limits;

use super::*;

/// The settings with the value `text` of `name` as a flag.
fn with(given: &[(&str, &str)]) -> Result<Settings, Error> {
    let command = Sources::<SERVICE>::augment_args(Command::new("test"));
    let matches = command.get_matches_from(["test"]);
    let mut values = Sources::<SERVICE>::from_arg_matches(&matches).unwrap().merged()?;
    for (name, text) in given {
        let value = Value { texts: vec![(*text).to_owned()], source: Source::Flag(flag_of(name)) };
        values.insert((*name).to_owned(), value);
    }
    Settings::new(&values)
}

fn refused(name: &str, text: &str) -> String {
    with(&[(name, text)]).unwrap_err().to_string()
}

#[test]
fn flag_and_variable_are_the_name_in_another_spelling() {
    for arg in args() {
        let name = arg.get_id().as_str();
        assert_eq!(arg.get_long(), Some(&*name.replace(['_', '.'], "-")));
        assert_eq!(arg.get_env().unwrap(), &*format!("CAIRN_{}", name.replace('.', "_").to_uppercase()));
    }
}

#[test]
fn sections_come_after_settings_of_no_section() {
    // In TOML, every key after a section's heading belongs to the section.
    assert!(args().is_sorted_by_key(|arg| arg.get_id().as_str().contains('.')));
}

#[test]
fn defaults_and_examples_are_values_that_are_accepted() {
    let defaults = with(&[]).unwrap();
    let limits = defaults.limits();
    assert_eq!(defaults.look_ahead, ingest::config::LOOK_AHEAD);
    assert_eq!(limits.connections, Limits::default().connections);
    assert_eq!(limits.requests, Limits::default().requests);
    assert_eq!(limits.requests_per_client, Limits::default().requests_per_client);
    assert_eq!(limits.connections_per_client, Limits::default().connections_per_client);
    assert_eq!(limits.response_bytes, Limits::default().response_bytes);
    assert_eq!(limits.per_client, None);
    assert_eq!(defaults.cache_bytes(), store::RocksOptions::default().cache_bytes);
    assert!(defaults.route().is_none());
    assert_eq!(defaults.index, [&schema::bridge::BRIDGE, &schema::packets::PACKETS]);

    let examples = [print::REQUIRED, print::OPTIONAL, &[("verify", "signatures")]].concat();
    let settings = with(&examples).unwrap();
    let route = settings.route().unwrap();
    assert_eq!(route.config.tracker, tracker::Options::default());
    assert_eq!(route.limits.per_client_of_path.len(), 2);
    let config = settings.ingest(true).unwrap();
    assert!(matches!(config.verify, Verify::Signatures { trusted: Some((1, _)) }));
    assert!(settings.endpoints().is_ok() && settings.data().is_ok());
}

#[test]
fn an_object_store_needs_the_feature_and_the_chain() {
    let data = ("data", "s3://bucket/prefix");
    let error = with(&[data]).unwrap().location().unwrap_err().to_string();
    let named = with(&[data, ("chain_id", "a-1")]).unwrap();
    if cfg!(feature = "slate") {
        assert!(error.contains("chain-id"), "{error}");
        assert!(named.location().is_ok());
        assert!(named.data().unwrap_err().to_string().contains("needs a database in a directory"));
    } else {
        assert!(error.contains("without the cargo feature `slate`"), "{error}");
        assert!(named.location().is_err() && named.data().is_err());
    }
}

#[test]
fn a_value_out_of_bounds_is_refused_with_the_bounds() {
    assert_eq!(refused("look_ahead", "0"), "--look-ahead: `0` is not a number from 1 to 1024");
    assert_eq!(refused("poll", "2m"), "--poll: `2m` is not a time from 10ms to 60s");
    assert_eq!(refused("cache", "1MiB"), "--cache: `1MiB` is not a size from 8MiB to 1TiB");
    assert!(refused("max_connections", "-1").starts_with("--max-connections: "));
    assert_eq!(refused("max_requests", "0"), "--max-requests: `0` is not a number from 1 to 1000000");
    let retention = "--route-retention: `30m` is not a time from 1h to 3650d";
    assert_eq!(refused("route.retention", "30m"), retention);
    assert!(refused("route.unseen_per_client", "0").ends_with("is not a number from 1 to 1000000"));
    assert!(refused("route.track_rate", "0/s").contains("a rate such as 50/s"));
    assert!(refused("ready_lag", "-1").starts_with("--ready-lag: "));
}

#[test]
fn a_trusted_block_without_the_check_that_uses_it_is_an_error() {
    let given = [print::REQUIRED, print::OPTIONAL].concat();
    let error = with(&given).unwrap().ingest(true).unwrap_err().to_string();
    assert!(error.starts_with("`trusted` counts only with `verify = \"signatures\"`"), "{error}");
}

#[test]
fn a_value_that_does_not_parse_is_refused_with_the_allowed_values() {
    assert!(refused("listen", "localhost").contains("127.0.0.1:8080"));
    assert!(refused("rate_limit", "50").ends_with("numbers from 1 to 4294967295"));
    assert!(refused("route.track_rate", "50").ends_with("numbers from 1 to 4294967295, or `off`"));
    for bad in ["10.0.0.0/33", "10.0.0", "proxy.example", "10.0.0.1/", "fd00::/129"] {
        assert!(
            refused("trusted_proxies", bad).ends_with("such as 10.0.0.1, 10.0.0.0/8 or fd00::/8"),
            "{bad}"
        );
    }
    assert!(refused("vm", "EVM").contains("evm, move, wasm or none"));
    assert!(refused("evm", "evmos").ends_with("`evmos` is not auto, minievm, cosmos-evm or ethermint"));
    assert_eq!(refused("rich_list", "yes"), "--rich-list: `yes` is not one of true, false");
    assert!(refused("log_format", "xml").ends_with("`xml` is not one of text, json"));
    assert!(refused("log", "ingest=loud").contains("info,ingest=debug"));
    assert!(refused("cors", "app.example").ends_with("or `none`"));
    assert!(refused("trusted", "5:2D35").ends_with("such as 1200:2D35…9184C"));
    assert!(refused("pagination.empty_cursor", "").ends_with("is not one of null, string"));
    for name in ["chain_id", "prefix", "data", "route.registry"] {
        assert!(refused(name, "").starts_with(&format!("--{}: ", flag_of(name))), "{}", refused(name, ""));
    }
    assert!(refused("start_height", "0").starts_with("--start-height: "));
}

#[test]
fn a_duration_of_less_than_a_second_is_one_between_comparisons() {
    let every = |text| with(&[print::REQUIRED, &[("reconcile", text)]].concat()).unwrap().ingest(true);
    assert_eq!(every("0s").unwrap().reconcile_every, None);
    assert_eq!(every("1ms").unwrap().reconcile_every, Some(Duration::from_secs(1)));
    assert_eq!(every("24h").unwrap().reconcile_every, Some(Duration::from_hours(24)));
}

#[test]
fn a_registry_needs_a_database() {
    let message = with(&[("route.registry", "registry")]).unwrap_err().to_string();
    assert!(message.starts_with("`route.data` is not set"), "{message}");
}

#[test]
fn a_password_in_a_refused_address_is_not_shown() {
    let message = refused("comet", "ftp://me:hunter2@node/hunter2");
    assert_eq!(message, "--comet: node address `ftp://***@node/***`: must begin with http:// or https://");
}

#[test]
fn a_missing_setting_is_reported_with_all_its_spellings() {
    let message = with(&[]).unwrap().ingest(true).unwrap_err().to_string();
    assert_eq!(message, "`chain_id` is not set: give --chain-id, CAIRN_CHAIN_ID or `chain_id` in the file");
}

#[test]
fn a_setting_of_json_rpc_without_effect_is_refused() {
    let check = |given: &[(&str, &str)], vm: Option<&str>| {
        with(given).unwrap().check_evm(vm).map_err(|error| error.to_string())
    };
    let listen = ("evm_listen", "127.0.0.1:0");
    for setting in [
        ("evm_forward", "state"),
        ("evm_forward_to", "http://127.0.0.1:8545"),
        ("evm_forward_at", "index"),
        ("evm_replies", "node"),
    ] {
        let alone = check(&[setting], Some("evm")).unwrap_err();
        assert_eq!(
            alone,
            format!("`{0}` counts only with `evm_listen`: set that, or remove `{0}`", setting.0)
        );
        let of_listener = check(&[listen, ("evm_forward", "send"), setting], Some("evm"));
        assert!(of_listener.is_ok(), "{of_listener:?}");
    }
    for setting in [
        ("otterscan", "/srv/otterscan"),
        ("evm_currency", "GAS"),
        ("evm_frames", "clean"),
        ("evm_filters", "true"),
        ("abi", "/srv/abi"),
        ("sourcify", "http://127.0.0.1:5555"),
    ] {
        assert!(check(&[setting], Some("evm")).unwrap_err().contains("only with `evm_listen`"));
        let alone = check(&[listen, setting], Some("evm"));
        assert!(alone.is_ok(), "{setting:?} needs nothing else: {alone:?}");
    }
    let to = check(&[listen, ("evm_forward_to", "http://127.0.0.1:8545")], None).unwrap_err();
    assert!(to.contains("only with `evm_forward`"), "{to}");
    for vm in ["move", "wasm", "none"] {
        assert!(check(&[listen], Some(vm)).unwrap_err().contains("`evm_listen` needs a chain with an EVM"));
        for index in ["logs", "blocks", "contracts", "parties"] {
            let error = check(&[("index", index)], Some(vm)).unwrap_err();
            assert!(
                error.contains(&format!("`index` names `{index}`, which needs a chain with an EVM")),
                "{error}"
            );
        }
    }
    let written = |given: &[(&str, &str)]| {
        with(given).unwrap().index.iter().map(|index| index.name).collect::<Vec<_>>()
    };
    assert_eq!(written(&[]), ["bridge", "packets"], "by default");
    assert!(written(&[("index", "none")]).is_empty());
    let calls = check(&[("index", "call_errors"), ("internal_txs", "false")], Some("evm")).unwrap_err();
    assert!(
        calls.contains("needs `internal_txs`") && check(&[("index", "call_errors")], None).is_ok(),
        "{calls}"
    );
    assert!(check(&[listen, ("index", "logs")], Some("evm")).is_ok() && check(&[listen], None).is_ok());
}
