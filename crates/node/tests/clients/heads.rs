//! Heights of the endpoints, by websocket and by polling, and their chains.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use node::{Comet, EndpointState, EndpointStatus, Endpoints, Error, Kind, Node, Rest, Url};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::feed::{Feed, event, feed};
use crate::logged::logged;
use crate::scripted::{Play, Server, limits, result};

const HOUR: Duration = Duration::from_hours(1);
pub(crate) const OFTEN: Duration = Duration::from_millis(10);

pub(crate) fn status(chain_id: &str, height: u64) -> Play {
    let hash = format!("{height:064X}");
    result(&format!(
        r#"{{"node_info":{{"network":"{chain_id}","version":"0.38.19"}},"sync_info":{{"latest_block_hash":"{hash}","latest_block_height":"{height}","earliest_block_height":"3","catching_up":false}}}}"#
    ))
}

/// A node whose height the test sets, with a websocket or without.
async fn node(height: &Arc<AtomicU64>, websocket: Option<Feed>) -> Server {
    let height = Arc::clone(height);
    Server::play(move |_, asked| match &websocket {
        Some(feed) if asked.line.ends_with("/websocket") => Play::Websocket(feed.clone()),
        None if asked.line.ends_with("/websocket") => Play::Answer(404, "", Vec::new()),
        _ if asked.line.ends_with("/status") => status("c-1", height.load(Ordering::Relaxed)),
        _ => result(&format!(r#"{{"block":{{"pad":"{}"}}}}"#, "x".repeat(1_000))),
    })
    .await
}

fn at(height: u64) -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(height))
}

pub(crate) fn comet<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Comet {
    Comet::new(servers.into_iter().map(|server| server.url.clone()).collect(), limits()).unwrap()
}

/// Runs `then` while the endpoints are watched.
pub(crate) async fn watching<T>(comet: &Comet, poll: Duration, then: impl Future<Output = T>) -> T {
    tokio::select! {
        never = comet.watch("c-1", poll) => match never {},
        // Fails if the test takes too long.
        done = timeout(Duration::from_mins(1), then) => done.unwrap(),
    }
}

/// The first endpoint's state as soon as it satisfies the condition.
pub(crate) async fn until(comet: &Comet, so: impl Fn(&EndpointState) -> bool) -> EndpointState {
    let mut heads = comet.heads();
    let states = heads.wait_for(|states| so(&states[0])).await.unwrap();
    states[0].clone()
}

