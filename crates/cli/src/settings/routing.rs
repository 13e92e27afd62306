//! The settings of a routing service, parsed.

use std::net::SocketAddr;
use std::path::PathBuf;

use web::cors::Cors;
use web::limits::Limits;

/// Settings of a routing service.
#[derive(Clone, Debug)]
pub(crate) struct RouteSettings {
    /// Directory of the registry.
    pub(crate) registry: PathBuf,
    /// Directory of the database.
    pub(crate) data: PathBuf,
    /// Address of the HTTP server.
    pub(crate) listen: SocketAddr,
    /// Origins that may read responses.
    pub(crate) cors: Cors,
    /// Per-client and total limits of the server. The routing API sets the limit of request bodies itself.
    pub(crate) limits: Limits,
    /// Options of the transfer tracker.
    pub(crate) tracker: tracker::Options,
}
