//! CometBFT's searches over the index, against what the recorded nodes replied.

use std::sync::{Arc, OnceLock};

use comet_rpc::CometRpc;
use http::Request;
use serde_json::Value;
use testkit::indexed;
use web::app::App;

use super::node_search::{NODES, Recorded, replies};

async fn app(chain: &str) -> App<CometRpc> {
    let indexer = indexed::indexer(super::tx_search::store(chain).await).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(App::new(indexer, query::ENDPOINTS).unwrap())));
    CometRpc::new(index, Arc::new(|| Ok(()))).app().unwrap()
}

async fn post(app: &App<CometRpc>, body: &str) -> (u16, Value) {
    let request = Request::builder().method("POST").uri("/").body(()).unwrap();
    let response = app.respond_later(&request.into_parts().0, body.as_bytes()).await;
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or(Value::Null))
}

/// Our reply to a recorded request.
async fn ours(app: &App<CometRpc>, line: &Recorded) -> (u16, Value) {
    if let Some(body) = &line.body {
        return post(app, body.get()).await;
    }
    let response = app.get(&line.path.replace('"', "%22"));
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

fn method(line: &Recorded) -> String {
    let body = line.body.as_ref().map(|body| serde_json::from_str::<Value>(body.get()).unwrap());
    let named = body.map(|body| body["method"].as_str().unwrap().to_owned());
    named.unwrap_or_else(|| line.path[1..].split('?').next().unwrap().to_owned())
}

/// Whether a request finds more on the node of the L1, which has blocks before and behind those of the recording.
fn is_beyond(line: &Recorded) -> bool {
    let text = line.body.as_ref().map_or(line.path.as_str(), |body| body.get());
    let has = |texts: [&str; 2]| texts.iter().any(|part| text.contains(part));
    has(["%3E", ">"]) && !has(["%3C", "<"])
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_are_those_of_the_recorded_nodes_or_refused_with_the_remedy() {
    let mut counts = [0; 3];
    for (node, chain, from, _) in NODES {
        let app = app(chain).await;
        for line in replies(node) {
            let method = method(&line);
            let is_served = ["tx", "tx_search", "block_search"].contains(&method.as_str());
            let text = line.body.as_ref().map_or(line.path.as_str(), |body| body.get());
            if line.kind != "cometbft" || !is_served || (node != "evm" && is_beyond(&line)) {
                continue;
            }
            let place = format!("{node} {} {text}", line.path);
            let (status, ours) = ours(&app, &line).await;
            let mut theirs: Value = serde_json::from_str(line.answer.get()).unwrap();
            assert_eq!(ours["id"], theirs["id"], "{place}");
            let data = ours["error"]["data"].as_str().unwrap_or_default();
            if data.contains("ask a node") || data.contains("this search is not answered by the index") {
                let is_ours = ours["error"]["code"] == -32602
                    || data.contains(&format!("not found (indexed from height {from};"));
                assert!(is_ours && data.contains(": ") || data.contains("; ask"), "{place}: {ours}");
                counts[1] += 1;
                continue;
            }
            if let Some(reason) = theirs.pointer_mut("/error/data")
                && let Some((before, _)) = reason.as_str().unwrap().split_once(", got 1 (")
            {
                *reason = format!("{before}, got 1").into();
            }
            assert_eq!((status, &ours), (line.status, &theirs), "{place}");
            counts[usize::from(theirs.get("result").is_none()) * 2] += 1;
        }
    }
    // Results, refused requests, errors. Most that are refused are searches of the L1 that include blocks before the recording.
    assert_eq!(counts, [489, 661, 416]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queries_of_published_clients_are_answered_with_proofs() {
    let app = app("bridge-cases/l2").await;
    let sender = "init1uzctf3mp2d0ke6fjej72cy4z2frs345tgs5dcq";
    // initia.js 2, and the Go relayer, which asks for proofs and for more than a page may have.
    let body = app.get(&format!("/tx_search?query=%22transfer.sender=%27{sender}%27%22"));
    let found: Value = serde_json::from_slice(body.body()).unwrap();
    let hash = found["result"]["txs"][0]["hash"].as_str().unwrap();
    let body = app.get(&format!("/tx?hash=0x{hash}&prove=true"));
    let tx: Value = serde_json::from_slice(body.body()).unwrap();
    assert_eq!(tx["result"]["proof"]["data"], tx["result"]["tx"]);
    let relayer = r#"{"jsonrpc":"2.0","id":"a","method":"tx_search","params":{
        "query":"send_packet.packet_src_channel='channel-0' AND send_packet.packet_sequence='1'",
        "prove":true,"page":"1","per_page":"1000","order_by":""}}"#;
    let hermes = relayer.replace("tx_search", "block_search").replace(r#""prove":true,"#, "");
    let (status, batch) = post(&app, &format!("[{relayer},{hermes}]")).await;
    assert_eq!((status, batch[0]["result"]["total_count"].as_str()), (200, Some("1")), "{batch}");
    assert!(batch[0]["result"]["txs"][0]["proof"]["proof"]["leaf_hash"].is_string());
    assert_eq!(batch[1]["result"].to_string(), r#"{"blocks":[],"total_count":"0"}"#);
    assert_eq!(batch[1]["id"], "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_and_bodies_are_errors_that_say_what_is_served() {
    let app = app("bridge-cases/l2").await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"abci_query","params":{}}"#;
    let (status, error) = post(&app, call).await;
    assert_eq!((status, &error["error"]["code"]), (200, &(-32601).into()));
    assert!(error["error"]["data"].as_str().unwrap().contains("`tx_search`"), "{error}");
    for (method, reason) in [
        ("status", "state and the validator's key are not stored"),
        ("block", "headers, commits and evidence are not stored"),
        ("block_results", "changes of validators are not stored"),
    ] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"height":"7"}}}}"#);
        let (_, by_post) = post(&app, &call).await;
        let by_get = app.get(&format!("/{method}?height=7"));
        let by_get: (u16, Value) = (by_get.status().as_u16(), serde_json::from_slice(by_get.body()).unwrap());
        assert_eq!((by_get.0, &by_get.1["error"]), (500, &by_post["error"]), "{method}");
        let data = by_post["error"]["data"].as_str().unwrap();
        assert!(
            by_post["error"]["code"] == -32601 && data.contains(reason) && data.ends_with(": ask a node"),
            "{data}"
        );
    }
    for (body, code) in [("", -32700), ("{", -32700), ("[]", -32600), ("1", -32600)] {
        assert_eq!(post(&app, body).await.1["error"]["code"], code, "{body}");
    }
    assert_eq!(post(&app, r#"{"jsonrpc":"2.0","method":"health"}"#).await, (200, Value::Null));
    assert_eq!(app.get("/health").body().as_ref(), br#"{"jsonrpc":"2.0","id":-1,"result":{}}"#);
    assert_eq!(app.get("/abci_query").status(), 404);
}
