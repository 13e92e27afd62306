//! Following of a database that another process writes.
//!
//! # Invariants
//! * Nothing is written to the database.
//! * The state lags the writer by at most [`CATCH_UP_EVERY`], or [`REMOTE`] for an object store, plus the time of a
//!   catch-up; a slow request may add up to 1 s.

use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::database::{Followed, Opener, check_format};
use crate::settings::Settings;
use crate::shutdown;
use crate::temporary::Temporary;

/// Interval between catch-ups.
const CATCH_UP_EVERY: Duration = Duration::from_millis(20);

/// The same for an object store, where each catch-up is some ten requests: while there are new blocks, and when there
/// were none for a while.
const REMOTE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));

/// Maximum backoff after a failed catch-up; it starts at [`CATCH_UP_EVERY`] and doubles.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Poll interval while there is no database, and interval of log lines about a missing database or failed catch-ups.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A temporary directory for the log files of a read-only instance.
pub(crate) fn own_dir() -> anyhow::Result<Temporary> {
    Temporary::new("follower")
}

/// Waits for an initialised database; `None` on a stop signal.
pub(crate) async fn await_database(
    settings: &Settings,
    opener: &Opener<'_>,
    stop: &watch::Receiver<bool>,
) -> anyhow::Result<Option<Followed>> {
    let data = settings.data.as_deref().unwrap_or_else(|| "".as_ref());
    let mut logged: Option<Instant> = None;
    loop {
        let reason = match opener.open() {
            Ok(database) if schema::open::identity(&*database.store())?.is_some() => {
                return Ok(Some(database));
            }
            Ok(_) => "the process that writes it has not reached its node yet".to_owned(),
            Err(error @ store::Error::NotADatabase { .. }) => error.to_string(),
            Err(error @ store::Error::MissingTables { .. }) => {
                check_format(data)?;
                error.to_string()
            }
            Err(error) => return Err(error.into()),
        };
        if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            logged = Some(Instant::now());
            tracing::warn!(data = %data.display(), reason, "waiting for the database");
        }
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = shutdown::stopped(stop) => return Ok(None),
        }
    }
}

/// Fails if the database belongs to another chain than the configured one, or to one without what the settings need.
pub(crate) fn check_chain(settings: &Settings, database: &Followed) -> anyhow::Result<()> {
    let identity = schema::open::existing(&*database.store())?;
    settings.check_evm(Some(&identity.vm))?;
    let found = identity.chain_id;
    match &settings.chain_id {
        Some(wanted) if *wanted != found => {
            anyhow::bail!(
                "the database is of chain `{found}`, not `{wanted}`: name another data directory or chain"
            )
        }
        _ => Ok(()),
    }
}

/// Catches up with the writer periodically; `caught_up` gets the time of the last success.
pub(crate) async fn keep_up(
    database: &Followed,
    caught_up: &watch::Sender<Instant>,
    stop: &watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (shortest, longest) = match database.rocks() {
        Some(_) => (CATCH_UP_EVERY, CATCH_UP_EVERY),
        None => REMOTE,
    };
    let mut pause = shortest;
    let mut logged: Option<Instant> = None;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = shutdown::stopped(stop) => return Ok(()),
        }
        let database = database.clone();
        // Reads files, and may wait for a slow request.
        match tokio::task::spawn_blocking(move || database.catch_up()).await? {
            Ok(moved) => {
                caught_up.send_replace(Instant::now());
                pause = if moved { shortest } else { (2 * pause).min(longest) };
                if logged.take().is_some() {
                    tracing::info!("the database is followed again");
                }
            }
            // A newer version writes the database; this one cannot read its tables.
            Err(error @ store::Error::UnknownTables { .. }) => {
                return Err(error).context("the database cannot be followed any more");
            }
            // Transient: no file descriptors left, an I/O error, or a replaced directory.
            Err(error) => {
                pause = (2 * pause).min(TRY_AGAIN);
                if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
                    logged = Some(Instant::now());
                    tracing::warn!(%error, "the database cannot be followed for now");
                }
            }
        }
    }
}
