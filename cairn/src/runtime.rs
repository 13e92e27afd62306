//! The tokio runtime.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Builder;

use crate::otlp;

/// Timeout for tasks left after a clean stop: pending node requests, whose results are not needed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs `work` to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    run(work, || {})
}

/// Runs `work`, an indexer, with a lower thread priority than the servers. The calling thread and the threads it starts
/// keep their priority.
pub(crate) fn block_on_indexing<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    run(work, || web::limits::priority::lower(web::limits::priority::BACKGROUND))
}

fn run<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    on_start: impl Fn() + Send + Sync + 'static,
) -> anyhow::Result<T> {
    let mut threads = Builder::new_multi_thread();
    let runtime = threads.thread_name("cairn").on_thread_start(on_start).enable_all().build();
    let runtime = runtime.context("starting threads")?;
    let outcome = runtime.block_on(work);
    // The exporter needs the runtime.
    otlp::stop();
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}
