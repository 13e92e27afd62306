//! Health check: the registry in use, its age and its size.

use schemars::JsonSchema;
use serde::Serialize;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema;

use super::json;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Get,
    path: "/health",
    tag: "App",
    summary: "Whether the service is up, and which registry it has.",
    params: &[],
    response: schema::of::<Health<'_>>(),
    handler: Handler::Sync(health),
    cache: MaxAge(0),
}];

/// State of the service.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "app.Health")]
struct Health<'a> {
    /// Always `OK`.
    status: &'static str,
    registry: RegistryState<'a>,
    /// Assets whose price came from the price feed.
    prices: usize,
}

/// The registry in use.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "app.RegistryState")]
struct RegistryState<'a> {
    /// Hash of its content.
    hash: &'a str,
    /// Seconds since it was read.
    age_seconds: u64,
    /// Whether the last attempt to read it again failed, so that an older one is in use.
    is_stale: bool,
    chains: usize,
    assets: usize,
    channels: usize,
    bridges: usize,
    /// Groups of tokens that LayerZero connects.
    ofts: usize,
}

fn health(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    let world = service.world();
    let registry = &*world.registry;
    let loaded = service.loaded();
    json(&Health {
        status: "OK",
        registry: RegistryState {
            hash: registry.hash(),
            age_seconds: loaded.at.elapsed().as_secs(),
            is_stale: loaded.has_failed,
            chains: registry.chains().count(),
            assets: registry.assets().count(),
            channels: registry.channels().count(),
            bridges: registry.bridges().count(),
            ofts: registry.ofts().count(),
        },
        prices: world.facts.prices.len(),
    })
}
