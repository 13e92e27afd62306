//! A second endpoint is asked when the first takes long, at the head only, and within a budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use node::{Comet, Endpoints, Limits, Node};
use tokio::sync::Notify;

use crate::scripted::{Asked, Play, Server, json, limits, result};

const STATUS: &str = r#"{"node_info":{"network":"c-1","version":"0.38.19"},"sync_info":{"latest_block_height":"50","earliest_block_height":"1","catching_up":false}}"#;

/// As long as an endpoint without a record is waited for alone.
const PATIENCE: Duration = Duration::from_millis(500);

/// A little longer than that.
const TIMEOUT: Duration = Duration::from_millis(900);

fn block() -> Play {
    result(&format!(r#"{{"block":{{"pad":"{}"}}}}"#, "x".repeat(1_000)))
}

/// A node with tip 50 that does this with every other question.
async fn node(play: Play) -> Server {
    Server::play(move |_, asked| if asked.line == "GET /status" { result(STATUS) } else { play.clone() })
        .await
}

/// A client that knows the tip.
async fn comet(servers: [&Server; 2], limits: Limits) -> Comet {
    let comet = Comet::new(servers.map(|server| server.url.clone()).into(), limits).unwrap();
    comet.verify_chain("c-1").await.unwrap();
    comet
}

/// How many blocks a server has been asked for.
fn blocks(server: &Server) -> usize {
    server.asked().iter().filter(|asked| asked.line.starts_with("GET /block")).count()
}

#[tokio::test]
async fn at_the_head_a_second_is_asked_when_the_first_takes_long_and_the_faster_wins() {
    let (slow, fast) = (node(Play::Hang).await, node(block()).await);
    for height in [48, 50, 51] {
        let comet = comet([&slow, &fast], limits()).await;
        let began = Instant::now();
        let answer = comet.block(height).await.unwrap();
        assert_eq!(answer.origin.host(), &**fast.url.host());
        assert!((PATIENCE..limits().timeout).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
    assert_eq!((blocks(&slow), blocks(&fast)), (3, 3));
}

#[tokio::test]
async fn the_first_still_wins_if_it_is_faster_than_the_second() {
    let allowed = Arc::new(Notify::new());
    let late = node(Play::Later(Arc::clone(&allowed), Box::new(block()))).await;
    let second = Server::play({
        // The first may answer as soon as the second is asked.
        let allowed = Arc::clone(&allowed);
        move |_, asked| {
            if asked.line == "GET /status" {
                return result(STATUS);
            }
            allowed.notify_one();
            Play::Hang
        }
    })
    .await;
    let comet = comet([&late, &second], limits()).await;
    assert_eq!(comet.block_results(50).await.unwrap().origin.host(), &**late.url.host());
    assert_eq!((blocks(&late), blocks(&second)), (1, 1));
}

#[tokio::test]
async fn a_first_that_answers_in_time_is_asked_alone() {
    let servers = [node(block()).await, node(block()).await];
    let comet = comet([&servers[0], &servers[1]], limits()).await;
    for _ in 0..10 {
        comet.block(50).await.unwrap();
    }
    assert_eq!(servers.map(|server| blocks(&server)), [5, 5]);
}

#[tokio::test]
async fn below_the_head_the_first_is_waited_for() {
    let (slow, fast) = (node(Play::Hang).await, node(block()).await);
    let comet = comet([&slow, &fast], Limits { timeout: TIMEOUT, ..limits() }).await;
    let began = Instant::now();
    comet.block(47).await.unwrap();
    assert!(began.elapsed() >= TIMEOUT, "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_head_is_that_of_who_is_furthest() {
    let slow = node(Play::Hang).await;
    let behind =
        Server::play(
            |_, asked| {
                if asked.line == "GET /status" { result(&STATUS.replace("50", "40")) } else { block() }
            },
        )
        .await;
    let comet = comet([&slow, &behind], Limits { timeout: TIMEOUT, ..limits() }).await;
    let began = Instant::now();
    comet.block(45).await.unwrap();
    assert!(began.elapsed() >= TIMEOUT, "{:?}", began.elapsed());
}

#[tokio::test]
async fn without_budget_the_first_is_waited_for() {
    let (slow, fast) = (node(Play::Hang).await, node(block()).await);
    let comet = comet([&slow, &fast], Limits { timeout: TIMEOUT, ..limits() }).await;
    let mut waits = Vec::new();
    for _ in 0..2 {
        let began = Instant::now();
        comet.block(50).await.unwrap();
        waits.push(began.elapsed());
        comet.block(50).await.unwrap();
    }
    assert!(waits[0] < TIMEOUT && waits[1] >= TIMEOUT, "{waits:?}");
}

#[tokio::test]
async fn a_question_that_only_one_may_be_asked_pays_for_later_ones() {
    let (slow, fast) = (node(Play::Hang).await, node(block()).await);
    let comet = comet([&slow, &fast], Limits { timeout: TIMEOUT, ..limits() }).await;
    let origin = comet.endpoints()[0].origin.clone();
    comet.block_results_by(50, &origin).await.unwrap();
    for _ in 0..10 {
        comet.block_from_other(50, &origin).await.unwrap().unwrap();
    }
    let began = Instant::now();
    comet.block_results_by(50, &origin).await.unwrap();
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_evm_index_that_is_behind_does_not_move_the_head() {
    let behind = |play: Play| {
        move |_: usize, asked: &Asked| {
            if !asked.body.contains("eth_call") {
                return play.clone();
            }
            let said = "failed to load state at height 50; no version (latest height: 10)";
            json(&format!(r#"{{"jsonrpc":"2.0","id":%ID%,"error":{{"code":-32000,"message":"{said}"}}}}"#))
        }
    };
    let blocks = node(block()).await;
    let (fast, slow) = (Server::play(behind(result("[]"))).await, Server::play(behind(Play::Hang)).await);
    let endpoints = Endpoints {
        comet: vec![blocks.url.clone()],
        json_rpc: vec![fast.url.clone(), slow.url.clone()],
        ..Endpoints::default()
    };
    let node = Node::new(endpoints, Limits { timeout: TIMEOUT, ..limits() }).unwrap();
    node.comet.verify_chain("c-1").await.unwrap();
    let evm = node.evm.as_ref().unwrap();
    assert_eq!(evm.call([0; 20], &[], Some(50)).await.unwrap_err().tip(), Some(10));
    let began = Instant::now();
    evm.block_receipts(40).await.unwrap();
    assert!(began.elapsed() >= TIMEOUT, "40 is not the head: {:?}", began.elapsed());
}

#[tokio::test]
async fn receipts_are_asked_for_twice_at_the_head_of_the_chain() {
    let (blocks, slow, fast) =
        (node(block()).await, Server::always(Play::Hang).await, Server::always(result("[]")).await);
    let endpoints = Endpoints {
        comet: vec![blocks.url.clone()],
        json_rpc: vec![slow.url.clone(), fast.url.clone()],
        ..Endpoints::default()
    };
    let node = Node::new(endpoints, limits()).unwrap();
    node.comet.verify_chain("c-1").await.unwrap();
    let answer = node.evm.as_ref().unwrap().block_receipts(50).await.unwrap();
    assert_eq!((answer.origin.host(), slow.count()), (&**fast.url.host(), 1));
}
