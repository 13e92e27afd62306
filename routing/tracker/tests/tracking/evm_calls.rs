//! A recorded chain with an EVM of cosmos/evm: a call that fails is a transaction that succeeds, and the logs of calls are in
//! receipts only.

use std::sync::Arc;

use chain::Vm;
use registry::{Builder, ChainKind, Endpoints};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tracker::{Options, Tracker};

use crate::whole::afterwards;
use crate::world::{Services, chain, endpoints, play, recording};

const ID: &str = "cosmosevm_9005-1";
/// It emits logs of a token.
const GOOD: &str = "A4E189911156266057281173B24E3730C80B1D5E0BE1CA40647B0F86240DECD7";
const REVERTED: &str = "395F0A36E96158CBD9D4187CB4F13A111EF75F85E6DE69AB98897FC941FCFEC9";

/// The responses about both transactions.
async fn tracked(with_json_rpc: bool) -> [Value; 2] {
    let node = play(&recording("cosmos-evm"), None, &[]).await;
    let all = endpoints(&node, Services::All);
    let json_rpc = if with_json_rpc { all.json_rpc.clone() } else { Vec::new() };
    let mut builder = Builder::new();
    builder.chain(chain(ID, ChainKind::Cosmos, Vm::None, Endpoints { json_rpc, ..all })).unwrap();
    let (_, registry) = watch::channel(Arc::new(builder.finish("test".to_owned())));
    let dir = TempDir::new().unwrap();
    let tracker = Tracker::open(dir.path(), registry, Options::default()).unwrap();
    for hash in [GOOD, REVERTED] {
        tracker.track(ID, hash, afterwards()).unwrap();
    }
    tracker.poll_due(afterwards()).await.unwrap();
    [GOOD, REVERTED].map(|hash| serde_json::from_slice(&tracker.status(ID, hash).unwrap().unwrap()).unwrap())
}

#[tokio::test]
async fn a_call_that_reverts_is_a_failure_and_one_that_stays_on_its_chain_is_done() {
    let [good, reverted] = tracked(true).await;
    assert_eq!((&good["state"], &good["error"]), (&"STATE_COMPLETED_SUCCESS".into(), &Value::Null));
    assert_eq!(reverted["state"], "STATE_COMPLETED_ERROR");
    assert_eq!(reverted["error"]["type"], "STATUS_ERROR_TRANSACTION_EXECUTION");
    assert_eq!(reverted["error"]["message"], "execution reverted");
}

#[tokio::test]
async fn without_its_logs_it_is_not_known_what_a_call_did() {
    let [good, reverted] = tracked(false).await;
    assert_eq!(good["state"], "STATE_PENDING");
    let message = good["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("cannot be followed: cosmosevm_9005-1 shows no logs"), "{message}");
    assert_eq!(reverted["state"], "STATE_COMPLETED_ERROR");
}
