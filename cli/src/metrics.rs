//! Metrics in Prometheus' text form, on an address of their own: they are for the operator, not for clients.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use schema::meta::{self, BlockLane};
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use web::limits::Limits;
use web::raw::{RawReply, serve_raw};

use crate::interrupt;
use crate::serve::{COMMIT, VERSION};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Bounds of the histogram of requests, in seconds: from a row that is in memory to a node that does not answer.
const SECONDS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// What was timed is kept one by one until it is put into the histogram, so that has to happen without a reader too.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// What is looked at when metrics are asked for; nothing until it is set.
#[derive(Clone, Default)]
pub(crate) struct Samples(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl Samples {
    /// From now on `sample` is called before each answer. It waits for nothing but a disk.
    pub(crate) fn set(&self, sample: impl Fn() + Send + Sync + 'static) {
        // There is one index in a process.
        drop(self.0.set(Box::new(sample)));
    }
}

/// Samples readiness and the database: its size, and the time of its last block.
pub(crate) fn sample_index(store: &dyn Store, is_ready: bool) {
    metrics::gauge!("cairn_ready").set(f64::from(u8::from(is_ready)));
    let last = store.snapshot().ok().and_then(|snapshot| meta::read::<BlockLane>(&*snapshot).ok().flatten());
    // Seconds, and sizes of disks, are below 2^53.
    #[expect(clippy::cast_precision_loss)]
    if let Some(last) = last {
        metrics::gauge!("cairn_last_block_time_seconds").set((last.time / 1_000_000_000) as f64);
    }
    #[expect(clippy::cast_precision_loss)]
    if let Ok(bytes) = store.disk_bytes() {
        metrics::gauge!("cairn_database_bytes").set(bytes as f64);
    }
}

/// Gives what is counted from now on at `http://<at>/metrics`, until `stop` becomes true.
pub(crate) async fn start(at: SocketAddr, stop: &watch::Receiver<bool>) -> anyhow::Result<Samples> {
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
    let (samples, stop) = (Samples::default(), stop.clone());
    let sampled = samples.clone();
    let limits = Limits { connections: 64, ..Limits::default() };
    tokio::spawn(async move {
        let reader = handle.clone();
        let answer = move |request: Request<_>| {
            if let Some(sample) = sampled.0.get() {
                sample();
            }
            std::future::ready(answer(&reader, request.uri().path()))
        };
        tokio::select! {
            () = serve_raw(listener, limits, answer, interrupt::stopped(&stop)) => {}
            () = keep(&handle) => {}
        }
    });
    Ok(samples)
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
    metrics::describe_gauge!("cairn_build_info", "1; version and commit of the program are its labels");
    metrics::gauge!("cairn_build_info", "version" => VERSION, "commit" => COMMIT).set(1.0);
    metrics::describe_gauge!("cairn_ready", "1 while /readyz says that the program is ready");
    metrics::describe_gauge!("cairn_last_block_time_seconds", "time of the last indexed block, since 1970");
    metrics::describe_gauge!("cairn_database_bytes", "size of the database on disk, logs included");
    metrics::describe_gauge!(
        "cairn_height",
        "last height: of the chain as the node tells it, and of each lane"
    );
}
