//! Rotation, backoff and limits, which all services share.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use node::{Comet, Error, Kind, Limits, Rest, Url};
use tokio::sync::{Barrier, Notify};

use crate::scripted::{Play, Server, fault, json, limits, nowhere, result};

/// The pause of `retry-after: 30`.
const PAUSE: Duration = Duration::from_secs(30);

const FUTURE: &str = r#"{"jsonrpc":"2.0","id":-1,"error":{"code":-32603,"message":"Internal error","data":"height 50 must be less than or equal to the current blockchain height %TIP%"}}"#;
const PRUNED: &str = r#"{"jsonrpc":"2.0","id":-1,"error":{"code":-32603,"message":"Internal error","data":"height 50 is not available, lowest height is 90"}}"#;

fn future(tip: u64) -> Play {
    fault(500, &FUTURE.replace("%TIP%", &tip.to_string()))
}

fn page() -> Play {
    Play::Answer(502, "content-type: text/html\r\n", b"<html><h1>502 Bad Gateway</h1></html>".into())
}

fn busy() -> Play {
    Play::Answer(429, "retry-after: 30\r\n", b"slow down".into())
}

fn block() -> String {
    format!(
        r#"{{"block_id":{{"hash":"AB"}},"block":{{"header":{{"height":"50"}},"pad":"{}"}}}}"#,
        "x".repeat(900)
    )
}

fn comet(urls: impl IntoIterator<Item = Url>) -> Comet {
    Comet::new(urls.into_iter().collect(), limits()).unwrap()
}

fn rest(server: &Server, limits: Limits) -> Rest {
    Rest::new(vec![server.url.clone()], limits).unwrap()
}

