//! `cairn query`: serves a database that another process writes.
//!
//! What must hold: nothing is written to the database's directory; what is served is at most [`CATCH_UP_EVERY`], and the
//! time it takes, older than what the other process has committed; a request that is slow may add up to a second. While the
//! database cannot be followed, what was read last is served, and `/readyz` says so.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use store::{RocksOptions, RocksStore};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::metrics::Samples;
use crate::serve::Serving;
use crate::settings::Settings;
use crate::settings::sources::{Follower, Sources};
use crate::{logging, metrics, ready, reload, runtime, shutdown};

/// How far behind the writer readers may be.
const CATCH_UP_EVERY: Duration = Duration::from_millis(20);

/// The longest pause after a catch-up that failed: the first is [`CATCH_UP_EVERY`], each is twice the one before.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How often a database that is not there yet is looked for, and how often it is logged that there is none or that it cannot
/// be followed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Runs until it is asked to stop, or until a newer version writes the database.
pub(crate) fn query(sources: Sources<Follower>) -> anyhow::Result<()> {
    let values = sources.clone().merged()?;
    let settings = &Settings::new(&values)?;
    let data = settings.data()?;
    let options = RocksOptions { cache_bytes: settings.cache, ..RocksOptions::default() };
    let (_screen, filter_handle) = logging::start(&settings.log)?;
    let own = own_dir()?;
    runtime::block_on(async {
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
        let serving = Serving::start(settings, Arc::clone(&store) as _, is_ready)?;
        let outcome = keep_up(store, &caught_up, &stop).await;
        serving.stop().await;
        outcome
    })
}

/// A directory for what a follower writes: its own log.
pub(crate) fn own_dir() -> anyhow::Result<TempDir> {
    tempfile::Builder::new().prefix("cairn-follower-").tempdir().context("making a temporary directory")
}

/// The database, as soon as there is one that is of some chain; `None` if the process is to stop before.
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

/// Refuses a database of another chain than the one that was named, if one was.
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

/// Follows the writer; `caught_up` is told when it last did.
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
        // It reads files, and may wait for a slow request.
        match tokio::task::spawn_blocking(move || store.catch_up()).await? {
            Ok(()) => {
                caught_up.send_replace(Instant::now());
                pause = CATCH_UP_EVERY;
                if logged.take().is_some() {
                    tracing::info!("the database is followed again");
                }
            }
            // A newer version writes it now; this one will never know its tables.
            Err(error @ store::Error::UnknownTables { .. }) => {
                return Err(error).context("the database cannot be followed any more");
            }
            // A full table of descriptors, a device that comes back, a directory that is put in place of another.
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
