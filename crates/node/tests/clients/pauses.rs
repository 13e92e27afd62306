//! Checks and websockets respect the pauses that servers order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use node::{EndpointStatus, Endpoints, Error, Node, Rest};

use crate::heads::{OFTEN, comet, status, until, watching};
use crate::logged::logged;
use crate::scripted::{Play, Server, limits};

fn busy() -> Play {
    Play::Answer(429, "retry-after: 30\r\n", Vec::new())
}

#[tokio::test]
async fn no_check_is_made_during_an_ordered_pause() {
    let blocks = Server::always(status("c-1", 9)).await;
    let [rest, first, second] =
        [Server::always(busy()).await, Server::always(busy()).await, Server::always(busy()).await];
    let endpoints = Endpoints {
        comet: vec![blocks.url.clone()],
        rest: vec![rest.url.clone()],
        json_rpc: vec![first.url.clone(), second.url.clone()],
        ..Endpoints::default()
    };
    let node = Node::new(endpoints, limits()).unwrap();
    for _ in 0..3 {
        node.verify_chain("c-1").await.unwrap();
    }
    assert_eq!([&rest, &first, &second].map(Server::count), [1, 1, 1]);
    let alone = Rest::new(vec![rest.url.clone()], limits()).unwrap();
    alone.verify_chain("c-1").await.unwrap_err();
    let error = alone.verify_chain("c-1").await.unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }), "{error}");
}

#[tokio::test]
async fn a_pause_that_is_ordered_instead_of_a_websocket_counts() {
    let server = Server::play(|_, asked| match asked.line.as_str() {
        "GET /websocket" => busy(),
        _ => status("c-1", 7),
    })
    .await;
    let comet = comet([&server]);
    let (log_lines, log) = logged();
    watching(&comet, OFTEN, until(&comet, |state| state.status == EndpointStatus::RateLimited)).await;
    drop(log);
    assert!(
        log_lines.lines()[0].contains("HTTP 429, the server limits requests and asks for a pause of 30s"),
        "{:?}",
        log_lines.lines()
    );
    let error = comet.block(5).await.unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }), "{error}");
}

/// Takes as long as the pause, which is ordered in whole seconds and is longer than that between two websockets.
#[tokio::test]
async fn neither_a_status_nor_a_websocket_is_requested_during_an_ordered_pause() {
    const PAUSE: Duration = Duration::from_secs(2);
    let (began, websockets, early) = (OnceLock::new(), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let server = Server::play({
        let early = Arc::clone(&early);
        move |_, asked| {
            let rests = began.get().is_some_and(|began: &Instant| began.elapsed() < PAUSE);
            if asked.line == "GET /websocket" {
                // The first was in flight when the pause was ordered.
                let known = websockets.fetch_add(1, Ordering::Relaxed) > 0;
                early.fetch_add(usize::from(rests && known), Ordering::Relaxed);
                return Play::Close;
            }
            early.fetch_add(usize::from(rests), Ordering::Relaxed);
            match began.set(Instant::now()) {
                Ok(()) => Play::Answer(503, "retry-after: 2\r\n", Vec::new()),
                Err(_) => status("c-1", 9),
            }
        }
    })
    .await;
    let comet = comet([&server]);
    watching(&comet, OFTEN, until(&comet, |state| state.height == Some(9))).await;
    assert_eq!(early.load(Ordering::Relaxed), 0);
}
