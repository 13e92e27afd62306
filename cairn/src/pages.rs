//! Inputs of the explorer's pages: the routing service that runs now, and the height of the chain.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use explorer::Head;
use explorer::routing::{Routing, Unit};
use futures_util::future::BoxFuture;
use http::Method;
use routing_api::Service;
use web::app::App;
use web::http_error::HttpError;
use web::reply::Reply;

use crate::local_index::CurrentIndex;

/// Inputs of the pages of an index.
#[derive(Clone)]
pub(crate) struct Pages {
    /// Gets the index that the pages show.
    pub(crate) index: CurrentIndex,
    /// If a routing service runs in this process.
    pub(crate) routing: Option<CurrentRouting>,
    pub(crate) head: Head,
}

/// The routing service that runs now: it may be restarted while pages are served. Weak, because its app may own the
/// pages that hold this.
#[derive(Clone, Default)]
pub(crate) struct CurrentRouting(Arc<RwLock<Weak<App<Service>>>>);

impl CurrentRouting {
    /// Replaces the service.
    pub(crate) fn set(&self, app: &Arc<App<Service>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(app);
    }

    fn app(&self) -> Option<Arc<App<Service>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl Routing for CurrentRouting {
    fn request<'a>(
        &'a self,
        method: Method,
        target: &'a str,
        body: &'a [u8],
        client: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Reply, HttpError>> {
        Box::pin(async move {
            let restarting = || HttpError::unavailable("the routing service is restarting");
            self.app().ok_or_else(restarting)?.read_later(method, target, body, client).await
        })
    }

    fn unit(&self, chain: &str, denom: &str) -> Option<Unit> {
        let registry = self.app()?.state().world().registry;
        let asset = &registry[registry.asset(registry.chain(chain)?, denom)?];
        Some(Unit { symbol: asset.symbol.clone(), decimals: asset.decimals })
    }
}
