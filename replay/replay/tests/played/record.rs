//! The recorder against a replay node over real sockets: it writes the same recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use node::{Endpoints, Limits, Node};
use replay::recording::{Outcome, Summary};
use replay::{Addresses, Options, RecordOptions, Recorder, Recording, ReplayNode, record};

fn open(name: &str) -> Arc<Recording> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name);
    Arc::new(Recording::open(&dir).unwrap())
}

async fn play(recording: &Arc<Recording>, options: Options) -> ReplayNode {
    ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap()
}

fn endpoints(node: &ReplayNode) -> Endpoints {
    Endpoints {
        comet: vec![node.comet_url().parse().unwrap()],
        rest: vec![node.rest_url().parse().unwrap()],
        json_rpc: vec![node.json_rpc_url().parse().unwrap()],
        ..Endpoints::default()
    }
}

fn options(of: &Recording) -> RecordOptions {
    let Summary { name, fee_denom, vm, .. } = of.summary().clone();
    let vm = ["evm", "move", "wasm", "none"].into_iter().find(|known| *known == vm).unwrap();
    RecordOptions { fee_denom, level: 1, ..RecordOptions::named(name, vm) }
}

fn same_heights(new: &Recording, old: &Recording) {
    assert_eq!(new.heights().len(), old.heights().len());
    for (new, old) in new.heights().iter().zip(old.heights()) {
        assert_eq!(format!("{new:?}"), format!("{old:?}"));
    }
}

/// Checks that the replies to an indexer's first requests exist and are equal; returns their number.
fn same_state(new: &Recording, old: &Recording) -> usize {
    let mut compared = 0;
    let last = old.last();
    for path in [
        "/cosmos/base/tendermint/v1beta1/node_info",
        "/cosmos/auth/v1beta1/bech32",
        "/opinit/opchild/v1/validators?pagination.limit=1000",
        "/initia/mstaking/v1/validators?pagination.limit=1000",
        "/minievm/evm/v1/params",
    ] {
        if path.starts_with("/minievm") && !old.is_evm() {
            continue;
        }
        let (new, old) =
            (new.state().rest("GET", path, None, None), old.state().rest("GET", path, None, None));
        let (new, old) = (new.unwrap(), old.unwrap());
        let json = |body: &[u8]| serde_json::from_slice::<serde_json::Value>(body).unwrap();
        assert_eq!((new.status, json(&new.body)), (old.status, json(&old.body)), "{path}");
        compared += 1;
    }
    let params = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let descriptors = params(&[("path", "/cosmos.reflection.v1.ReflectionService/FileDescriptors")]);
    let validators = params(&[("height", &last.to_string()), ("page", "1"), ("per_page", "100")]);
    for (method, params) in [("abci_query", descriptors), ("validators", validators)] {
        let found = new.state().cometbft(method, &params);
        assert!(found.is_some() && found == old.state().cometbft(method, &params), "{method}");
        compared += 1;
    }
    for method in ["eth_chainId", "net_version", "web3_clientVersion"] {
        assert_eq!(new.state().eth(method, b"[]"), old.state().eth(method, b"[]"), "{method}");
        compared += usize::from(old.is_evm());
    }
    for method in ["status", "abci_info"] {
        let Some(Outcome::Result(_)) = new.state().cometbft(method, &BTreeMap::new()) else {
            panic!("{method} was not recorded");
        };
    }
    compared
}

#[tokio::test]
async fn a_recording_made_of_a_replayed_chain_is_the_recording() {
    for (name, questions, missing) in
        [("evm-scenario", 10, 1), ("move-scenario", 6, 1), ("wasm-scenario", 6, 1)]
    {
        let old = open(name);
        let node = play(&old, Options::default()).await;
        let dir = tempfile::tempdir().unwrap();
        let mut reply = Vec::new();
        let (from, to) = (old.first(), old.last());
        let summary =
            record(endpoints(&node), dir.path(), from, to, &options(&old), |height| reply.push(height))
                .await
                .unwrap();
        assert_eq!(reply, (from..=to).collect::<Vec<_>>());
        let new = Recording::open(dir.path()).unwrap();
        assert_eq!(summary, *new.summary());
        let want = Summary { state_queries: summary.state_queries, ..old.summary().clone() };
        assert_eq!(summary, want);
        same_heights(&new, &old);
        assert_eq!(same_state(&new, &old), questions);
        // These recordings lack the staking module of other chains: a "not recorded" error is not written as a reply.
        assert_eq!(node.missing().count, missing, "{:?}", node.missing());
        assert!(
            new.state()
                .rest("GET", "/cosmos/staking/v1beta1/validators?pagination.limit=1000", None, None)
                .is_none()
        );
    }
}

