//! `cairn run` and `cairn ingest`: the indexer, with the API server for `run`.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::future::OptionFuture;
use ingest::Ingest;
use node::{Limits, Node};
use schema::meta::{self, BlockLane, CallLane, RichLane};
use tokio::sync::{Semaphore, watch};

use crate::control;
use crate::database::Written;
use crate::local_index::CurrentIndex;
use crate::logging::{self, Screen};
use crate::metrics::Samples;
use crate::pages::{CurrentRouting, Pages};
use crate::ready::Readiness;
use crate::route::Supervisor;
use crate::running::Running;
use crate::serve::{COMMIT, Probes, Serving, VERSION};
use crate::settings::Settings;
use crate::settings::sources::{SERVICE, Sources};
use crate::{metrics, progress, reload, runtime, shutdown, temporary};

/// Runs until a stop signal, or until the indexer fails.
pub(crate) fn run(sources: Sources<SERVICE>, serves: bool) -> anyhow::Result<()> {
    let values = sources.merged()?;
    let settings = Settings::new(&values)?;
    runtime::block_on_indexing(async {
        let (screen, filter_handle) = logging::start_server(&settings)?;
        settings.require_index()?;
        let stop = shutdown::watch()?;
        reload::on_hangup(sources, values, filter_handle)?;
        temporary::remove_abandoned();
        index(&settings, serves, &screen, &stop, None, |_| Ok(())).await
    })
}

/// Indexes, and serves as soon as the database is initialised. `arrived` is called once, when the index first reaches
/// the head of the chain. `routes` is a routing service that the caller runs.
pub(crate) async fn index(
    settings: &Settings,
    serves: bool,
    screen: &Screen,
    stop: &watch::Receiver<bool>,
    routes: Option<CurrentRouting>,
    arrived: impl FnOnce(Option<&Serving>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (config, endpoints) = (settings.ingest(serves)?, settings.endpoints()?);
    settings.check_evm(Some(config.vm.name()))?;
    settings.location()?;
    let samples = match settings.metrics {
        Some(at) => metrics::start(at, stop).await?,
        None => Samples::default(),
    };
    let node = Arc::new(Node::new(endpoints, Limits::default())?);
    let database = Written::open(settings)?;
    let _running = log_start(&config, &database)?;
    let ready = Arc::new(Readiness::new(Arc::clone(&node), settings.ready_lag));
    let is_ready = {
        let ready = Arc::clone(&ready);
        move || ready.check()
    };
    samples.set(database.rocks(), is_ready.clone());
    // Before the first request to the node, so that existing data is served even if the node is down.
    let is_there = ingest::is_there(&config, &*database.store())?;
    if is_there {
        ingest::begin_indexes(&config, &*database.store())?;
    }
    let existing = is_there.then(|| database.served());
    let routing = settings.route().filter(|_| serves);
    let own_index = CurrentIndex::new(is_ready.clone());
    let routing = routing.map(|route| Supervisor::start(route, true, own_index.clone())).transpose()?;
    let head = {
        let ready = Arc::clone(&ready);
        Arc::new(move || ready.head())
    };
    let pages =
        Pages { index: own_index, routing: routing.as_ref().map(Supervisor::current).or(routes), head };
    let remark = {
        let ready = Arc::clone(&ready);
        Arc::new(move || ready.remark())
    };
    let probes = Probes { remark, ..Probes::new(is_ready) };
    let mut serving = serves.then(|| Serving::start(settings, existing, probes, pages)).transpose()?;
    let run_routes = async {
        if let Some(routing) = &routing {
            routing.run(stop).await;
        }
        // The indexer decides when a stop is complete.
        std::future::pending::<Infallible>().await
    };
    // Held while a detached blocking task uses the store.
    let maintenance = Arc::new(Semaphore::new(1));
    let indexing = async {
        let ingest = tokio::select! {
            ingest = Ingest::prepare(config, node, database.store()) => ingest?,
            () = shutdown::stopped(stop) => return Ok(()),
        };
        ready.follow(ingest.progress());
        if let Some(serving) = &mut serving {
            serving.open(settings, database.served()).await?;
        }
        tokio::select! {
            outcome = ingest.run(stop.clone()) => outcome.map_err(anyhow::Error::from),
            outcome = watch_over(&ingest, (&database, &maintenance), screen, serving.as_ref(), arrived) => {
                outcome.map(|never| match never {})
            }
        }
    };
    let serve_control = async {
        match database.rocks() {
            Some(store) => control::serve(Arc::clone(store), Arc::clone(&maintenance)).await,
            None => std::future::pending().await,
        }
    };
    // Routing and backups do not wait for the node of this chain either.
    let outcome = tokio::select! {
        outcome = indexing => outcome,
        never = serve_control => match never {},
        never = run_routes => match never {},
    };
    // In every case the servers drain the requests in flight.
    let stop_serving = OptionFuture::from(serving.map(Serving::stop));
    let stop_routing = OptionFuture::from(routing.map(Supervisor::stop));
    tokio::join!(stop_serving, stop_routing);
    // Callers may delete the directory after this returns, so wait for tasks that write to it.
    drop(maintenance.acquire().await);
    outcome
}

/// Logs the start, and creates the marker of unclean shutdowns in a directory.
fn log_start(config: &ingest::Config, database: &Written) -> anyhow::Result<Option<Running>> {
    let (store, data) = (database.store(), database.name());
    let snapshot = store.snapshot()?;
    let blocks = meta::read::<BlockLane>(&*snapshot)?.map(|lane| lane.height);
    let running = database.rocks().map(|_| Running::begin(data)).transpose();
    let (running, left) = running.with_context(|| format!("writing to {}", data.display()))?.unzip();
    tracing::info!(
        version = VERSION,
        commit = COMMIT,
        chain_id = config.chain_id,
        vm = config.vm.name(),
        data = %data.display(),
        height = blocks.unwrap_or(0),
        internal_tx_height = meta::read::<CallLane>(&*snapshot)?.map(|lane| lane.height),
        rich_list_height = meta::read::<RichLane>(&*snapshot)?.map(|lane| lane.height),
        previous_stop = match (left, blocks) {
            (Some(true), _) => "killed",
            (Some(false), Some(_)) => "clean",
            (_, None) => "none",
            // An object store has no marker.
            (None, Some(_)) => "unknown",
        },
        "starting"
    );
    Ok(running)
}

/// Reports progress, and settles the database when the head is reached; fails if `arrived` fails.
async fn watch_over(
    ingest: &Ingest,
    (database, maintenance): (&Written, &Arc<Semaphore>),
    screen: &Screen,
    serving: Option<&Serving>,
    arrived: impl FnOnce(Option<&Serving>) -> anyhow::Result<()>,
) -> anyhow::Result<Infallible> {
    let (caught_up, mut has_arrived) = watch::channel(false);
    let report = progress::report(ingest.progress(), ingest.heads(), screen.clone(), caught_up);
    let announce = async {
        // The report holds the sender and never ends.
        drop(has_arrived.wait_for(|arrived| *arrived).await);
        arrived(serving)?;
        let (database, busy) = (database.clone(), Arc::clone(maintenance).acquire_owned().await?);
        // A stop drops the sender.
        let (_wanted, still) = watch::channel(());
        let settle = move || {
            let outcome = database.settle(|| still.has_changed().is_ok());
            drop(database);
            drop(busy);
            outcome
        };
        tokio::task::spawn_blocking(settle).await??;
        std::future::pending::<anyhow::Result<Infallible>>().await
    };
    tokio::select! {
        never = report => match never {},
        outcome = announce => outcome,
    }
}
