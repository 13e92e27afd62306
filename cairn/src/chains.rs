//! `cairn query` over several chains: one server, and a database for each chain.
//!
//! # Invariants
//! * A chain that cannot be opened or followed delays no other one: its requests get 503 or its last state, the log and
//!   `/readyz` name it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use query::Indexer;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use web::mounts::{Mount, Mounts, PREFIX, Slot};
use web::serve::server::{Server, default_workers};

use crate::database::{Opener, Shared};
use crate::follow;
use crate::local_index::CurrentIndex;
use crate::metrics::Samples;
use crate::pages::Pages;
use crate::serve::{self, Probes, Ready};
use crate::settings::Settings;
use crate::{ready, shutdown};

/// Backoff after a database could not be opened.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// A chain that is served.
struct Served {
    id: String,
    /// With the location of its database.
    settings: Settings,
    slot: Slot<Indexer>,
    caught_up: watch::Sender<Instant>,
    ready: Ready,
}

/// Serves `chains`, settings with the host names of each, until a stop signal.
pub(crate) async fn serve(
    settings: &Settings,
    chains: Vec<(Settings, Vec<String>)>,
    samples: &Samples,
    stop: &watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (mut mounts, mut served) = (Vec::new(), Vec::new());
    for ((id, _), (settings, hosts)) in settings.chains.iter().zip(chains) {
        let chain = Served::new(id.clone(), settings);
        mounts.push(Mount { id: id.clone(), hosts, app: Arc::clone(&chain.slot) });
        served.push(chain);
    }
    let checks: Vec<_> = served.iter().map(|chain| (chain.id.clone(), Arc::clone(&chain.ready))).collect();
    let is_ready: Ready = Arc::new(move || {
        let failed = checks.iter().filter_map(|(id, ready)| Some(format!("{id}: {}", ready().err()?)));
        let failed: Vec<_> = failed.collect();
        if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
    });
    let scraped = Arc::clone(&is_ready);
    samples.set(None, move || scraped());
    let first = mounts.remove(0);
    let mounts = Mounts::new(first, mounts, move || is_ready())?.with_cors(settings.cors.clone());
    let listener = serve::listen(settings.listen, "--listen")?;
    let server = Server::start_mounts(listener, mounts, settings.limits(), default_workers())?;
    tracing::info!(url = serve::url_of(&server), chains = served.len(), "serving");
    let shared = Arc::new(Shared::default());
    let mut tasks = JoinSet::new();
    for chain in served {
        tasks.spawn(chain.run(Arc::clone(&shared), stop.clone()));
    }
    tasks.join_all().await;
    serve::stop(server).await;
    Ok(())
}

impl Served {
    fn new(id: String, settings: Settings) -> Self {
        let (caught_up, last) = watch::channel(Instant::now());
        let slot = Slot::default();
        let (opened, is_fresh) = (Arc::clone(&slot), ready::keeping_up(last));
        let ready: Ready = Arc::new(move || match opened.get() {
            Some(_) => is_fresh(),
            None => Err("its database is not open yet".to_owned()),
        });
        Self { id, settings, slot, caught_up, ready }
    }

    /// Opens and follows the database until a stop signal. If that fails once it is open, its last state is served.
    async fn run(self, shared: Arc<Shared>, stop: watch::Receiver<bool>) {
        while let Err(error) = self.follow(&shared, &stop).await {
            tracing::error!(chain = self.id, error = format!("{error:#}"), "this chain cannot be followed");
            tokio::select! {
                () = sleep(TRY_AGAIN), if self.slot.get().is_none() => {}
                () = shutdown::stopped(&stop) => return,
            }
        }
    }

    async fn follow(&self, shared: &Shared, stop: &watch::Receiver<bool>) -> anyhow::Result<()> {
        let Self { id, settings, slot, caught_up, ready } = self;
        let own = follow::own_dir()?;
        let opener = Opener::sharing(settings, own.path(), shared)?;
        let Some(database) = follow::await_database(settings, &opener, stop).await? else { return Ok(()) };
        follow::check_chain(settings, &database)?;
        caught_up.send_replace(Instant::now());
        let pages = Pages { index: CurrentIndex::none(), routing: None, head: Arc::new(|| None) };
        let ready = Arc::clone(ready);
        let probes = Probes::new(move || ready());
        let app = serve::app(settings, database.store(), &probes, pages, format!("{PREFIX}{id}"))?;
        slot.set(app).ok().context("the database was opened twice")?;
        tracing::info!(chain = id, "serving this chain");
        follow::keep_up(&database, caught_up, stop).await
    }
}
