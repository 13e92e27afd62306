//! The health check names the registry in use, and the files of public registries that were not taken as they are.

use std::fs;
use std::path::Path;

use registry::Endpoints;
use serde_json::{Value, json};

use crate::client::{Client, here};

#[tokio::test]
async fn health_names_the_registry_its_size_and_a_failed_reload() {
    let client = Client::mainnet();
    let health = client.get("/health").await.ok();
    assert_eq!(health["status"], "OK");
    let (about, info) = (&health["registry"], client.get("/v2/info/registry").await.ok());
    for name in ["hash", "chains", "assets", "channels", "bridges"] {
        assert_eq!(about[name], info[name], "{name}");
    }
    assert_eq!(about["is_stale"], false);
    assert!(about["age_seconds"].as_u64().unwrap() < 60 && about["assets"].as_u64().unwrap() > 0);

    client.service().reload(&here("no/such/directory")).unwrap_err();
    let after = client.get("/health").await.ok();
    assert_eq!((&after["registry"]["is_stale"], &after["registry"]["hash"]), (&true.into(), &about["hash"]));
    client.service().reload(&here("../registry/example")).unwrap();
    let after = client.get("/health").await.ok();
    assert_eq!(after["registry"]["is_stale"], false);
    assert_ne!(after["registry"]["hash"], about["hash"]);
}

/// A copy of a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            assert!(fs::copy(entry.path(), to).unwrap() > 0);
        }
    }
}

#[tokio::test]
async fn a_public_file_that_breaks_keeps_its_chain_in_use_and_is_named_with_its_age() {
    let files = tempfile::tempdir().unwrap();
    copy(&here("../registry/tests/shapes/chain-registry"), files.path());
    let loaded = registry::load(files.path()).unwrap();
    let client = Client::over(loaded.registry.with_endpoints(|_| Some(Endpoints::default())));
    client.service().set_files(loaded.files);
    let state = async || client.get("/health").await.ok()["registry"].clone();
    let good = state().await;
    assert_eq!((&good["is_stale"], &good["broken_files"]), (&json!(false), &json!([])));

    let broken = files.path().join("zone/chain.json");
    let text = fs::read_to_string(&broken).unwrap();
    fs::write(&broken, text.replacen(',', ",,", 1)).unwrap();
    client.service().reload(files.path()).unwrap();
    let stale = state().await;
    assert_eq!((&stale["is_stale"], &stale["chains"]), (&json!(true), &good["chains"]));
    let named = &stale["broken_files"][0];
    assert_eq!(named["name"], "zone/chain.json");
    assert!(named["age_seconds"].as_u64().unwrap() < 60);

    // A service that starts now has no good version.
    let loaded = registry::load(files.path()).unwrap();
    let second = Client::over(loaded.registry);
    second.service().set_files(loaded.files);
    let first_start = second.get("/health").await.ok()["registry"].clone();
    assert_eq!(
        first_start["broken_files"],
        json!([{ "name": "zone/chain.json", "age_seconds": Value::Null }])
    );
    assert_eq!(first_start["is_stale"], false);

    fs::write(&broken, text).unwrap();
    client.service().reload(files.path()).unwrap();
    let repaired = state().await;
    assert_eq!((&repaired["is_stale"], &repaired["broken_files"]), (&json!(false), &json!([])));
}
