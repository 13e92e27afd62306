//! `cairn route`: plans transfers between chains, makes the messages to sign, and follows them.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ::registry::{Loaded, Registry};
use ::route::Service;
use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use web::app::App;
use web::cors::Cors;
use web::limits::Limits;
use web::server::{Server, default_workers};

use crate::serve::VERSION;
use crate::settings::Settings;
use crate::settings::given::{Given, Log};
use crate::{interrupt, logging, output, runtime};

/// Largest request body in bytes.
const BODY: usize = 1 << 20;

/// Flags of `cairn route`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Route {
    #[command(subcommand)]
    command: Option<RouteCommand>,
    /// Directory of the registry: chains, assets, channels, bridges; read again on SIGHUP
    #[arg(long, value_name = "DIR", env = "CAIRN_ROUTE_REGISTRY", required = true)]
    registry: Option<PathBuf>,
    /// Directory of the database of tracked transfers; made if it does not exist
    #[arg(long, value_name = "DIR", env = "CAIRN_ROUTE_DATA", default_value = "cairn-route")]
    data: PathBuf,
    /// Where the routing interface listens; port 0 takes a free one
    #[arg(long, value_name = "ADDR", env = "CAIRN_ROUTE_LISTEN", default_value = "127.0.0.1:8081")]
    listen: SocketAddr,
    #[command(flatten)]
    log: Given<Log>,
}

/// What else `cairn route` does.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RouteCommand {
    /// Checks a registry against itself, and against the chains if asked to
    Check {
        /// Directory of the registry
        #[arg(long, value_name = "DIR", env = "CAIRN_ROUTE_REGISTRY")]
        registry: PathBuf,
        /// Asks the nodes of all chains: channels, clients, bridges, denominations
        #[arg(long)]
        online: bool,
    },
}

/// What a routing service needs to be told.
#[derive(Clone, Debug)]
pub(crate) struct RouteSettings {
    /// Directory of the registry.
    pub(crate) registry: PathBuf,
    /// Directory of the database.
    pub(crate) data: PathBuf,
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Which web pages may read the answers.
    pub(crate) cors: Cors,
    /// What a client may take of the server; what a body may have is the routing interface's own matter.
    pub(crate) limits: Limits,
}

/// Serves, or checks; a registry with errors is told by the exit code 1.
pub(crate) fn run(args: Route) -> anyhow::Result<ExitCode> {
    if let Some(RouteCommand::Check { registry, online }) = args.command {
        return check(&registry, online);
    }
    let base = Settings::new(&args.log.merged()?)?;
    let registry = args.registry.context("--registry is required")?;
    logging::start(&base.log)?;
    let (data, listen, cors) = (args.data, args.listen, base.cors);
    let settings = RouteSettings { registry, data, listen, cors, limits: base.limits };
    runtime::block_on(async {
        let stop = interrupt::watch()?;
        let routing = Routing::start(&settings, load(&settings.registry)?)?;
        output::print(&format!("routing at {}\n", routing.url()))?;
        routing.run(&settings.registry, &stop).await
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A running routing service.
pub(crate) struct Routing {
    server: Server,
    app: Arc<App<Service>>,
    /// Listened to before anybody is told where it is: the signal would end the process otherwise.
    hangups: Signal,
}

impl Routing {
    /// Opens the database and listens, within a tokio runtime. What follows transfers begins with [`Routing::run`].
    pub(crate) fn start(settings: &RouteSettings, registry: Registry) -> anyhow::Result<Self> {
        let hangups = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
        let service = Service::open(registry, &settings.data, ::route::Config::default(), VERSION)?;
        let app = Arc::new(App::new(service, ::route::ENDPOINTS)?.with_cors(settings.cors.clone()));
        let limits =
            Limits { body: BODY, oversize: http::StatusCode::BAD_REQUEST, ..settings.limits.clone() };
        let at = settings.listen;
        let listener = TcpListener::bind(at).with_context(|| format!("cannot listen on {at} for routes"))?;
        let server = Server::start(listener, Arc::clone(&app), limits, default_workers())?;
        tracing::info!(url = %format_args!("http://{}", server.address()), "routing");
        Ok(Self { server, app, hangups })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// What answers.
    pub(crate) fn service(&self) -> &Service {
        self.app.state()
    }

    /// Follows transfers, asks the chains what holds, reads the registry again on SIGHUP; until `stop`.
    pub(crate) async fn run(self, registry: &Path, stop: &watch::Receiver<bool>) -> anyhow::Result<()> {
        let service = self.app.state();
        let mut hangups = self.hangups;
        let reloads = async {
            while hangups.recv().await.is_some() {
                reload(service, registry);
            }
        };
        let outcome = tokio::select! {
            outcome = service.tracker().run(interrupt::stopped(stop)) => outcome,
            () = service.refresh(interrupt::stopped(stop)) => Ok(()),
            () = reloads => Ok(()),
        };
        let server = self.server;
        // It waits for threads; if that were to fail, the process ends all the same.
        if let Err(error) = tokio::task::spawn_blocking(move || server.stop()).await {
            tracing::error!(%error, "stopping the server");
        }
        Ok(outcome?)
    }
}

fn reload(service: &Service, registry: &Path) {
    match service.reload(registry) {
        Ok(problems) => {
            tell(&problems);
            tracing::info!(hash = service.world().registry.hash(), "the registry was read again");
        }
        Err(error) => tracing::error!(%error, "the registry was not read again, the old one goes on"),
    }
}

/// Reads a registry, and tells what is wrong with it.
pub(crate) fn load(dir: &Path) -> anyhow::Result<Registry> {
    let Loaded { registry, problems } = ::registry::load(dir)?;
    tell(&problems);
    Ok(registry)
}

fn tell(problems: &[::registry::Problem]) {
    for problem in problems {
        tracing::warn!(%problem, "registry");
    }
}

fn check(dir: &Path, online: bool) -> anyhow::Result<ExitCode> {
    let Loaded { registry, mut problems } = ::registry::load(dir)?;
    problems.extend(::registry::check::check(&registry));
    let mut text = String::new();
    for problem in &problems {
        writeln!(text, "{problem}")?;
    }
    let mut wrong = problems.iter().any(|problem| problem.severity == ::registry::Severity::Error);
    if online {
        let nodes = ::route::nodes::Nodes::new(::route::Config::default().ask);
        let findings = runtime::block_on(async { Ok(::route::check::online(&nodes, &registry).await) })?;
        for finding in &findings {
            writeln!(text, "{}{finding}", if finding.unasked { "not told: " } else { "" })?;
        }
        wrong |= findings.iter().any(|finding| !finding.unasked);
    }
    let (chains, assets, channels) =
        (registry.chains().count(), registry.assets().count(), registry.channels().count());
    writeln!(text, "{chains} chains, {assets} assets, {channels} channels; hash {}", registry.hash())?;
    output::print(&text)?;
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