/// Every failure that may be transient.
fn faults() -> Vec<(&'static str, Play)> {
    vec![
        ("429", Play::Answer(429, "", b"slow down".into())),
        ("503", Play::Answer(503, "", Vec::new())),
        ("an error page", page()),
        ("a page with 200", Play::Answer(200, "", b"<!doctype html>".into())),
        ("nothing", Play::Answer(200, "", Vec::new())),
        ("half an envelope", json(r#"{"jsonrpc":"2.0","id":-1,"result":{"block":"#)),
        ("JSON of another shape", json(r#"{"hello":"world"}"#)),
        ("a list", json("[]")),
        ("a null block", result(r#"{"block_id":{"hash":""},"block":null}"#)),
        ("a cut body", Play::Cut(100, br#"{"jsonrpc":"2.0","id":-1,"result":{}}"#.into())),
        ("a closed connection", Play::Close),
        ("a redirect", Play::Answer(301, "location: https://other.example/\r\n", Vec::new())),
        ("broken gzip", Play::Answer(200, "content-encoding: gzip\r\n", b"{}".into())),
        ("an unknown encoding", Play::Answer(200, "content-encoding: br\r\n", b"{}".into())),
        (
            "a node's failure",
            fault(500, r#"{"id":-1,"error":{"code":-32603,"message":"Internal error","data":"no"}}"#),
        ),
    ]
}

#[tokio::test]
async fn each_fault_alone_is_transient_and_reported_with_host_call_and_height() {
    for (name, play) in faults() {
        let server = Server::always(play).await;
        let error = comet([server.url.clone()]).block(50).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Transient, "{name}: {error}");
        let place = format!("comet {}, block at height 50: ", server.url.host());
        assert!(error.to_string().starts_with(&place), "{name}: {error}");
    }
}

#[tokio::test]
async fn each_fault_leads_to_the_next_address() {
    for (name, play) in faults() {
        let (bad, good) = (Server::always(play).await, Server::always(result(&block())).await);
        let comet = comet([bad.url.clone(), good.url.clone()]);
        assert_eq!(comet.block(50).await.unwrap().bytes, block(), "{name}");
        assert_eq!(good.count(), 1, "{name}");
    }
}

#[tokio::test]
async fn an_address_without_a_server_is_skipped_and_reported_when_alone() {
    let good = Server::always(result(&block())).await;
    assert_eq!(comet([nowhere().await, good.url]).block(50).await.unwrap().bytes, block());
    let error = comet([nowhere().await]).block(50).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn requests_rotate_over_all_addresses() {
    let servers = [Server::always(result(&block())).await, Server::always(result(&block())).await];
    let comet = comet(servers.iter().map(|server| server.url.clone()));
    for _ in 0..6 {
        comet.block(50).await.unwrap();
    }
    assert_eq!(servers.map(|server| server.count()), [3, 3]);
}

#[tokio::test]
async fn a_wait_outranks_a_failure_and_a_failure_outranks_a_permanent_error() {
    let (wait, bad, no) = (future(49), page(), fault(500, PRUNED));
    let table = [
        (vec![no.clone(), bad.clone(), wait.clone()], Kind::NotYet),
        (vec![wait.clone(), no.clone()], Kind::NotYet),
        (vec![no.clone(), bad.clone()], Kind::Transient),
        (vec![bad, no.clone()], Kind::Transient),
        (vec![no.clone(), no], Kind::Permanent),
    ];
    for (plays, kind) in table {
        let mut servers = Vec::new();
        for play in plays {
            servers.push(Server::always(play).await);
        }
        let error = comet(servers.iter().map(|s| s.url.clone())).block(50).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(servers.iter().all(|server| server.count() == 1), "each is asked once");
    }
}

#[tokio::test]
async fn of_several_waits_the_highest_tip_is_returned() {
    let servers = [
        Server::always(future(47)).await,
        Server::always(future(49)).await,
        Server::always(future(48)).await,
    ];
    let error = comet(servers.map(|server| server.url)).block(50).await.unwrap_err();
    assert_eq!(error.tip(), Some(49));
}

#[tokio::test]
async fn an_ordered_pause_is_respected() {
    let server = Server::always(busy()).await;
    let alone = comet([server.url.clone()]);
    let first = alone.block(50).await.unwrap_err();
    assert_eq!(first.pause(), Some(Duration::from_secs(30)));
    let second = alone.block(50).await.unwrap_err();
    assert!(matches!(second, Error::RateLimited { left, .. } if left <= Duration::from_secs(30)), "{second}");
    assert_eq!((second.kind(), server.count()), (Kind::Transient, 1));

    let (server, other) = (Server::always(busy()).await, Server::always(result(&block())).await);
    let both = comet([server.url.clone(), other.url.clone()]);
    for _ in 0..6 {
        both.block(50).await.unwrap();
    }
    assert_eq!((server.count(), other.count()), (1, 6));
}

#[tokio::test]
async fn an_answer_to_an_earlier_request_does_not_end_an_ordered_pause() {
    let allowed = Arc::new(Notify::new());
    let server = Server::play({
        let allowed = Arc::clone(&allowed);
        move |number, _| match number {
            0 => Play::Later(Arc::clone(&allowed), Box::new(result(&block()))),
            _ => Play::Answer(429, "retry-after: 30\r\n", Vec::new()),
        }
    })
    .await;
    let comet = comet([server.url.clone()]);
    let order = async {
        while server.count() == 0 {
            tokio::task::yield_now().await;
        }
        let order = comet.block(51).await;
        allowed.notify_one();
        order
    };
    let (answer, order) = tokio::join!(comet.block(50), order);
    assert_eq!((answer.unwrap().bytes, order.unwrap_err().pause()), (block().into(), Some(PAUSE)));
    let third = comet.block(52).await.unwrap_err();
    assert!(matches!(third, Error::RateLimited { .. }), "{third}");
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn of_several_rate_limited_endpoints_the_shortest_pause_is_returned() {
    let busy = async |pause| Server::always(Play::Answer(429, pause, Vec::new())).await;
    let pauses = ["retry-after: 30\r\n", "retry-after: 20\r\n"];
    for [first, second] in [[0, 1], [1, 0]] {
        let servers = [busy(pauses[first]).await, busy(pauses[second]).await];
        let comet = comet(servers.each_ref().map(|server| server.url.clone()));
        comet.block(50).await.unwrap_err();
        let error = comet.block(50).await.unwrap_err();
        assert!(
            matches!(error, Error::RateLimited { left, .. } if left <= Duration::from_secs(20)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_last_failure_is_published_and_a_future_height_is_not_a_failure() {
    let server = Server::in_turn(vec![page(), future(40), future(41)]).await;
    let comet = comet([server.url.clone()]);
    let mut reply = Vec::new();
    for _ in 0..3 {
        comet.block(50).await.unwrap_err();
        reply.push(comet.endpoints()[0].last_error.clone().unwrap());
    }
    assert!(reply[0].contains("502") && reply.iter().all(|error| *error == reply[0]), "{reply:?}");
}

#[tokio::test]
async fn a_permanent_error_wakes_the_receivers_of_heads() {
    let server = Server::in_turn(vec![result(&block()), fault(500, PRUNED)]).await;
    let comet = comet([server.url.clone()]);
    let mut heads = comet.heads();
    comet.block(50).await.unwrap();
    heads.mark_unchanged();
    assert_eq!(comet.block(50).await.unwrap_err().kind(), Kind::Permanent);
    assert!(heads.has_changed().unwrap());
    let reply = heads.borrow()[0].last_error.clone();
    assert!(reply.is_some_and(|reply| reply.contains("pruned")));
}

#[tokio::test]
async fn a_long_pause_of_one_endpoint_does_not_delay_a_retry_at_another() {
    for plays in [[busy(), page()], [page(), busy()]] {
        let servers = plays.map(Server::always);
        let servers = futures_util::future::join_all(servers).await;
        let error = comet(servers.iter().map(|s| s.url.clone())).block(50).await.unwrap_err();
        assert_eq!((error.kind(), error.pause()), (Kind::Transient, None), "{error}");
    }
}

#[tokio::test]
async fn permanent_errors_are_not_final_while_another_endpoint_is_rate_limited() {
    let busy = Server::always(Play::Answer(503, "retry-after: 30\r\n", Vec::new())).await;
    let no = Server::always(fault(500, PRUNED)).await;
    let comet = comet([busy.url.clone(), no.url.clone()]);
    for _ in 0..2 {
        assert_eq!(comet.block(50).await.unwrap_err().kind(), Kind::Transient);
    }
    assert_eq!(busy.count(), 1);
}

#[tokio::test]
async fn an_address_that_keeps_failing_is_queried_last() {
    let bad = Server::in_turn(vec![page(), page(), page(), result(&block())]).await;
    let good = Server::play(|number, _| if number < 10 { result(&block()) } else { page() }).await;
    let comet = comet([bad.url.clone(), good.url.clone()]);
    for _ in 0..10 {
        comet.block(50).await.unwrap();
    }
    assert_eq!((bad.count(), good.count()), (3, 10), "three failures cool it down");
    assert_eq!(
        comet.block(50).await.unwrap().bytes,
        block(),
        "the cooled-down one helps when the other fails"
    );
    assert_eq!((bad.count(), good.count()), (4, 11));
}

#[tokio::test]
async fn an_address_that_keeps_failing_is_not_queried_while_a_good_one_waits_for_the_block() {
    let (bad, waiting) = (Server::always(page()).await, Server::always(future(49)).await);
    let comet = comet([bad.url.clone(), waiting.url.clone()]);
    for _ in 0..10 {
        assert_eq!(comet.block(50).await.unwrap_err().kind(), Kind::NotYet);
    }
    assert_eq!((bad.count(), waiting.count()), (3, 10));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_and_without_a_length_and_when_packed() {
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2)).into_bytes();
    let limits = Limits { body: 5_000, ..limits() };
    for plain in [5_000, 5_001] {
        for (name, play) in [
            ("announced", Play::Answer(200, "", text(plain))),
            ("chunked", Play::Chunked(text(plain))),
            ("packed", Play::Answer(200, "content-encoding: gzip\r\n", gzip(&text(plain)))),
        ] {
            let server = Server::always(play).await;
            let outcome = rest(&server, limits).get("/x", None).await;
            match outcome {
                Ok(body) => assert_eq!((plain, body.len()), (5_000, 5_000), "{name}"),
                Err(error) => {
                    assert!(matches!(error, Error::TooLarge { limit: 5_000, .. }), "{name}: {error}");
                    assert_eq!(plain, 5_001, "{name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn large_bodies_are_read_whole_by_length_and_in_chunks() {
    let text = format!("[{}]", "123456789,".repeat(400_000) + "0");
    for play in [json(&text), Play::Chunked(text.clone().into())] {
        let server = Server::always(play).await;
        assert_eq!(rest(&server, limits()).get("/x", None).await.unwrap(), text);
    }
}

#[tokio::test]
async fn a_server_without_an_answer_is_abandoned_after_the_time_limit() {
    let (silent, good) = (Server::always(Play::Hang).await, Server::always(result(&block())).await);
    let within = |millis| Limits { timeout: Duration::from_millis(millis), ..limits() };
    // Enough time for the healthy one on a busy machine.
    let both = Comet::new(vec![silent.url.clone(), good.url], within(2_000)).unwrap();
    assert_eq!(both.block(50).await.unwrap().bytes, block());
    let alone = Comet::new(vec![silent.url], within(100)).unwrap();
    let error = alone.block(50).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { after, .. } if after.as_millis() == 100), "{error}");
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_allowed() {
    let server = Server::always(Play::Together(Arc::new(Barrier::new(2)))).await;
    let rest = Arc::new(rest(&server, Limits { in_flight: 2, ..limits() }));
    let asking = |_| {
        let rest = Arc::clone(&rest);
        tokio::spawn(async move { rest.get("/x", None).await })
    };
    let calls: Vec<_> = (0..20).map(asking).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "{}");
    }
    assert_eq!((server.count(), server.most_at_once()), (20, 2));
}

#[tokio::test]
async fn connections_are_kept() {
    let server = Server::always(json("{}")).await;
    let rest = rest(&server, limits());
    for _ in 0..100 {
        rest.get("/x", None).await.unwrap();
    }
    // A connection is reusable a moment after its reply, so an immediate second request may open one more.
    assert!(server.connections() <= 5, "{} connections", server.connections());
}

#[tokio::test]
async fn compression_is_not_requested_on_this_machine() {
    let server = Server::always(json("{}")).await;
    rest(&server, limits()).get("/x", None).await.unwrap();
    assert!(!server.asked()[0].headers.contains("accept-encoding"));
}

#[tokio::test]
async fn credentials_are_sent_and_stay_out_of_messages() {
    let server = Server::always(page()).await;
    let url = format!("http://me:hunter2@{}/key-hunter2", server.url.host()).parse().unwrap();
    let error = Comet::new(vec![url], limits()).unwrap().block(50).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    assert_eq!(server.asked()[0].line, "GET /key-hunter2/block?height=50");
    assert!(server.asked()[0].headers.contains("authorization: basic "));
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    flate2::read::GzEncoder::new(plain, flate2::Compression::default()).read_to_end(&mut packed).unwrap();
    packed
}