async fn heard(server: &Server, line: &str) {
    while !server.asked().iter().any(|asked| asked.line == line) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn endpoints_that_are_known_to_have_the_height_are_queried_first() {
    let (behind, ahead) = (node(&at(5), None).await, node(&at(10), None).await);
    let comet = comet([&behind, &ahead]);
    assert_eq!(comet.verify_chain("c-1").await.unwrap().latest_height, 10);
    for _ in 0..4 {
        assert_eq!(comet.block(7).await.unwrap().origin.host(), &**ahead.url.host());
    }
    assert_eq!(behind.count(), 1, "its status alone");
    comet.block(4).await.unwrap();
    comet.block(4).await.unwrap();
    assert_eq!(behind.count(), 2, "below both tips they take turns");
}

#[tokio::test]
async fn an_endpoint_that_is_behind_is_queried_if_the_other_fails() {
    let behind = node(&at(5), None).await;
    let ahead =
        Server::play(|_, asked| if asked.line == "GET /status" { status("c-1", 10) } else { Play::Close })
            .await;
    let comet = comet([&behind, &ahead]);
    comet.verify_chain("c-1").await.unwrap();
    assert_eq!(comet.block(7).await.unwrap().origin.host(), &**behind.url.host());
}

#[tokio::test]
async fn a_status_sets_height_hash_and_time() {
    let server = node(&at(7), None).await;
    let comet = comet([&server]);
    assert_eq!(comet.endpoints()[0].status, EndpointStatus::NeverSeen);
    watching(&comet, HOUR, async {
        let state = until(&comet, |state| state.height == Some(7)).await;
        let mut hash = [0; 32];
        hash[31] = 7;
        assert_eq!(
            (state.hash, state.earliest, state.status),
            (Some(hash), Some(3), EndpointStatus::Healthy)
        );
        assert!(state.seen.is_some() && !state.by_websocket && !state.catching_up);
    })
    .await;
}

#[tokio::test]
async fn a_node_that_is_behind_is_logged_once_and_when_it_has_caught_up() {
    let server = Server::play(|number, asked| match (asked.line.as_str(), status("c-1", 7)) {
        ("GET /status", Play::Answer(code, headers, body)) => {
            let body = String::from_utf8(body).unwrap();
            let behind = if number < 4 { body.replace(":false", ":true") } else { body };
            Play::Answer(code, headers, behind.into())
        }
        _ => Play::Close,
    })
    .await;
    let comet = comet([&server]);
    let (log_lines, log) = logged();
    for _ in 0..6 {
        comet.verify_chain("c-1").await.unwrap();
    }
    drop(log);
    let log_lines = log_lines.lines();
    assert_eq!(log_lines.len(), 2, "{log_lines:?}");
    assert!(
        log_lines[0].contains("the node is behind")
            && log_lines[0].contains("persistent_peers under [p2p] in its config.toml")
    );
    assert!(log_lines[1].contains("has caught up"));
}

#[tokio::test]
async fn a_websocket_event_moves_the_height_at_once() {
    let (events, feed) = feed();
    let server = node(&at(7), Some(feed)).await;
    let url: Url = format!("http://me:pw@{}/key", server.url.host()).parse().unwrap();
    let comet = Comet::new(vec![url], limits()).unwrap();
    watching(&comet, HOUR, async {
        for height in [8, 9, 12] {
            events.send(event("c-1", height)).unwrap();
            let state = until(&comet, |state| state.height == Some(height)).await;
            assert_eq!((state.hash, state.parent, state.by_websocket), (None, Some([0xab; 32]), true));
        }
    })
    .await;
    let asked = server.asked();
    let upgrade = asked.iter().find(|asked| asked.line.ends_with("/websocket")).unwrap();
    assert_eq!(upgrade.line, "GET /key/websocket");
    assert!(upgrade.headers.contains("authorization: basic "));
    let subscribed = asked.iter().find(|asked| asked.line == "WS text").unwrap();
    assert!(subscribed.body.contains(r#""query":"tm.event='NewBlockHeader'""#), "{}", subscribed.body);
}

#[tokio::test]
async fn pings_of_the_node_are_answered() {
    let (events, feed) = feed();
    let server = node(&at(7), Some(feed)).await;
    let comet = comet([&server]);
    watching(&comet, HOUR, async {
        events.send(Message::Ping("are you there".into())).unwrap();
        heard(&server, "WS pong").await;
    })
    .await;
    assert!(server.asked().iter().any(|asked| asked.body == "are you there"));
}

#[tokio::test]
async fn a_broken_websocket_is_replaced_by_polling_until_it_works_again() {
    let (events, feed) = feed();
    let height = at(7);
    let server = node(&height, Some(feed)).await;
    let comet = comet([&server]);
    let (log_lines, log) = logged();
    watching(&comet, OFTEN, async {
        events.send(event("c-1", 8)).unwrap();
        until(&comet, |state| state.by_websocket).await;
        events.send(Message::Close(None)).unwrap();
        until(&comet, |state| !state.by_websocket).await;
        height.store(20, Ordering::Relaxed);
        assert!(!until(&comet, |state| state.height == Some(20)).await.by_websocket);
        events.send(event("c-1", 21)).unwrap();
        assert!(until(&comet, |state| state.height == Some(21)).await.by_websocket);
    })
    .await;
    drop(log);
    let log_lines = log_lines.lines();
    assert_eq!(log_lines.len(), 2, "{log_lines:?}");
    assert!(
        log_lines[0].contains("WARN") && log_lines[0].contains("the status is polled meanwhile"),
        "{log_lines:?}"
    );
    assert!(log_lines[1].contains("delivers new blocks again"), "{log_lines:?}");
}

#[tokio::test]
async fn a_node_without_a_websocket_is_polled_and_logged_once() {
    let height = at(7);
    let server = node(&height, None).await;
    let comet = comet([&server]);
    let (log_lines, log) = logged();
    watching(&comet, OFTEN, async {
        for next in 8..20 {
            height.store(next, Ordering::Relaxed);
            until(&comet, |state| state.height == Some(next)).await;
        }
        while server.asked().iter().filter(|asked| asked.line == "GET /websocket").count() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(log);
    let log_lines = log_lines.lines();
    assert_eq!(log_lines.len(), 1, "{log_lines:?}");
    assert!(log_lines[0].contains("HTTP 404; the server has no websocket at this path"), "{log_lines:?}");
}

#[tokio::test]
async fn a_message_that_is_not_an_event_ends_the_websocket() {
    let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":"max_subscription_clients 100 reached"}}"#;
    let table = [
        (Message::text(refused), "max_subscription_clients 100 reached"),
        (Message::text("x".repeat(65 << 10)), "too long"),
        (Message::text("<html>"), "expected value"),
        (event("c-1", 8).to_string().replace(r#""8""#, r#""-8""#).into(), "is not a number"),
    ];
    for (frame, reason) in table {
        let (events, feed) = feed();
        let server = node(&at(7), Some(feed)).await;
        let comet = comet([&server]);
        let (log_lines, log) = logged();
        watching(&comet, OFTEN, async {
            heard(&server, "WS text").await;
            events.send(frame).unwrap();
            while log_lines.lines().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        drop(log);
        assert!(log_lines.lines()[0].contains(reason), "{reason}: {:?}", log_lines.lines());
    }
}

/// Takes two checks of a websocket, which come every five seconds.
#[tokio::test]
async fn a_stalled_websocket_is_detected_and_replaced() {
    let (events, feed) = feed();
    let height = at(7);
    let server = node(&height, Some(feed)).await;
    let comet = comet([&server]);
    let (log_lines, log) = logged();
    watching(&comet, OFTEN, async {
        events.send(event("c-1", 8)).unwrap();
        until(&comet, |state| state.by_websocket).await;
        height.store(9, Ordering::Relaxed);
        until(&comet, |state| !state.by_websocket).await;
        height.store(10, Ordering::Relaxed);
        until(&comet, |state| state.height == Some(10)).await;
        events.send(event("c-1", 11)).unwrap();
        until(&comet, |state| state.by_websocket).await;
    })
    .await;
    drop(log);
    assert!(log_lines.lines()[0].contains("although the status shows new blocks"), "{:?}", log_lines.lines());
}

/// Takes as long as the test above.
#[tokio::test]
async fn a_websocket_without_any_event_is_detected_and_replaced() {
    let (events, feed) = feed();
    let height = at(7);
    let server = node(&height, Some(feed)).await;
    let comet = comet([&server]);
    let (log_lines, log) = logged();
    watching(&comet, OFTEN, async {
        heard(&server, "WS text").await;
        let mut next = 8;
        while log_lines.lines().is_empty() {
            height.store(next, Ordering::Relaxed);
            until(&comet, |state| state.height == Some(next)).await;
            next += 1;
        }
        // The first websocket may still receive messages that are sent now.
        while server.asked().iter().filter(|asked| asked.line == "WS text").count() < 2 {
            tokio::task::yield_now().await;
        }
        events.send(event("c-1", 1_000_000)).unwrap();
        until(&comet, |state| state.by_websocket).await;
    })
    .await;
    drop(log);
    assert!(log_lines.lines()[0].contains("although the status shows new blocks"), "{:?}", log_lines.lines());
}

#[tokio::test]
async fn events_of_another_chain_are_ignored() {
    let (events, feed) = feed();
    let server = node(&at(7), Some(feed)).await;
    let comet = comet([&server]);
    watching(&comet, HOUR, async {
        events.send(event("c-2", 99)).unwrap();
        events.send(event("c-1", 8)).unwrap();
        let state = until(&comet, |state| state.height > Some(7)).await;
        assert_eq!(state.height, Some(8));
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_of_another_chain_is_logged_and_excluded_until_it_is_right() {
    let good = node(&at(10), None).await;
    let chain = Arc::new(AtomicU64::new(2));
    let stray = Server::play({
        let chain = Arc::clone(&chain);
        move |_, asked| match asked.line.as_str() {
            "GET /status" => status(&format!("c-{}", chain.load(Ordering::Relaxed)), 99),
            "GET /websocket" => Play::Answer(404, "", Vec::new()),
            _ => result(&format!(r#"{{"block":{{"pad":"{}"}}}}"#, "x".repeat(1_000))),
        }
    })
    .await;
    let comet = comet([&stray, &good]);
    let (log_lines, log) = logged();
    assert_eq!(comet.verify_chain("c-1").await.unwrap().latest_height, 10);
    for _ in 0..4 {
        assert_eq!(comet.block(7).await.unwrap().origin.host(), &**good.url.host());
        assert_eq!(comet.status().await.unwrap().chain_id, "c-1");
    }
    assert_eq!((stray.count(), comet.endpoints()[0].status), (1, EndpointStatus::WrongChain));
    watching(&comet, OFTEN, async {
        chain.store(1, Ordering::Relaxed);
        until(&comet, |state| state.status == EndpointStatus::Healthy).await;
    })
    .await;
    drop(log);
    assert_eq!(comet.block(50).await.unwrap().origin.host(), &**stray.url.host());
    let named = format!("endpoint=comet {} chain_id=\"c-2\" expected=\"c-1\"", stray.url.host());
    let reported: Vec<_> = log_lines.lines().into_iter().filter(|line| line.contains(&named)).collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("ERROR"), "{reported:?}");
}

#[tokio::test]
async fn if_all_endpoints_are_of_another_chain_none_is_queried() {
    let stray = Server::always(status("c-2", 9)).await;
    let comet = comet([&stray]);
    let wrong = |error: Error| assert!(matches!(error, Error::WrongChain { .. }), "{error}");
    wrong(comet.verify_chain("c-1").await.unwrap_err());
    wrong(comet.block(5).await.unwrap_err());
    wrong(comet.status().await.unwrap_err());
    assert_eq!(stray.count(), 1);
}

#[tokio::test]
async fn a_rest_server_of_another_chain_is_excluded() {
    let info = |chain: &str| {
        let info = format!(r#"{{"default_node_info":{{"network":"{chain}"}}}}"#);
        move |_: usize, asked: &crate::scripted::Asked| {
            crate::scripted::json(if asked.line.ends_with("node_info") { &info } else { "{}" })
        }
    };
    let (stray, good) = (Server::play(info("c-2")).await, Server::play(info("c-1")).await);
    let rest = Rest::new(vec![stray.url.clone(), good.url.clone()], limits()).unwrap();
    rest.verify_chain("c-1").await.unwrap();
    for _ in 0..4 {
        rest.get("/x", None).await.unwrap();
    }
    assert_eq!((stray.count(), good.count()), (1, 5));
    let alone = Rest::new(vec![stray.url.clone()], limits()).unwrap();
    assert_eq!(alone.verify_chain("c-1").await.unwrap_err().kind(), Kind::Permanent);
}

#[tokio::test]
async fn an_evm_server_in_the_minority_is_excluded() {
    let says = |id: &'static str| async move { Server::always(result(id)).await };
    let servers = [says("\"0x2\"").await, says("\"0x1\"").await, says("\"0x1\"").await];
    let blocks = node(&at(9), None).await;
    let endpoints = Endpoints {
        comet: vec![blocks.url.clone()],
        json_rpc: servers.iter().map(|server| server.url.clone()).collect(),
        ..Endpoints::default()
    };
    let node = Node::new(endpoints, limits()).unwrap();
    assert_eq!(node.verify_chain("c-1").await.unwrap().latest_height, 9);
    for _ in 0..6 {
        assert_eq!(node.evm.as_ref().unwrap().chain_id().await.unwrap(), 1);
    }
    let [stray, first, second] = servers.map(|server| server.count());
    assert_eq!(
        (stray, first + second),
        (2, 4 + 6),
        "its number and its last block, each once for the comparison"
    );
}
