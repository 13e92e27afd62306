//! Metrics in Prometheus' text form, on an address of their own: they are for the operator, not for clients.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use web::limits::Limits;
use web::raw::{RawReply, serve_raw};

use crate::interrupt;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Bounds of the histogram of requests, in seconds: from a row that is in memory to a node that does not answer.
const SECONDS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// What was timed is kept one by one until it is put into the histogram, so that has to happen without a reader too.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Gives what is counted from now on at `http://<at>/metrics`, until `stop` becomes true.
pub(crate) async fn start(at: SocketAddr, stop: &watch::Receiver<bool>) -> anyhow::Result<()> {
    let requests = Matcher::Full(web::meter::SECONDS.to_owned());
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(requests, &SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("metrics cannot be counted")?;
    describe();
    let listener = TcpListener::bind(at).await;
    let listener =
        listener.with_context(|| format!("cannot listen on {at}; choose another address with --metrics"))?;
    tracing::info!(url = %format_args!("http://{}/metrics", listener.local_addr()?), "metrics");
    let stop = stop.clone();
    let limits = Limits { connections: 64, ..Limits::default() };
    tokio::spawn(async move {
        let reader = handle.clone();
        let answer = move |request: Request<_>| std::future::ready(answer(&reader, request.uri().path()));
        tokio::select! {
            () = serve_raw(listener, limits, answer, interrupt::stopped(&stop)) => {}
            () = keep(&handle) => {}
        }
    });
    Ok(())
}

async fn keep(handle: &PrometheusHandle) {
    loop {
        sleep(UPKEEP_EVERY).await;
        handle.run_upkeep();
    }
}

fn answer(handle: &PrometheusHandle, path: &str) -> RawReply {
    let mut response = Response::new(bytes::Bytes::new());
    if path == "/metrics" {
        *response.body_mut() = handle.render().into();
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        *response.body_mut() = bytes::Bytes::from_static(b"metrics are at /metrics\n");
    }
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response.into()
}

fn describe() {
    web::meter::describe();
    node::describe_metrics();
    ingest::meter::describe();
    metrics::describe_gauge!(
        "cairn_height",
        "last height: of the chain as the node tells it, and of each lane"
    );
}
