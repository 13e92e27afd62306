//! The API servers of the indexer: JSON over HTTP and, on addresses of their own, gRPC, CometBFT's searches and Ethereum's JSON-RPC.
//!
//! # Invariants
//! * It listens from the start of the process.
//! * Until there is a database, every request but `/healthz` gets 503 with the reason.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context as _;
use comet_rpc::CometRpc;
use etherscan::{Etherscan, Verified};
use evm_rpc::EvmRpc;
use explorer::Inputs;
use futures_util::future::OptionFuture;
use query::{Build, Indexer};
use store::Store;
use web::app::App;
use web::serve::server::{Server, default_workers};

use crate::contracts::Known;
use crate::pages::Pages;
use crate::settings::Settings;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from.
pub(crate) const COMMIT: &str = env!("CAIRN_BUILD_COMMIT");

/// The readiness check; its error is the reason.
pub(crate) type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What a ready process lacks.
pub(crate) type Remark = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The readiness of a process.
#[derive(Clone)]
pub(crate) struct Probes {
    pub(crate) ready: Ready,
    pub(crate) remark: Remark,
}

impl Probes {
    /// A process that lacks nothing when it is ready.
    pub(crate) fn new(ready: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { ready: Arc::new(ready), remark: Arc::new(|| None) }
    }
}

/// A running server.
pub(crate) struct Serving {
    /// Servers use duplicates of the listener, so that one replaces another without a gap.
    listener: TcpListener,
    probes: Probes,
    /// Inputs of the explorer's pages.
    pages: Pages,
    server: Server,
    grpc: Option<Server>,
    comet: Option<Server>,
    evm: Option<Server>,
    /// Empty until there is a database.
    index: grpc::Index,
}

impl Serving {
    /// Serves the database in `store`; without one, answers 503 with the reason until [`Serving::open`]. `pages`
    /// has the inputs of the explorer.
    pub(crate) fn start(
        settings: &Settings,
        store: Option<Arc<dyn Store>>,
        probes: Probes,
        pages: Pages,
    ) -> anyhow::Result<Self> {
        let listener = listen(settings.listen, "--listen")?;
        let index = grpc::Index::default();
        let server = if let Some(store) = store {
            let server = serve(settings, store, &listener, &probes, &index, pages.clone())?;
            tracing::info!(url = url_of(&server), "serving");
            server
        } else {
            let reason = Arc::clone(&probes.ready);
            let app = App::starting(move || reason())?.with_cors(settings.cors.clone());
            let server = Server::start(listener.try_clone()?, Arc::new(app), settings.limits(), 1)?;
            tracing::info!(url = url_of(&server), "listening, there is no database yet");
            server
        };
        let grpc =
            settings.grpc_listen.map(|at| serve_grpc(settings, at, &probes.ready, &index)).transpose()?;
        let comet =
            settings.comet_listen.map(|at| serve_comet(settings, at, &probes.ready, &index)).transpose()?;
        let evm = settings
            .evm_listen
            .map(|at| serve_evm(settings, at, &probes.ready, &index, &pages))
            .transpose()?;
        Ok(Self { listener, probes, pages, server, grpc, comet, evm, index })
    }

    /// Serves the database in `store` from now on, if it does not already.
    pub(crate) async fn open(&mut self, settings: &Settings, store: Arc<dyn Store>) -> anyhow::Result<()> {
        if self.index.get().is_some() {
            return Ok(());
        }
        let server = serve(settings, store, &self.listener, &self.probes, &self.index, self.pages.clone())?;
        let waiting = std::mem::replace(&mut self.server, server);
        // Until the old server has ended, it may accept connections.
        tokio::task::spawn_blocking(move || waiting.stop()).await?;
        tracing::info!(url = self.url(), "serving");
        Ok(())
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        url_of(&self.server)
    }

    /// The API, once there is a database.
    pub(crate) fn app(&self) -> Option<&App<Indexer>> {
        self.index.get().map(Arc::as_ref)
    }

    /// See [`stop`].
    pub(crate) async fn stop(self) {
        let [grpc, comet, evm] =
            [self.grpc, self.comet, self.evm].map(|server| OptionFuture::from(server.map(stop)));
        tokio::join!(stop(self.server), grpc, comet, evm);
    }
}

/// The URL of a server.
pub(crate) fn url_of(server: &Server) -> String {
    format!("http://{}", server.address())
}

/// Stops a server, letting requests in flight finish within [`web::limits::Limits::stop`].
pub(crate) async fn stop(server: Server) {
    // Stopping blocks on threads; on failure the process ends all the same.
    if let Err(error) = tokio::task::spawn_blocking(move || server.stop()).await {
        tracing::error!(%error, "stopping the server");
    }
}

