//! Signal handling: the first SIGINT or SIGTERM stops the process cleanly, the second exits at once.
//!
//! With a terminal, SIGHUP (the terminal was closed) is a clean stop. Without one, as a service, it reloads the
//! settings (`reload`).

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The exit code of a shell for a program ended by SIGINT.
const INTERRUPTED: i32 = 130;

/// Becomes true when the process gets a signal to stop. Call it within a tokio runtime.
pub(crate) fn watch() -> anyhow::Result<watch::Receiver<bool>> {
    let mut interrupts = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let mut terminations = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let hangups = has_terminal().then(|| signal(SignalKind::hangup())).transpose();
    let mut hangups = hangups.context("listening for SIGHUP")?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
                () = hangup(&mut hangups) => {
                    // The shell and the system may both send SIGHUP, so a second one does not exit at once.
                    stop.send_replace(true);
                    continue;
                }
            }
            if stop.send_replace(true) {
                // Exit without waiting. Commits are atomic, so this is safe.
                std::process::exit(INTERRUPTED);
            }
            tracing::info!("stopping; a second signal ends the process at once");
        }
    });
    Ok(stopped)
}

/// True if the process has a terminal, whose end stops it.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stderr().is_terminal()
}

async fn hangup(hangups: &mut Option<Signal>) {
    match hangups {
        Some(hangups) => drop(hangups.recv().await),
        None => std::future::pending().await,
    }
}

/// Waits until the process gets a signal to stop.
pub(crate) async fn stopped(stop: &watch::Receiver<bool>) {
    // The task above holds the sender and never ends; if it did, stopping would be right.
    drop(stop.clone().wait_for(|stop| *stop).await);
}
