//! What the pages need of a routing service, which may restart while they are served.

use std::net::IpAddr;

use futures_util::future::BoxFuture;
use http::Method;
use web::http_error::HttpError;
use web::reply::Reply;

/// A routing service, whichever process or restart runs it.
pub trait Routing: Send + Sync {
    /// Runs a request of the routing API for a client, if it is known. An error 503 while the service restarts.
    fn request<'a>(
        &'a self,
        method: Method,
        target: &'a str,
        body: &'a [u8],
        client: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Reply, HttpError>>;

    /// Symbol and decimal places of an asset, if the registry has it.
    fn unit(&self, chain: &str, denom: &str) -> Option<Unit>;
}

/// The display unit of an asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Short name of the asset.
    pub symbol: String,
    /// Decimal places: one unit is `10^decimals` base units.
    pub decimals: u8,
}
