//! Origins of replies, and distrust after false ones.

use node::{Comet, EndpointStatus, Endpoints, Error, Evm, Node, Origin, Reply, Url};

use crate::logged::logged;
use crate::scripted::{Play, Server, limits, result};

/// A block long enough to be a real one.
fn block(height: u64) -> Play {
    let pad = "x".repeat(1_000);
    result(&format!(
        r#"{{"block_id":{{"hash":"AB"}},"block":{{"header":{{"height":"{height}"}},"pad":"{pad}"}}}}"#
    ))
}

async fn servers() -> [Server; 2] {
    [Server::always(block(5)).await, Server::always(block(5)).await]
}

fn comet<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Comet {
    Comet::new(servers.into_iter().map(|server| server.url.clone()).collect(), limits()).unwrap()
}

/// Queries until the given server has answered.
async fn origin_of(comet: &Comet, server: &Server) -> Origin {
    loop {
        let Reply { origin, .. } = comet.block(5).await.unwrap();
        if origin.host() == &**server.url.host() {
            return origin;
        }
    }
}

#[tokio::test]
async fn an_answer_has_its_endpoint_as_origin() {
    let [a, b] = servers().await;
    let comet = comet([&a, &b]);
    let (first, second) =
        (comet.block(5).await.unwrap().origin, comet.block_results(5).await.unwrap().origin);
    assert_eq!([first.host(), second.host()], [&**a.url.host(), &**b.url.host()]);
    assert_eq!(first.to_string(), format!("comet {}", a.url.host()));
    assert_ne!(first, second);
    assert_eq!(comet.block(5).await.unwrap().origin, first);
}

#[tokio::test]
async fn two_addresses_on_one_host_are_distinguished() {
    let server = Server::always(block(5)).await;
    let url = |path: &str| format!("http://{}/{path}", server.url.host()).parse::<Url>().unwrap();
    let comet = Comet::new(vec![url("a"), url("b")], limits()).unwrap();
    let first = comet.block(5).await.unwrap().origin;
    assert_ne!(first, comet.block(5).await.unwrap().origin);
    assert_eq!(comet.block_from_other(5, &first).await.unwrap().unwrap().origin.host(), first.host());
    assert_eq!(server.asked()[2].line, "GET /b/block?height=5");
}

#[tokio::test]
async fn an_endpoint_with_a_false_answer_is_not_queried_while_there_is_another() {
    let [a, b] = servers().await;
    let comet = comet([&a, &b]);
    let distrusted = origin_of(&comet, &a).await;
    let (log_lines, log) = logged();
    comet.distrust(&distrusted, "its block 5 is not the parent of block 6");
    drop(log);
    let asked = (a.count(), b.count());
    for _ in 0..6 {
        comet.block(5).await.unwrap();
    }
    assert_eq!((a.count(), b.count()), (asked.0, asked.1 + 6));
    let state = &comet.endpoints()[0];
    assert_eq!((state.status, state.false_answers), (EndpointStatus::Distrusted, 1));
    assert!(state.last_error.as_ref().unwrap().ends_with("its block 5 is not the parent of block 6"));
    assert_eq!(comet.endpoints()[1].status, EndpointStatus::Healthy);
    let log_lines = log_lines.lines();
    assert_eq!(log_lines.len(), 1, "{log_lines:?}");
    assert!(
        log_lines[0].contains("ERROR")
            && log_lines[0].contains("the endpoint gave a false answer")
            && log_lines[0].contains(&format!("endpoint=comet {} reason=", a.url.host()))
    );
}

#[tokio::test]
async fn further_false_answers_are_counted_each_time_and_logged_once() {
    let [a, b] = servers().await;
    let comet = comet([&a, &b]);
    let distrusted = origin_of(&comet, &a).await;
    let (log_lines, log) = logged();
    for _ in 0..50 {
        comet.distrust(&distrusted, "false answer");
    }
    drop(log);
    assert_eq!((comet.endpoints()[0].false_answers, log_lines.lines().len()), (50, 1));
}

#[tokio::test]
async fn if_all_are_distrusted_all_are_queried_in_order_of_their_false_answers() {
    let (a, b) = (Server::always(block(5)).await, Server::in_turn(vec![block(5), Play::Close]).await);
    let comet = comet([&a, &b]);
    let (worse, better) = (origin_of(&comet, &a).await, origin_of(&comet, &b).await);
    comet.distrust(&worse, "false answer");
    comet.distrust(&worse, "false answer");
    comet.distrust(&better, "false answer");
    for turn in 1..4 {
        assert_eq!(comet.block(5).await.unwrap().origin, worse, "the other is asked first and fails");
        assert_eq!((a.count(), b.count()), (1 + turn, 1 + turn));
    }
}

