//! Ctrl-C and SIGTERM: the first asks everything to stop, the second ends the process at once.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What a shell reports of a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Becomes true when the process is asked to stop. Call it within a tokio runtime.
pub(crate) fn watch() -> anyhow::Result<watch::Receiver<bool>> {
    let mut interrupts = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let mut terminations = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
            }
            if stop.send_replace(true) {
                // Somebody does not want to wait. What is committed is whole, so this is safe.
                std::process::exit(INTERRUPTED);
            }
            tracing::info!("stopping; once more to end at once");
        }
    });
    Ok(stopped)
}

/// Waits until the process is asked to stop.
pub(crate) async fn stopped(stop: &watch::Receiver<bool>) {
    // The sender lives in the task above, which never ends; if it did, stopping would be right.
    drop(stop.clone().wait_for(|stop| *stop).await);
}
