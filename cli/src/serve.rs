//! The JSON interface on a socket.

use std::net::TcpListener;
use std::sync::Arc;

use anyhow::Context as _;
use query::{Build, Indexer};
use store::Store;
use web::app::App;
use web::server::{Server, default_workers};

use crate::settings::Settings;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from.
pub(crate) const COMMIT: &str = env!("CAIRN_BUILD_COMMIT");

/// A running server.
pub(crate) struct Serving {
    server: Server,
    app: Arc<App<Indexer>>,
}

impl Serving {
    /// Serves the database in `store`, which must be of some chain already. `ready` says why `/readyz` refuses.
    pub(crate) fn start(
        settings: &Settings,
        store: Arc<dyn Store>,
        ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let build = Build { version: VERSION.to_owned(), commit: COMMIT.to_owned() };
        let indexer = Indexer::open(store, build, settings.empty_cursor)?;
        let app = App::new(indexer, query::ENDPOINTS)?.with_cors(settings.cors.clone()).with_ready(ready);
        let app = Arc::new(app);
        let at = settings.listen;
        let listener = TcpListener::bind(at)
            .with_context(|| format!("cannot listen on {at}; choose another address with --listen"))?;
        let server = Server::start(listener, Arc::clone(&app), settings.limits.clone(), default_workers())?;
        tracing::info!(url = %format_args!("http://{}", server.address()), "serving");
        Ok(Self { server, app })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// What it serves.
    pub(crate) fn app(&self) -> &App<Indexer> {
        &self.app
    }

    /// Stops it, letting requests in flight finish within [`web::limits::Limits::stop`].
    pub(crate) async fn stop(self) {
        // It waits for threads; if that were to fail, the process ends all the same.
        if let Err(error) = tokio::task::spawn_blocking(move || self.server.stop()).await {
            tracing::error!(%error, "stopping the server");
        }
    }
}
