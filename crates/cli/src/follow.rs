//! `cairn query`: serves a database that another process writes.
//!
//! # Invariants
//! * Nothing is written to the directory of the database.
//! * Responses lag the writer by at most [`CATCH_UP_EVERY`] plus the time of a catch-up; a slow request may add up to 1
//!   s.
//! * While catching up fails, the last state is served and `/readyz` reports the failure.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use store::{RocksOptions, RocksStore};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::metrics::Samples;
use crate::pages::Pages;
use crate::serve::Serving;
use crate::settings::Settings;
use crate::settings::sources::{FOLLOWER, Sources};
use crate::{logging, metrics, ready, reload, runtime, shutdown};

/// Interval between catch-ups.
const CATCH_UP_EVERY: Duration = Duration::from_millis(20);

/// Maximum backoff after a failed catch-up; it starts at [`CATCH_UP_EVERY`] and doubles.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Poll interval while there is no database, and interval of log lines about a missing database or failed catch-ups.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Runs until a stop signal, or until a newer version writes the database.
pub(crate) fn query(sources: Sources<FOLLOWER>) -> anyhow::Result<()> {
    let values = sources.merged()?;
    let settings = &Settings::new(&values)?;
    let data = settings.data()?;
    let options = RocksOptions { cache_bytes: settings.cache_bytes(), ..RocksOptions::default() };
    let own = own_dir()?;
    runtime::block_on(async {
        let (_screen, filter_handle) = logging::start_server(settings)?;
        let stop = shutdown::watch()?;
        reload::on_hangup(sources, values, filter_handle)?;
        let samples = match settings.metrics {
            Some(at) => metrics::start(at, &stop).await?,
            None => Samples::default(),
        };
        let Some(store) = await_database(data, own.path(), options, &stop).await? else { return Ok(()) };
        let store = Arc::new(store);
        check_chain(settings, &store)?;
        let (caught_up, last) = watch::channel(Instant::now());
        let is_ready = ready::keeping_up(last);
        samples.set(&store, is_ready.clone());
        // It asks no node, so it does not know the height of the chain.
        let pages = Pages { routing: None, head: Arc::new(|| None) };
        let serving = Serving::start(settings, Some(Arc::clone(&store) as _), is_ready, pages)?;
        let outcome = keep_up(store, &caught_up, &stop).await;
        serving.stop().await;
        outcome
    })
}

/// A temporary directory for the log files of a read-only instance.
pub(crate) fn own_dir() -> anyhow::Result<TempDir> {
    tempfile::Builder::new().prefix("cairn-follower-").tempdir().context("making a temporary directory")
}

/// Waits for an initialised database; `None` on a stop signal.
async fn await_database(
    data: &Path,
    own: &Path,
    options: RocksOptions,
    stop: &watch::Receiver<bool>,
) -> anyhow::Result<Option<RocksStore>> {
    let mut logged: Option<Instant> = None;
    loop {
        let reason = match RocksStore::follow(data, own, schema::TABLES, options) {
            Ok(store) if schema::open::identity(&store)?.is_some() => return Ok(Some(store)),
            Ok(_) => "the process that writes it has not reached its node yet".to_owned(),
            Err(error @ (store::Error::NotADatabase { .. } | store::Error::MissingTables { .. })) => {
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

/// Fails if the database belongs to another chain than the configured one.
fn check_chain(settings: &Settings, store: &RocksStore) -> anyhow::Result<()> {
    let found = schema::open::existing(store)?.chain_id;
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
async fn keep_up(
    store: Arc<RocksStore>,
    caught_up: &watch::Sender<Instant>,
    stop: &watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut pause = CATCH_UP_EVERY;
    let mut logged: Option<Instant> = None;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = shutdown::stopped(stop) => return Ok(()),
        }
        let store = Arc::clone(&store);
        // Reads files, and may wait for a slow request.
        match tokio::task::spawn_blocking(move || store.catch_up()).await? {
            Ok(()) => {
                caught_up.send_replace(Instant::now());
                pause = CATCH_UP_EVERY;
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
