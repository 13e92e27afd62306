//! The threads that asynchronous work runs on.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Builder;

/// What is still running after a clean stop is a question to a node; nobody waits for its answer.
const LEFTOVERS: Duration = Duration::from_millis(200);

/// Runs `work` to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        Builder::new_multi_thread().thread_name("cairn").enable_all().build().context("starting threads")?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(LEFTOVERS);
    outcome
}
