//! Settings reload on SIGHUP: applies the log filter. A process with a terminal stops on SIGHUP instead (`shutdown`).
//!
//! # Invariants
//! * A file that is unreadable or invalid changes nothing, and the error is logged.
//! * Other changed settings are logged as pending until the next start.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::logging::FilterHandle;
use crate::settings::sources::{Groups, Sources};
use crate::settings::values::Values;
use crate::settings::{Settings, print};
use crate::shutdown;

/// Installs the SIGHUP handler for the lifetime of the process. `running` are the current values. Call it within a
/// tokio runtime.
pub(crate) fn on_hangup<const G: Groups>(
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
            let read = sources.merged().and_then(|values| Ok((Settings::new(&values)?, values)));
            let (settings, values) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::error!(%error, "settings reload failed, the previous ones stay in use");
                    continue;
                }
            };
            // The parser of the setting has checked the filter.
            if let Err(error) = filter_handle.reload(EnvFilter::new(&settings.log)) {
                tracing::error!(%error, "log filter reload failed, the previous one stays in use");
                continue;
            }
            let changed: Vec<_> =
                print::changed(&running, &values).into_iter().filter(|name| name != "log").collect();
            tracing::warn!(log = settings.log, "log filter reloaded");
            if !changed.is_empty() {
                tracing::warn!(settings = changed.join(", "), "changed settings that need a restart");
            }
        }
    });
    Ok(())
}