#[tokio::test]
async fn a_second_answer_comes_from_another_endpoint_or_not_at_all() {
    let [a, b] = servers().await;
    let (both, alone) = (comet([&a, &b]), comet([&a]));
    let first = both.block(5).await.unwrap().origin;
    for _ in 0..3 {
        let other = both.block_from_other(5, &first).await.unwrap().unwrap();
        assert_eq!(other.origin.host(), &**b.url.host());
        assert_eq!(both.results_from_other(5, &first).await.unwrap().unwrap().origin, other.origin);
    }
    assert_eq!(a.count(), 1);
    let first = alone.block(5).await.unwrap().origin;
    assert_eq!(alone.block_from_other(5, &first).await, Ok(None));
    assert_eq!(alone.results_from_other(5, &first).await, Ok(None));
}

#[tokio::test]
async fn a_distrusted_endpoint_gives_no_second_answer_to_a_trusted_one() {
    let [a, b] = servers().await;
    let comet = comet([&a, &b]);
    let (good, distrusted) = (origin_of(&comet, &a).await, origin_of(&comet, &b).await);
    comet.distrust(&distrusted, "false answer");
    assert_eq!(comet.block_from_other(5, &good).await, Ok(None));
    comet.distrust(&good, "false answer");
    assert_eq!(comet.block_from_other(5, &good).await.unwrap().unwrap().origin, distrusted);
}

#[tokio::test]
async fn a_failed_second_answer_is_an_error() {
    let (a, b) = (Server::always(block(5)).await, Server::always(Play::Close).await);
    let comet = comet([&a, &b]);
    let first = comet.block(5).await.unwrap().origin;
    let failed = comet.block_from_other(5, &first).await.unwrap_err();
    assert!(matches!(failed, Error::Cut { .. }), "{failed}");
}

#[tokio::test]
async fn an_evm_server_is_distrusted_by_itself() {
    let receipts = [Server::always(result("[]")).await, Server::always(result("[]")).await];
    let blocks = Server::always(block(5)).await;
    let endpoints = Endpoints {
        comet: vec![blocks.url.clone()],
        json_rpc: receipts.iter().map(|server| server.url.clone()).collect(),
        ..Endpoints::default()
    };
    let node = Node::new(endpoints, limits()).unwrap();
    let evm: &Evm = node.evm.as_ref().unwrap();
    let distrusted = evm.block_receipts(5).await.unwrap().origin;
    assert_eq!(
        evm.receipts_from_other(5, &distrusted).await.unwrap().unwrap().origin.host(),
        &**receipts[1].url.host()
    );
    node.distrust(&distrusted, "receipts of another block");
    for _ in 0..4 {
        assert_ne!(evm.trace_block(5).await.unwrap().origin, distrusted);
    }
    let standings: Vec<_> =
        node.endpoints().iter().map(|state| (state.origin.service(), state.status)).collect();
    assert_eq!(
        standings,
        [
            ("comet", EndpointStatus::NeverSeen),
            ("json-rpc", EndpointStatus::Distrusted),
            ("json-rpc", EndpointStatus::Healthy)
        ]
    );
    assert_eq!(receipts[0].count(), 1);
}

#[tokio::test]
async fn credentials_are_in_no_origin_and_no_state() {
    let (good, bad) = (Server::always(block(5)).await, Server::always(Play::Close).await);
    let url =
        |server: &Server| format!("http://me:hunter2@{}/key-hunter2", server.url.host()).parse().unwrap();
    let (log_lines, log) = logged();
    let comet = Comet::new(vec![url(&good), url(&bad)], limits()).unwrap();
    let answer = comet.block(5).await.unwrap();
    let error = comet.block_from_other(5, &answer.origin).await.unwrap_err();
    comet.distrust(&answer.origin, "false answer");
    drop(log);
    let states = comet.endpoints();
    let shown =
        format!("{} {:?} {error} {error:?} {states:?} {:?}", answer.origin, answer.origin, log_lines.lines());
    assert!(shown.contains(&**good.url.host()) && !shown.contains("hunter2"), "{shown}");
}
