//! The metrics of a running program, its documentation, and the dashboard and alerts that use them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::json;

use crate::route::{BRIDGED, DEPOSIT, Pair, ended};
use crate::support::{Cairn, get, get_text, post, repository, until};

type Names = BTreeSet<String>;

/// The names of metrics in a text: words that begin with the prefix of our metrics or of a process's. Those of gRPC and of
/// object storage are left out: they appear with the first call, and the tests of that server and that engine read them.
fn names_in(text: &str) -> Names {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("cairn_") || word.starts_with("process_"))
        .filter(|word| !word.starts_with("cairn_grpc_") && !word.starts_with("cairn_object_store_"))
        .map(str::to_owned)
        .collect()
}

/// The names of the samples of a scrape, with the suffixes of histograms.
fn samples(scraped: &str) -> Names {
    let lines = scraped.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split(['{', ' ']).next())
        .map(str::to_owned)
        .filter(|name| !name.is_empty())
        .collect()
}

/// The names of the metrics of a scrape.
fn families(scraped: &str) -> Names {
    let types = scraped.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn file(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap()
}

#[test]
fn documentation_dashboard_and_alerts_agree_with_the_metrics_of_a_running_program() {
    let pair = Pair::start();
    let data = pair.dir.path().join("index");
    let route =
        ["--route-registry", &pair.registry, "--route-data", &pair.data, "--route-listen", "127.0.0.1:0"];
    let own = ["--metrics", "127.0.0.1:0", "--index", "parties,tokens", "--evm-listen", "127.0.0.1:0"];
    let mut cairn = Cairn::start(&[&pair.l2.flags("run", &data)[..], &route, &own].concat());
    let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
    let url = cairn.logged("routing")["url"].as_str().unwrap().to_owned();
    let evm = cairn.logged("serving Ethereum's JSON-RPC")["url"].as_str().unwrap().to_owned();
    cairn.logged("caught up");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber" });
    assert_eq!(post(&format!("{evm}/"), &call).0, 200);
    let ask = json!({
        "amount_in": "5000000", "source_asset_chain_id": "e2e-l1-1", "source_asset_denom": "uinit",
        "dest_asset_chain_id": "e2e-l2-1", "dest_asset_denom": BRIDGED,
    });
    assert_eq!(post(&format!("{url}/v2/fungible/route"), &ask).0, 200);
    post(&format!("{url}/v2/tx/track"), &json!({ "tx_hash": DEPOSIT, "chain_id": "e2e-l1-1" }));
    ended(&url);

    let scraped = until("polls of the transfer's end", || {
        let (_, scraped) = get_text(&metrics);
        let line = "cairn_route_open_transfers{state=\"pending\"} 0";
        (scraped.contains(line) && scraped.contains("cairn_route_polls_total{")).then_some(scraped)
    });
    for line in [
        "cairn_route_plans_total{outcome=\"planned\"} 1",
        "cairn_route_plans_total{outcome=\"no_path\"} 0",
        "cairn_route_polls_total{chain=\"e2e-l1-1\",result=\"changed\"} ",
        "cairn_route_chain_up{chain=\"e2e-l1-1\"} 1",
        "cairn_lane_state{lane=\"blocks\",state=\"running\"} 1",
        "cairn_lane_state{lane=\"internal_txs\",state=\"stopped\"} 0",
        "cairn_node_method_seconds_count{service=\"comet\",method=\"block_results\",outcome=\"answered\"} ",
        "cairn_rocksdb_table_memory_bytes{table=\"block\"} ",
        "cairn_rocksdb_write_stopped 0",
    ] {
        assert!(scraped.contains(line), "{line} is not in\n{scraped}");
    }
    let document = file("docs/src/metrics.md");
    let (_, table) = document.split_once("| metric | type | unit | value |").unwrap();
    assert_eq!(families(&scraped), names_in(table));

    let exported = samples(&scraped);
    for path in ["docs/contrib/grafana/cairn.json", "docs/contrib/prometheus/alerts.yml"] {
        let used = names_in(&file(path));
        let unknown: Vec<_> = used.difference(&exported).collect();
        assert!(used.len() > 10 && unknown.is_empty(), "{path} uses {unknown:?}");
    }
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn the_routing_service_alone_has_metrics() {
    let pair = Pair::start();
    let flags = ["route", "--registry", &pair.registry, "--data", &pair.data, "--listen", "127.0.0.1:0"];
    let mut cairn = Cairn::start(&[&flags[..], &["--metrics", "127.0.0.1:0"]].concat());
    let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
    let url = cairn.line("routing at ");
    assert_eq!(get(&format!("{url}/v2/info/chains")).0, 200);
    let unseen = json!({ "tx_hash": "AB".repeat(32), "chain_id": "e2e-l1-1" });
    assert_eq!(post(&format!("{url}/v2/tx/track"), &unseen).0, 200);
    let open = "cairn_route_open_transfers{state=\"submitted\"} 1";
    until("the transaction among the open ones", || get_text(&metrics).1.contains(open).then_some(()));
    cairn.kill();

    // The count is that of the database.
    let mut cairn = Cairn::start(&[&flags[..], &["--metrics", "127.0.0.1:0"]].concat());
    let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
    cairn.line("routing at ");
    let (code, scraped) = get_text(&metrics);
    assert!(code == 200 && scraped.contains(open), "{scraped}");
    assert!(
        scraped.contains("process_cpu_seconds_total ") && scraped.contains("cairn_build_info{"),
        "{scraped}"
    );
}

#[test]
fn prometheus_accepts_the_alerts() {
    let Ok(output) = Command::new("promtool")
        .args(["check", "config", "prometheus.yml"])
        .current_dir(repository("docs/contrib/prometheus"))
        .output()
    else {
        eprintln!("NOT TESTED: promtool is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
