//! The chains of the REST and EVM servers of a node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use node::{EndpointStatus, Endpoints, Error, Node};

use crate::scripted::{Asked, Play, Server, json, limits, nowhere, result};

const STATUS: &str = r#"{"node_info":{"network":"c-1","version":"0.38.19"},"sync_info":{"latest_block_height":"9","earliest_block_height":"1","catching_up":false}}"#;

/// An EVM server that reports this chain id while it is up.
struct Says {
    server: Server,
    id: Arc<AtomicU64>,
    is_up: Arc<AtomicBool>,
}

async fn says(id: u64) -> Says {
    let (id, is_up) = (Arc::new(AtomicU64::new(id)), Arc::new(AtomicBool::new(true)));
    let server = Server::play({
        let (id, is_up) = (Arc::clone(&id), Arc::clone(&is_up));
        move |_, _| {
            if is_up.load(Ordering::Relaxed) {
                result(&format!("\"{:#x}\"", id.load(Ordering::Relaxed)))
            } else {
                Play::Close
            }
        }
    })
    .await;
    Says { server, id, is_up }
}

/// A node with a correct CometBFT server.
async fn node(rest: &[&Server], evm: &[&Says]) -> Node {
    let endpoints = Endpoints {
        comet: vec![Server::always(result(STATUS)).await.url],
        rest: rest.iter().map(|server| server.url.clone()).collect(),
        json_rpc: evm.iter().map(|says| says.server.url.clone()).collect(),
        ..Endpoints::default()
    };
    Node::new(endpoints, limits()).unwrap()
}

/// The statuses of the EVM servers after one more check.
async fn standings(node: &Node) -> Vec<EndpointStatus> {
    node.verify_chain("c-1").await.unwrap();
    let states = node.endpoints().into_iter();
    states.filter(|state| state.origin.service() == "json-rpc").map(|state| state.status).collect()
}

#[tokio::test]
async fn an_evm_server_of_another_chain_stays_excluded_when_the_right_one_is_down() {
    let (right, stray) = (says(1).await, says(2).await);
    let node = node(&[], &[&right, &stray]).await;
    assert_eq!(standings(&node).await, [EndpointStatus::Healthy, EndpointStatus::WrongChain]);
    right.is_up.store(false, Ordering::Relaxed);
    assert_eq!(standings(&node).await[1], EndpointStatus::WrongChain);
    node.evm.as_ref().unwrap().block_number().await.unwrap_err();
    assert!(
        stray.server.asked().iter().all(|asked| !asked.body.contains("eth_blockNumber")),
        "its chain alone"
    );
    right.is_up.store(true, Ordering::Relaxed);
    assert_eq!(standings(&node).await, [EndpointStatus::Healthy, EndpointStatus::WrongChain]);
}

/// A CometBFT server whose block 7 has this time, or an EVM server of the chain `id` whose last block is 7 of that time.
async fn at(id: u64, second: u64) -> Server {
    Server::play(move |_, asked| {
        if asked.line == "GET /status" {
            result(STATUS)
        } else if asked.body.contains("eth_chainId") {
            result(&format!("\"{id:#x}\""))
        } else if asked.body.contains("eth_getBlockByNumber") {
            result(&format!(r#"{{"number":"0x7","timestamp":"{second:#x}"}}"#))
        } else {
            result(&format!(r#"{{"header":{{"time":"1970-01-01T00:00:{second:02}.5Z"}}}}"#))
        }
    })
    .await
}

#[tokio::test]
async fn an_evm_server_whose_last_block_has_another_time_is_of_another_chain() {
    let (comet, right, stray) = (at(0, 5).await, at(1, 5).await, at(2, 6).await);
    let node = |evm: &[&Server]| {
        let endpoints = Endpoints {
            comet: vec![comet.url.clone()],
            json_rpc: evm.iter().map(|server| server.url.clone()).collect(),
            ..Endpoints::default()
        };
        Node::new(endpoints, limits()).unwrap()
    };
    let alone = node(&[&stray]).verify_chain("c-1").await.unwrap_err();
    assert!(
        matches!(&alone, Error::WrongChain { want, got, .. } if (&**want, &**got) == ("c-1", "eip155:2")),
        "{alone}"
    );
    node(&[&right]).verify_chain("c-1").await.unwrap();
    // The first of two does not decide.
    let both = node(&[&stray, &right]);
    assert_eq!(standings(&both).await, [EndpointStatus::WrongChain, EndpointStatus::Healthy]);
    assert_eq!(standings(&both).await, [EndpointStatus::WrongChain, EndpointStatus::Healthy]);
}

#[tokio::test]
async fn an_excluded_server_does_not_vote_before_all_have_answered() {
    let (right, stray, away) = (says(1).await, says(2).await, says(1).await);
    away.is_up.store(false, Ordering::Relaxed);
    let node = node(&[], &[&right, &stray, &away]).await;
    assert_eq!(standings(&node).await[..2], [EndpointStatus::Healthy, EndpointStatus::WrongChain]);
    right.is_up.store(false, Ordering::Relaxed);
    assert_eq!(standings(&node).await[1], EndpointStatus::WrongChain);
}

#[tokio::test]
async fn a_server_of_another_chain_that_was_alone_at_first_is_detected_when_the_right_one_answers() {
    let (right, stray) = (says(1).await, says(2).await);
    right.is_up.store(false, Ordering::Relaxed);
    let node = node(&[], &[&right, &stray]).await;
    assert_eq!(standings(&node).await[1], EndpointStatus::Healthy);
    right.is_up.store(true, Ordering::Relaxed);
    assert_eq!(standings(&node).await, [EndpointStatus::Healthy, EndpointStatus::WrongChain]);
}

#[tokio::test]
async fn evm_servers_that_all_change_to_another_chain_are_an_error() {
    let servers = [says(1).await, says(1).await];
    let node = node(&[], &[&servers[0], &servers[1]]).await;
    node.verify_chain("c-1").await.unwrap();
    for says in &servers {
        says.id.store(2, Ordering::Relaxed);
    }
    let error = node.verify_chain("c-1").await.unwrap_err();
    assert!(
        matches!(&error, Error::WrongChain { want, got, .. } if (&**want, &**got) == ("1", "2")),
        "{error}"
    );
    servers[0].is_up.store(false, Ordering::Relaxed);
    node.verify_chain("c-1").await.unwrap();
}

#[tokio::test]
async fn rest_servers_of_another_chain_are_an_error_and_an_unreachable_one_is_not() {
    let info = |_: usize, _: &Asked| json(r#"{"default_node_info":{"network":"c-2"}}"#);
    let strays = [Server::play(info).await, Server::play(info).await];
    let error = node(&[&strays[0], &strays[1]], &[]).await.verify_chain("c-1").await.unwrap_err();
    assert!(matches!(&error, Error::WrongChain { at, .. } if at.service == "rest"), "{error}");
    let down = Server::always(Play::Close).await;
    assert_eq!(node(&[&down], &[]).await.verify_chain("c-1").await.unwrap().latest_height, 9);
    node(&[&strays[0], &down], &[]).await.verify_chain("c-1").await.unwrap();
    let endpoints = Endpoints {
        comet: vec![Server::always(result(STATUS)).await.url],
        rest: vec![nowhere().await],
        ..Endpoints::default()
    };
    Node::new(endpoints, limits()).unwrap().verify_chain("c-1").await.unwrap();
}
