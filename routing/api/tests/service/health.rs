//! The health check names the registry in use.

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
