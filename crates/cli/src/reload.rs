//! Settings reload on SIGHUP: applies the log filter. A process with a terminal stops on SIGHUP instead (`shutdown`).
//!
//! # Invariants
//! * A file that is unreadable or invalid changes nothing, and the error is logged.
//! * Other changed settings are logged as pending until the next start.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::logging::FilterHandle;
use crate::settings::sources::Sources;
use crate::settings::{Settings, Values, print};
use crate::shutdown;

/// Installs the SIGHUP handler for the lifetime of the process. `running` are the current values. Call it within a
/// tokio runtime.
pub(crate) fn on_hangup<G: Clone + Send + 'static>(
    sources: Sources<G>,
    running: Values,
    filter_handle: FilterHandle,
) -> anyhow::Result<()> {
    if shutdown::has_terminal() {
        // With a terminal, the signal means that the terminal was closed.
        return Ok(());
    }
    let mut hangups = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            let read = sources.clone().merged().and_then(|values| Ok((Settings::new(&values)?, values)));
            let (settings, values) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::error!(%error, "SIGHUP: the settings stay as they were");
                    continue;
                }
            };
            if let Err(error) = filter_handle.set(&settings.log.filter) {
                tracing::error!(%error, "SIGHUP: the log stays as it was");
                continue;
            }
            let changed: Vec<_> =
                print::changed(&running, &values).into_iter().filter(|name| *name != "log").collect();
            tracing::warn!(log = settings.log.filter, "SIGHUP: the log's filter was read again");
            if !changed.is_empty() {
                tracing::warn!(settings = changed.join(", "), "SIGHUP: these wait for the next start");
            }
        }
    });
    Ok(())
}
