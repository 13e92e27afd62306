//! Health check: the registry in use, its age and its size.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

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
    /// Whether an older state than that on disk is in use: the last attempt to read it again failed, or a file of a public
    /// registry is broken and its last good version is in use.
    is_stale: bool,
    /// Files of public registries that were not taken as they are, at most 20.
    broken_files: Vec<BrokenFile<'a>>,
    chains: usize,
    assets: usize,
    channels: usize,
    bridges: usize,
    /// Groups of tokens that LayerZero connects.
    ofts: usize,
}

/// A file that does not parse, has a member of a wrong type, or is gone.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "app.BrokenFile")]
struct BrokenFile<'a> {
    /// Relative to its registry.
    name: &'a str,
    /// Seconds since its last good version was read, which is in use; null if there is none, so that the file is left out
    /// or used without what is wrong.
    age_seconds: Option<u64>,
}

/// Most files that are named.
const MOST_FILES: usize = 20;

fn health(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    let world = service.world();
    let registry = &*world.registry;
    let loaded = service.loaded();
    let broken = loaded.files.broken();
    let age = |read: SystemTime| read.elapsed().unwrap_or_default().as_secs();
    json(&Health {
        status: "OK",
        registry: RegistryState {
            hash: registry.hash(),
            age_seconds: loaded.at.elapsed().as_secs(),
            is_stale: loaded.has_failed || broken.iter().any(|file| file.last_good.is_some()),
            broken_files: broken
                .iter()
                .take(MOST_FILES)
                .map(|file| BrokenFile { name: &file.name, age_seconds: file.last_good.map(age) })
                .collect(),
            chains: registry.chains().count(),
            assets: registry.assets().count(),
            channels: registry.channels().count(),
            bridges: registry.bridges().count(),
            ofts: registry.ofts().count(),
        },
        prices: world.facts.prices.len(),
    })
}
