//! Metrics in Prometheus' text form, on an address of their own: they are for the operator, not for clients.

use std::net::SocketAddr;

use anyhow::Context as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::sync::watch;
use web::limits::Limits;
use web::raw::{RawReply, serve_raw};

use crate::interrupt;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Gives what is counted from now on at `http://<at>/metrics`, until `stop` becomes true.
pub(crate) async fn start(at: SocketAddr, stop: &watch::Receiver<bool>) -> anyhow::Result<()> {
    let handle = PrometheusBuilder::new().install_recorder().context("metrics cannot be counted")?;
    describe();
    let listener = TcpListener::bind(at).await;
    let listener =
        listener.with_context(|| format!("cannot listen on {at}; choose another address with --metrics"))?;
    tracing::info!(url = %format_args!("http://{}/metrics", listener.local_addr()?), "metrics");
    let stop = stop.clone();
    let limits = Limits { connections: 64, ..Limits::default() };
    tokio::spawn(async move {
        let answer = move |request: Request<_>| std::future::ready(answer(&handle, request.uri().path()));
        serve_raw(listener, limits, answer, interrupt::stopped(&stop)).await;
    });
    Ok(())
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
    metrics::describe_gauge!(
        "cairn_height",
        "last height: of the chain as the node tells it, and of each lane"
    );
    metrics::describe_counter!(
        "cairn_rich_list_samples_total",
        "balances that were compared with their contracts"
    );
    metrics::describe_counter!(
        "cairn_rich_list_drifts_total",
        "tokens whose balances turned out to change without their events telling"
    );
    metrics::describe_counter!("cairn_rich_list_healed_total", "balances that were corrected");
}
