//! `cairn route`: the routing service (planner, messages, transfer tracker) and its supervisor.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::registry::{Loaded, Problem, Registry, Severity};
use anyhow::Context as _;
use routing_api::Service;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, watch};
use web::app::App;
use web::limits::Limits;
use web::serve::server::{Server, default_workers};

use crate::local_index::CurrentIndex;
use crate::pages::CurrentRouting;
use crate::serve::{self, VERSION};
use crate::settings::sources::{ROUTER, Sources};
use crate::settings::values::missing;
use crate::settings::{RouteSettings, Settings, path};
use crate::{logging, metrics, output, reload, runtime, shutdown};

/// Largest request body in bytes.
const BODY: usize = 1 << 20;

/// Flags of `cairn route`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Route {
    #[command(subcommand)]
    command: Option<RouteCommand>,
    #[command(flatten)]
    sources: Sources<ROUTER>,
}

/// Subcommands of `cairn route`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RouteCommand {
    /// Checks a registry against itself, and against the chains if asked to
    Check {
        /// Directory of the registry
        #[arg(long, value_name = "DIR", value_parser = path, env = "CAIRN_ROUTE_REGISTRY")]
        registry: PathBuf,
        /// Asks the nodes of all chains: channels, clients, bridges, denominations
        #[arg(long)]
        online: bool,
    },
}

