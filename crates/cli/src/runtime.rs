//! The threads that asynchronous work runs on.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Builder;

/// What is still running after a clean stop is a question to a node; nobody waits for its answer.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs `work` to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    run(work, || {})
}

/// Runs `work`, which indexes, to its end: its threads come after those that answer requests. The calling thread keeps its
/// priority, and so do the threads that it starts.
pub(crate) fn block_on_indexing<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    run(work, ingest::behind_readers)
}

fn run<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    on_start: impl Fn() + Send + Sync + 'static,
) -> anyhow::Result<T> {
    let mut threads = Builder::new_multi_thread();
    let runtime = threads.thread_name("cairn").on_thread_start(on_start).enable_all().build();
    let runtime = runtime.context("starting threads")?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}
