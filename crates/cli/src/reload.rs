//! Settings that change while the program runs: on SIGHUP they are read again, and what is logged changes with them. A
//! process that was started in a terminal stops instead (`shutdown`).
//!
//! What must hold: a file that cannot be read or has errors changes nothing, and the log says why; of the other settings it
//! says which are not those that the program runs with, and that they wait for the next start.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::logging::FilterHandle;
use crate::settings::sources::Sources;
use crate::settings::{Settings, Values, print};
use crate::shutdown;

/// Listens to SIGHUP from now on, for as long as the process runs, which it does with the values in `running`. Call it
/// within a tokio runtime.
pub(crate) fn on_hangup<G: Clone + Send + 'static>(
    sources: Sources<G>,
    running: Values,
    filter_handle: FilterHandle,
) -> anyhow::Result<()> {
    if shutdown::has_terminal() {
        // There the signal says that the terminal is gone.
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