#[tokio::test]
async fn requests_through_the_clients_of_a_recorder_are_recorded() {
    const NAME: [u8; 4] = [0x06, 0xfd, 0xde, 0x03];
    let gas = [
        0x04, 0x2a, 0xdd, 0x9e, 0x80, 0xf7, 0xa2, 0x3a, 0xb7, 0x1d, 0x5e, 0x1d, 0x39, 0x2a, 0xf1, 0xd3, 0x92,
        0x8b, 0x7d, 0x05,
    ];
    let ask = async |clients: &Node| {
        let (evm, rest) = (clients.evm.as_ref().unwrap(), clients.rest.as_ref().unwrap());
        let name = evm.call(gas, &NAME, Some(226)).await;
        (name.unwrap(), rest.accounts(Some(1), None).await.unwrap())
    };
    let old = open("evm-scenario");
    let node = play(&old, Options::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let mut recorder =
        Recorder::open(endpoints(&node), dir.path(), old.first(), old.last(), &options(&old)).await.unwrap();
    recorder.heights(|_| {}).await.unwrap();
    let reply = ask(&recorder.node().unwrap()).await;
    recorder.finish().await.unwrap();
    let node = play(&Arc::new(Recording::open(dir.path()).unwrap()), Options::default()).await;
    let again = ask(&Node::new(endpoints(&node), Limits::default()).unwrap()).await;
    assert_eq!((again, node.missing().count), (reply, 0));
}

#[tokio::test]
async fn faults_of_the_node_do_not_get_into_a_recording() {
    let old = open("wasm-scenario");
    let faults = ["500@0.1", "cut@0.1", "hang-up@0.05", "stale@0.1", "no-results@0.1"];
    let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    let node = play(&old, Options { faults, seed: 11, ..Options::default() }).await;
    let dir = tempfile::tempdir().unwrap();
    record(endpoints(&node), dir.path(), 4, 67, &options(&old), |_| {}).await.unwrap();
    assert!(node.faulted() > 30, "{}", node.faulted());
    same_heights(&Recording::open(dir.path()).unwrap(), &old);
}

#[tokio::test]
async fn an_interrupted_recording_continues_where_it_stopped() {
    let old = open("wasm-scenario");
    let node = play(&old, Options { up_to: Some(20), ..Options::default() }).await;
    let dir = tempfile::tempdir().unwrap();
    let (reached, mut wait) = tokio::sync::watch::channel(0);
    let first = options(&old);
    let recording = record(endpoints(&node), dir.path(), 4, 67, &first, |height| {
        reached.send_replace(height);
    });
    tokio::select! {
        ended = recording => panic!("ended before height 67 was shown: {ended:?}"),
        seen = wait.wait_for(|height| *height == 20) => assert_eq!(*seen.unwrap(), 20),
    }
    node.show(67).unwrap();
    let mut reply = Vec::new();
    record(endpoints(&node), dir.path(), 4, 67, &first, |height| reply.push(height)).await.unwrap();
    assert_eq!((reply.first(), reply.last()), (Some(&21), Some(&67)));
    same_heights(&Recording::open(dir.path()).unwrap(), &old);
    let again = record(endpoints(&node), dir.path(), 4, 67, &first, |_| {}).await.unwrap_err();
    assert!(again.to_string().contains("there is a recording already"), "{again}");
}

#[tokio::test]
async fn continuing_a_recording_of_another_chain_or_range_is_an_error() {
    let (wasm, other) = (open("wasm-scenario"), open("move-scenario"));
    let dir = tempfile::tempdir().unwrap();
    let mut writer = replay::recording::RecordingWriter::open(dir.path(), false).unwrap();
    other.heights()[..9].iter().for_each(|height| writer.append(height).unwrap());
    drop(writer);
    let node = play(&wasm, Options::default()).await;
    let refusal = async |from, to| {
        let refused = record(endpoints(&node), dir.path(), from, to, &options(&wasm), |_| {}).await;
        refused.unwrap_err().to_string()
    };
    let message = refusal(4, 67).await;
    assert!(message.contains("another block 9 than this node"), "{message}");
    let message = refusal(10, 67).await;
    assert!(message.contains("ends at 9, which is not in 10 to 67"), "{message}");
}

#[tokio::test]
async fn an_evm_chain_without_a_json_rpc_address_is_an_error() {
    let old = open("evm-scenario");
    let node = play(&old, Options::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let endpoints = Endpoints { json_rpc: Vec::new(), ..endpoints(&node) };
    let refused = record(endpoints, dir.path(), 1, 226, &options(&old), |_| {}).await.unwrap_err();
    assert!(refused.to_string().contains("give the address of its JSON-RPC"), "{refused}");
}
