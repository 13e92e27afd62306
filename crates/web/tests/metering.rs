//! Request metrics. One test: the recorder is one per process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod shop;
mod socket;

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::PrometheusBuilder;
use socket::Socket;
use web::clock::Clock;
use web::limits::{Limits, Rate};

#[test]
fn requests_are_counted_by_endpoint_and_status_and_never_by_client_data() {
    let recorder = PrometheusBuilder::new().install_recorder().unwrap();
    web::meter::describe();
    let some = |n| NonZeroU32::new(n).unwrap();
    let now = Instant::now();
    let limits = Limits {
        per_client: Some(Rate { per_second: some(1), burst: some(9) }),
        clock: Clock::new(move || now),
        answer: Duration::from_millis(50),
        ..Limits::default()
    };
    let (server, _slow) = shop::open(limits);
    let mut client = Socket::open(server.address());
    let tag = client.get("/shop/v1/items/tea").header("etag").unwrap().to_owned();
    client.get("/shop/v1/items/coffee");
    client.request("GET", "/shop/v1/items/tea", &format!("if-none-match: {tag}\r\n"));
    client.get("/SHOP/v1/items/%zz/");
    client.get("/broken");
    client.get("/lost");
    client.get("/secret-of-a-client");
    client.request("DELETE", "/till", "");
    client.get("/healthz");
    let long = format!("/till?{}", "a".repeat(9000));
    assert_eq!(Socket::open(server.address()).get(&long).status, 414);
    assert_eq!(client.get("/till").status, 429);

    let text = recorder.render();
    let mut counted: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("cairn_http_requests_total")).collect();
    counted.sort_unstable();
    let expected = [
        r#"{endpoint="/broken",status="500"} 1"#,
        r#"{endpoint="/lost",status="503"} 1"#,
        r#"{endpoint="/shop/v1/items/{name}",status="200"} 2"#,
        r#"{endpoint="/shop/v1/items/{name}",status="304"} 1"#,
        r#"{endpoint="/shop/v1/items/{name}",status="400"} 1"#,
        r#"{endpoint="/till",status="414"} 1"#,
        r#"{endpoint="/till",status="429"} 1"#,
        r#"{endpoint="none",status="404"} 1"#,
        r#"{endpoint="none",status="405"} 1"#,
    ];
    assert_eq!(counted, expected);
    assert!(
        text.contains(r#"cairn_http_request_seconds_count{endpoint="/shop/v1/items/{name}"} 4"#),
        "{text}"
    );
    assert!(text.contains("# HELP cairn_http_requests_total "), "{text}");
    assert!(!text.contains("secret"));
}
