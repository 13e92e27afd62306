//! Prometheus exporter on its own address, for operators and not for clients.
//!
//! # Invariants
//! * The descriptions of the metrics are their only list: `docs/src/metrics.md` is made from it.

mod database;
#[cfg(test)]
mod tests;

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use anyhow::Context as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use metrics::{Unit, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};
use store::RocksStore;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use web::limits::Limits;
use web::serve::serve_fn;

use crate::serve::{COMMIT, VERSION};
use crate::shutdown;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

const CPU_SECONDS: &str = "process_cpu_seconds_total";
const RESIDENT_BYTES: &str = "process_resident_memory_bytes";

/// Bounds of the histograms of requests, in seconds: from a row that is in memory to a node that does not answer.
const SECONDS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Interval at which recorded samples move into histograms; without it they accumulate while there is no scrape.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// The sampling function that each scrape calls, once it is set.
#[derive(Clone, Default)]
pub(crate) struct Samples(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl Samples {
    /// Samples readiness and, if it is there, `store` at each scrape. Sampling blocks on the disk only.
    pub(crate) fn set(
        &self,
        store: Option<&Arc<RocksStore>>,
        is_ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        // Metrics are served for longer than the store is open.
        let store = store.map(Arc::downgrade);
        let sample = move || {
            let store = store.as_ref().map(Weak::upgrade);
            if matches!(store, Some(None)) {
                return;
            }
            gauge!("cairn_ready").set(f64::from(u8::from(is_ready().is_ok())));
            if let Some(store) = store.flatten() {
                database::sample(&store);
            }
        };
        // There is one database per process.
        drop(self.0.set(Box::new(sample)));
    }
}

/// Samples the process, under the metric names that Prometheus clients use. The first is a gauge, because a counter of
/// our exporter has whole seconds only.
fn sample_process() {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    // Nanoseconds of a second, bytes of memory and realistic seconds are below 2^53.
    #[expect(clippy::cast_precision_loss)]
    gauge!(CPU_SECONDS).set(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9);
    // Pages: all, resident, … (`proc_pid_statm(5)`). Other systems than Linux do not have the file.
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let resident = pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<usize>().ok());
    #[expect(clippy::cast_precision_loss)]
    if let Some(resident) = resident {
        gauge!(RESIDENT_BYTES).set((resident * page_size()) as f64);
    }
}

/// Installs the recorder and serves `http://<at>/metrics` until `stop` becomes true.
pub(crate) async fn start(at: SocketAddr, stop: &watch::Receiver<bool>) -> anyhow::Result<Samples> {
    let handle = recorder().and_then(PrometheusBuilder::install_recorder);
    let handle = handle.context("metrics cannot be counted")?;
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
        let respond = move |request: Request<_>| {
            sample_process();
            if let Some(sample) = sampled.0.get() {
                sample();
            }
            std::future::ready(respond_to(&reader, request.uri().path()))
        };
        tokio::select! {
            () = serve_fn(listener, limits, respond, shutdown::stopped(&stop)) => {}
            () = keep(&handle) => {}
        }
    });
    Ok(samples)
}

/// The exporter. A histogram without bounds would be exported as quantiles, which cannot be summed over replicas.
fn recorder() -> Result<PrometheusBuilder, BuildError> {
    let histograms =
        [web::meter::SECONDS, web::meter::SECONDS_BY_STATUS, node::SECONDS_BY_METHOD, grpc::meter::SECONDS];
    histograms.into_iter().try_fold(PrometheusBuilder::new(), |builder, histogram| {
        builder.set_buckets_for_metric(Matcher::Full(histogram.to_owned()), &SECONDS)
    })
}

async fn keep(handle: &PrometheusHandle) {
    loop {
        sleep(UPKEEP_EVERY).await;
        handle.run_upkeep();
    }
}

fn respond_to(handle: &PrometheusHandle, path: &str) -> Response<bytes::Bytes> {
    let mut response = Response::new(bytes::Bytes::new());
    if path == "/metrics" {
        *response.body_mut() = handle.render().into();
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        *response.body_mut() = bytes::Bytes::from_static(b"metrics are at /metrics\n");
    }
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

fn describe() {
    web::meter::describe();
    grpc::meter::describe();
    evm_rpc::meter::describe();
    node::describe_metrics();
    ingest::meter::describe();
    query::describe();
    routing_api::meter::describe();
    database::describe();
    describe_object_store();
    describe_gauge!("cairn_build_info", "1; version and commit of the program are its labels");
    gauge!("cairn_build_info", "version" => VERSION, "commit" => COMMIT).set(1.0);
    describe_gauge!("cairn_ready", "1 while /readyz says that the program is ready");
    describe_gauge!(CPU_SECONDS, Unit::Seconds, "CPU time of the process in user and system mode");
    describe_gauge!(RESIDENT_BYTES, Unit::Bytes, "memory of the process that is not paged out");
    describe_gauge!("cairn_height", "last height of the chain, as the node reports it, and of each lane");
}

/// The counters of the crate `slate`, which is not in the default build; the documentation lists them all the same.
fn describe_object_store() {
    describe_counter!(
        "cairn_object_store_requests_total",
        "requests for databases on object storage, by kind (get, put, list, delete), the client's repetitions not \
         counted"
    );
    describe_counter!(
        "cairn_object_store_bytes_total",
        Unit::Bytes,
        "bytes of objects that these requests transferred, by direction (read, written)"
    );
    describe_counter!(
        "cairn_object_store_failures_total",
        "requests that failed for another reason than the state of the object"
    );
}
