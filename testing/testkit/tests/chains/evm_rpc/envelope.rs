//! The envelope: recorded exchanges with a node, and what clients must not break.

use evm_rpc::{Dialect, MAX_BODY};
use http::{Request, StatusCode};

use super::goldens::read;
use super::{app, text};

#[tokio::test(flavor = "multi_thread")]
async fn recorded_exchanges_have_the_same_status_and_body() {
    let app = app(Dialect::Node).await;
    let (mut compared, mut wrong) = (0, Vec::new());
    for golden in read("evm-fees").filter(|golden| golden.set == "envelope") {
        let exchange = golden.http.unwrap();
        // Large bodies are described in words; compression and paths beside `/` are those of the server.
        let Some(body) = exchange.body else { continue };
        if exchange.headers.contains_key("accept-encoding")
            || exchange.method != "POST"
            || exchange.path != "/"
        {
            continue;
        }
        let mut request = Request::builder().method("POST").uri("/");
        for (name, value) in &exchange.headers {
            request = request.header(name, value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        let response = app.respond_later(&head, body.as_bytes()).await;
        compared += 1;
        let reply = String::from_utf8_lossy(response.body()).into_owned();
        if Some(response.status().as_u16()) != golden.status || reply != golden.body {
            wrong.push(format!("{body}\n  node {}\n  here {reply}", golden.body));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 70, "{compared}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_thousand_calls_is_answered_and_one_more_is_not() {
    let app = app(Dialect::Fixed).await;
    let batch = |n: usize| {
        let call = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId","params":[]}}"#);
        format!("[{}]", (0..n).map(call).collect::<Vec<_>>().join(","))
    };
    let replies: Vec<serde_json::Value> = serde_json::from_str(&text(&app, &batch(1000)).await).unwrap();
    let ids: Vec<_> = replies.iter().map(|reply| reply["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..1000).collect::<Vec<_>>());
    assert!(replies.iter().all(|reply| reply["result"] == "0x7122181e20277" && reply.get("error").is_none()));
    assert_eq!(
        text(&app, &batch(1001)).await,
        r#"[{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"batch too large"}}]"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_large_results_is_cut_with_an_error_for_each_call_that_is_left() {
    let app = app(Dialect::Fixed).await;
    let call =
        |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_getBlockReceipts","params":["0x207"]}}"#);
    let body = format!("[{}]", (0..1000).map(call).collect::<Vec<_>>().join(","));
    let reply = text(&app, &body).await;
    assert!(reply.len() < 30_000_000, "{}", reply.len());
    let replies: Vec<serde_json::Value> = serde_json::from_str(&reply).unwrap();
    assert_eq!(replies.len(), 1000);
    let full = replies.iter().take_while(|reply| reply["result"].is_array()).count();
    assert!(full > 10 && full < 1000, "{full}");
    for reply in &replies[full..] {
        assert_eq!(reply["error"], serde_json::json!({ "code": -32003, "message": "response too large" }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_any_depth_and_of_the_largest_size_is_answered() {
    let app = app(Dialect::Fixed).await;
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    let invalid = r#"[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}]"#;
    assert_eq!(text(&app, &deep).await.trim_end(), invalid);
    for params in [format!(r#"[{{"topics":{deep}}}]"#), format!("[{deep}]")] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":{params}}}"#);
        let reply: serde_json::Value = serde_json::from_str(&text(&app, &body).await).unwrap();
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
    let blanks = " ".repeat(MAX_BODY - 100);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,{blanks}"method":"eth_chainId"}}"#);
    assert!(text(&app, &body).await.contains("0x7122181e20277"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_is_off_is_missing_with_the_text_that_clients_match() {
    let app = app(Dialect::Fixed).await;
    for method in
        ["eth_newFilter", "eth_call", "eth_sendRawTransaction", "debug_traceTransaction", "txpool_status"]
    {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":[]}}"#);
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":"a","error":{{"code":-32601,"message":"the method {method} does not exist/is not available"}}}}"#
        );
        assert_eq!(text(&app, &body).await.trim_end(), expected);
    }
    let response = super::post(&app, "").await;
    assert_eq!((response.status(), response.body().len()), (StatusCode::OK, 0));
}
