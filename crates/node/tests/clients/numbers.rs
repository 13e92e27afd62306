//! Values of the metrics.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use node::{Comet, Url};
use tokio::time::timeout;

use crate::scripted::{Play, Server, limits, result};

const STATUS: &str = r#"{"node_info":{"network":"c-1","version":"0.38.19"},"sync_info":{"latest_block_height":"50","earliest_block_height":"1","catching_up":false}}"#;

/// A request that is dropped, one that is answered, and a false reply.
async fn ask() -> [String; 2] {
    let play = |block: Play| {
        move |_: usize, asked: &crate::scripted::Asked| {
            if asked.line.ends_with("/status") { result(STATUS) } else { block.clone() }
        }
    };
    let block = result(&format!(r#"{{"block":{{"pad":"{}"}}}}"#, "x".repeat(1_000)));
    let servers = [Server::play(play(Play::Hang)).await, Server::play(play(block)).await];
    let url =
        |server: &Server| format!("http://me:hunter2@{}/hunter2", server.url.host()).parse::<Url>().unwrap();
    let comet = Comet::new(servers.iter().map(url).collect(), limits()).unwrap();
    comet.verify_chain("c-1").await.unwrap();
    timeout(Duration::from_millis(100), comet.block(50)).await.unwrap_err();
    let answer = comet.block(50).await.unwrap();
    comet.distrust(&answer.origin, "false answer");
    servers.map(|server| server.url.host().to_string())
}

#[test]
fn requests_heights_and_false_answers_are_counted_by_host_and_port() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let hosts = metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask())
    });
    let text = recorder.handle().render();
    let [slow, fast] = hosts;
    for line in [
        format!(r#"cairn_node_requests_total{{service="comet",endpoint="{slow}",outcome="answered"}} 1"#),
        format!(r#"cairn_node_requests_total{{service="comet",endpoint="{slow}",outcome="dropped"}} 1"#),
        format!(r#"cairn_node_requests_total{{service="comet",endpoint="{fast}",outcome="answered"}} 2"#),
        format!(r#"cairn_node_request_seconds_count{{service="comet",endpoint="{fast}"}} 2"#),
        format!(r#"cairn_node_endpoint_height{{service="comet",endpoint="{fast}"}} 50"#),
        r#"cairn_node_method_seconds_count{service="comet",method="block",outcome="answered"} 1"#.to_owned(),
        r#"cairn_node_method_seconds_count{service="comet",method="block",outcome="dropped"} 1"#.to_owned(),
        format!(r#"cairn_node_false_replies_total{{service="comet",endpoint="{slow}"}} 0"#),
        format!(r#"cairn_node_false_replies_total{{service="comet",endpoint="{fast}"}} 1"#),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("hunter2"));
}

/// Queries two addresses on one host, which are at different heights.
async fn ask_both() -> String {
    let server = Server::play(|_, asked| match asked.line.as_str() {
        "GET /a/status" => result(STATUS),
        _ => result(&STATUS.replace("50", "40")),
    })
    .await;
    let url = |path: &str| format!("http://{}/{path}", server.url.host()).parse::<Url>().unwrap();
    let comet = Comet::new(vec![url("a"), url("b")], limits()).unwrap();
    comet.verify_chain("c-1").await.unwrap();
    server.url.host().to_string()
}

#[test]
fn two_addresses_on_one_host_have_numbers_of_their_own() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let host = metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask_both())
    });
    let text = recorder.handle().render();
    for (address, height) in [(1, 50), (2, 40)] {
        let labels = format!(r#"service="comet",endpoint="{host} (address {address})""#);
        for line in [
            format!("cairn_node_endpoint_height{{{labels}}} {height}"),
            format!(r#"cairn_node_requests_total{{{labels},outcome="answered"}} 1"#),
        ] {
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }
}
