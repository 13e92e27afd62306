//! Our answers on the recorded chains, compared with the deployed server's on the same chains.

use std::sync::Arc;

use replay::{Options, Recording};
use store::{MemStore, RocksOptions, RocksStore, Store};
use testkit::{golden, indexed, recording};
use web::app::App;

async fn compare(chain: &str, golden: &str, store: Arc<dyn Store>) {
    let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
    indexed::index(recording, Options::default(), Arc::clone(&store)).await.unwrap();
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();

    let (mut same, mut different) = (0, Vec::new());
    for case in golden::cases(golden).unwrap().iter().filter(|case| case.left_out().is_none()) {
        let response = app.get(&case.target);
        match case.difference(response.status().as_u16(), response.body()) {
            None => same += 1,
            Some(difference) => different.push(format!("{}\n    {difference}", case.target)),
        }
    }
    let shown = different.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} of {} differ:\n{shown}", different.len(), same + different.len());
    assert!(same > 100, "only {same} answers were compared");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evm_rollup_is_answered_as_the_deployed_server_does() {
    let dir = tempfile::tempdir().unwrap();
    let store = RocksStore::open(dir.path(), schema::TABLES, RocksOptions::default()).unwrap();
    compare("evm-scenario", "evm-scenario", Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollup_with_bridge_and_ibc_is_answered_as_the_deployed_server_does() {
    compare("l1-l2/l2", "l1-l2-l2", Arc::new(MemStore::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_rollup_is_answered_as_the_deployed_server_does() {
    compare("move-scenario", "move-scenario", Arc::new(MemStore::new())).await;
}