/// Serves, or checks a registry; a registry with errors is exit code 1.
pub(crate) fn run(args: Route) -> anyhow::Result<ExitCode> {
    if let Some(RouteCommand::Check { registry, online }) = args.command {
        return check(&registry, online);
    }
    let values = args.sources.merged()?;
    let base = Settings::new(&values)?;
    let settings = base.route().ok_or_else(|| missing("route.registry"))?;
    runtime::block_on(async {
        let (_screen, filter_handle) = logging::start_server(&base)?;
        let stop = shutdown::watch()?;
        reload::on_hangup(args.sources, values, filter_handle)?;
        if let Some(at) = base.metrics {
            metrics::start(at, &stop).await?;
        }
        let routing = Supervisor::start(settings, false, CurrentIndex::none())?;
        output::print(&format!("routing at {}\n", routing.url()))?;
        routing.run(&stop).await;
        routing.stop().await;
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A running routing service.
pub(crate) struct Routing {
    server: Server,
    app: Arc<App<Service>>,
    /// Installed before the URL is published: without a handler, SIGHUP would end the process.
    hangups: Mutex<Signal>,
}

impl Routing {
    /// Opens the database and listens, within a tokio runtime; `current` gets the service. [`Routing::work`] starts the
    /// tracker.
    pub(crate) fn start(
        settings: &RouteSettings,
        loaded: Loaded,
        current: &CurrentRouting,
        index: &CurrentIndex,
    ) -> anyhow::Result<Self> {
        Self::over(listen(settings)?, settings, loaded, current, index)
    }

    fn over(
        listener: TcpListener,
        settings: &RouteSettings,
        loaded: Loaded,
        current: &CurrentRouting,
        index: &CurrentIndex,
    ) -> anyhow::Result<Self> {
        let hangups = Mutex::new(signal(SignalKind::hangup()).context("listening for SIGHUP")?);
        let service = Service::open(loaded.registry, &settings.data, settings.config.clone(), VERSION)?;
        let service = service.with_local(Some(Arc::new(index.clone())));
        service.set_files(loaded.files);
        service.tracker().read_from(Arc::new(index.clone()));
        let mut app = App::new(service, routing_api::ENDPOINTS)?.with_cors(settings.cors.clone());
        if settings.explorer {
            let pages = explorer::route_pages(Arc::new(current.clone()), VERSION)?;
            app = app.with_fallback(Arc::new(pages));
        }
        let app = Arc::new(app);
        current.set(&app);
        let limits = Limits { body: BODY, ..settings.limits.clone() };
        let server = Server::start(listener, Arc::clone(&app), limits, default_workers())?;
        tracing::info!(url = serve::url_of(&server), "routing");
        Ok(Self { server, app, hangups })
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        serve::url_of(&self.server)
    }

    /// The service.
    pub(crate) fn service(&self) -> &Service {
        self.app.state()
    }

    /// Tracks transfers, refreshes facts about the chains and reloads the registry on SIGHUP, until `stop`. The server
    /// runs until [`Routing::stop`].
    pub(crate) async fn work(&self, registry: &Path, stop: &watch::Receiver<bool>) -> anyhow::Result<()> {
        let service = self.app.state();
        let reloads = async {
            let mut hangups = self.hangups.lock().await;
            while hangups.recv().await.is_some() {
                reload(service, registry);
            }
        };
        let outcome = tokio::select! {
            outcome = service.tracker().run(shutdown::stopped(stop)) => outcome,
            () = service.refresh(shutdown::stopped(stop)) => Ok(()),
            () = service.follow_prices(shutdown::stopped(stop)) => Ok(()),
            () = service.follow_pools(shutdown::stopped(stop)) => Ok(()),
            () = reloads => Ok(()),
        };
        Ok(outcome?)
    }

    /// See [`serve::stop`].
    pub(crate) async fn stop(self) {
        serve::stop(self.server).await;
    }
}

fn listen(settings: &RouteSettings) -> anyhow::Result<TcpListener> {
    serve::listen(settings.listen, "--route-listen")
}

/// Backoff before a failed routing service is restarted.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_mins(1);

/// Supervisor of a routing service: logs failures and restarts it after a backoff.
pub(crate) struct Supervisor {
    settings: RouteSettings,
    /// `None` between a failure and the next start.
    routing: Mutex<Option<Routing>>,
    /// The running service, for the explorer's pages.
    current: CurrentRouting,
    /// The index of this process, for the tracker and for portfolios.
    index: CurrentIndex,
}

impl Supervisor {
    /// Starts the service, within a tokio runtime. A registry that does not load, or an address in use, is an error
    /// here; so is a database that does not open, unless the disk is full or `is_contained`: then the supervisor
    /// retries it.
    pub(crate) fn start(
        mut settings: RouteSettings,
        is_contained: bool,
        index: CurrentIndex,
    ) -> anyhow::Result<Self> {
        let loaded = load(&settings.registry)?;
        let listener = listen(&settings)?;
        // With port 0, a restart must use the same port.
        settings.listen = listener.local_addr()?;
        let current = CurrentRouting::default();
        let routing = match Routing::over(listener, &settings, loaded, &current, &index) {
            Ok(routing) => Some(routing),
            Err(error) if is_contained || is_full(&error) => {
                let error = format!("{error:#}");
                tracing::error!(error, pause = ?FIRST_PAUSE, "the routing service did not start");
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self { settings, routing: Mutex::new(routing), current, index })
    }

    /// The service that runs now, for the explorer's pages.
    pub(crate) fn current(&self) -> CurrentRouting {
        self.current.clone()
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.settings.listen)
    }

    /// Runs the service until `stop`.
    pub(crate) async fn run(&self, stop: &watch::Receiver<bool>) {
        let mut routing = self.routing.lock().await;
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(running) = &*routing {
                let begun = Instant::now();
                let Err(error) = running.work(&self.settings.registry, stop).await else { return };
                if begun.elapsed() > LAST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                tracing::error!(error = format!("{error:#}"), ?pause, "the routing service failed");
            }
            if let Some(failed) = routing.take() {
                failed.stop().await;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shutdown::stopped(stop) => return,
            }
            pause = (2 * pause).min(LAST_PAUSE);
            match load(&self.settings.registry)
                .and_then(|loaded| Routing::start(&self.settings, loaded, &self.current, &self.index))
            {
                Ok(started) => *routing = Some(started),
                Err(error) => {
                    tracing::error!(
                        error = format!("{error:#}"),
                        ?pause,
                        "the routing service did not start"
                    );
                }
            }
        }
    }

    /// Stops the service, letting requests in flight finish within [`Limits::stop`].
    pub(crate) async fn stop(self) {
        if let Some(routing) = self.routing.into_inner() {
            routing.stop().await;
        }
    }
}

fn is_full(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(routing_api::service::Error::Tracker(error)) if error.is_full())
}

fn reload(service: &Service, registry: &Path) {
    match service.reload(registry) {
        Ok(problems) => {
            log_problems(problems, &service.world().registry);
            tracing::info!(hash = service.world().registry.hash(), "registry reloaded");
        }
        Err(error) => tracing::error!(%error, "the registry cannot be loaded, the previous one stays in use"),
    }
}

/// Loads a registry and logs its problems.
pub(crate) fn load(dir: &Path) -> anyhow::Result<Loaded> {
    let mut loaded = ::registry::load(dir)?;
    log_problems(std::mem::take(&mut loaded.problems), &loaded.registry);
    Ok(loaded)
}

/// Problems of each severity that one load logs at most: a public registry can have thousands. `route check` prints
/// all.
const MAX_LOGGED: usize = 20;

/// Logs the problems of the registry files, and the errors that exclude parts of the registry from routes.
fn log_problems(mut problems: Vec<Problem>, registry: &Registry) {
    let errors = ::registry::check(registry).into_iter();
    problems.extend(errors.filter(|problem| problem.severity == Severity::Error));
    for severity in [Severity::Error, Severity::Warning] {
        let mut left = problems.iter().filter(|problem| problem.severity == severity);
        for Problem { place, what, .. } in left.by_ref().take(MAX_LOGGED) {
            tracing::warn!(%severity, %place, problem = what, "registry problem");
        }
        let more = left.count();
        if more > 0 {
            tracing::warn!(%severity, more, "more registry problems: `cairn route check` prints all");
        }
    }
}

fn check(dir: &Path, online: bool) -> anyhow::Result<ExitCode> {
    let Loaded { registry, mut problems, .. } = ::registry::load(dir)?;
    problems.extend(::registry::check::check(&registry));
    // Errors first: a public registry has many warnings.
    problems.sort_by_key(|problem| problem.severity);
    let mut text = String::new();
    for problem in &problems {
        writeln!(text, "{problem}")?;
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let (warnings, mut wrong) = (problems.len() - errors, errors > 0);
    if online {
        let clients = tracker::ChainClients::new(routing_api::Config::default().query_timeout);
        let findings =
            runtime::block_on(async { Ok(routing_api::check::online(&clients, &registry).await) })?;
        for finding in &findings {
            writeln!(text, "{}{finding}", if finding.unreachable { "not checked: " } else { "" })?;
        }
        wrong |= findings.iter().any(|finding| !finding.unreachable);
    }
    let (chains, assets, channels) =
        (registry.chains().count(), registry.assets().count(), registry.channels().count());
    writeln!(
        text,
        "{chains} chains, {assets} assets, {channels} channels; {errors} errors, {warnings} warnings; hash {}",
        registry.hash()
    )?;
    output::print(&text)?;
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