/// Listens on `at`, which `flag` sets.
pub(crate) fn listen(at: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(at)
        .with_context(|| format!("cannot listen on {at}; choose another address with {flag}"))
}

/// The interface of the database in `store`, whose clients see paths with the prefix `base`.
pub(crate) fn app(
    settings: &Settings,
    store: Arc<dyn Store>,
    probes: &Probes,
    pages: Pages,
    base: String,
) -> anyhow::Result<Arc<App<Indexer>>> {
    let build = Build { version: VERSION.to_owned(), commit: COMMIT.to_owned() };
    let indexer = Indexer::open(store, build, settings.empty_cursor)?;
    let page_bytes = usize::try_from(settings.page_bytes.as_u64()).unwrap_or(usize::MAX);
    let indexer = indexer.with_page_bytes(page_bytes);
    let Probes { ready, remark } = probes.clone();
    let app = App::new(indexer, query::WITH_NODE_PATHS)?.with_cors(settings.cors.clone());
    let app = app.with_missing(query::unserved);
    let app = app.with_ready(move || ready()).with_remark(move || remark());
    if !settings.explorer {
        return Ok(Arc::new(app));
    }
    let routing = pages.routing.map(|routing| Arc::new(routing) as _);
    let contracts = settings.contracts()?;
    let contracts = Arc::new(Known { contracts, forward: settings.evm_forward()? });
    let inputs = Inputs {
        routing,
        head: pages.head,
        contracts: Some(contracts),
        base,
        media: settings.nft_media.clone(),
    };
    Ok(explorer::mount(app, inputs)?)
}

fn serve(
    settings: &Settings,
    store: Arc<dyn Store>,
    listener: &TcpListener,
    probes: &Probes,
    index: &grpc::Index,
    pages: Pages,
) -> anyhow::Result<Server> {
    let current = pages.index.clone();
    let app = app(settings, store, probes, pages, String::new())?;
    let server =
        Server::start(listener.try_clone()?, Arc::clone(&app), settings.limits(), default_workers())?;
    current.set(&app);
    // The index is opened once.
    drop(index.set(app));
    Ok(server)
}

fn serve_grpc(
    settings: &Settings,
    at: SocketAddr,
    ready: &Ready,
    index: &grpc::Index,
) -> anyhow::Result<Server> {
    let (listener, ready) = (listen(at, "--grpc-listen")?, Arc::clone(ready));
    let (index, limits) = (Arc::clone(index), settings.limits());
    let server = grpc::start(listener, index, move || ready(), limits, default_workers())?;
    tracing::info!(url = url_of(&server), "serving gRPC");
    Ok(server)
}

fn serve_comet(
    settings: &Settings,
    at: SocketAddr,
    ready: &Ready,
    index: &comet_rpc::Index,
) -> anyhow::Result<Server> {
    let rpc = CometRpc::new(Arc::clone(index), Arc::clone(ready));
    let app = rpc.app()?.with_cors(settings.cors.clone());
    let limits = CometRpc::limits(settings.limits());
    let server = Server::start(listen(at, "--comet-listen")?, Arc::new(app), limits, default_workers())?;
    tracing::info!(url = url_of(&server), "serving CometBFT's searches");
    Ok(server)
}

fn serve_evm(
    settings: &Settings,
    at: SocketAddr,
    ready: &Ready,
    index: &evm_rpc::Index,
    pages: &Pages,
) -> anyhow::Result<Server> {
    let listener = listen(at, "--evm-listen")?;
    let rpc = EvmRpc::new(Arc::clone(index), Arc::clone(ready), settings.evm_replies, VERSION);
    let rpc = rpc.with_tip(Arc::clone(&pages.head)).with_forward(settings.evm_forward()?);
    let rpc = rpc
        .with_filters(settings.evm_filters)
        .with_frames(settings.evm_frames)
        .with_otterscan(settings.otterscan()?);
    let contracts = settings.contracts()?;
    let verified = settings.sourcify.clone().map(Verified::new).transpose()?;
    let etherscan = Etherscan::new(rpc.clone()).with_contracts(contracts).with_verified(verified);
    let etherscan = etherscan.app()?.with_cors(settings.cors.clone());
    let app = rpc.app()?.with_cors(settings.cors.clone()).with_fallback(Arc::new(etherscan));
    let server =
        Server::start(listener, Arc::new(app), EvmRpc::limits(settings.limits()), default_workers())?;
    tracing::info!(url = url_of(&server), "serving Ethereum's JSON-RPC");
    Ok(server)
}
