//! Endpoint for the registry in use.

use registry::facts::PairState;
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
    path: "/v2/info/registry",
    tag: "Info",
    summary: "Which registry is in use, and the chains' objections.",
    params: &[],
    response: schema::of::<RegistryInfo<'_>>(),
    handler: Handler::Sync(registry_info),
    cache: MaxAge::LIST,
}];

/// The registry in use.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "info.Registry")]
struct RegistryInfo<'a> {
    /// Hash of its content.
    hash: &'a str,
    /// Number of chains.
    chains: usize,
    /// Number of assets.
    assets: usize,
    /// Number of channels.
    channels: usize,
    /// Number of bridges.
    bridges: usize,
    /// Channels, bridges and pairs of wrappers that are not to be used now, and why.
    paused: Vec<String>,
}

fn registry_info(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    let world = service.world();
    let registry = &*world.registry;
    let channels = registry.channels().filter_map(|(reference, channel)| {
        let end = &channel.a;
        let name = format!("{}/{} of {}", end.port, end.channel, registry[end.chain].id);
        world.facts.paused(registry, reference).map(|reason| format!("{name}: {reason}"))
    });
    let bridges = registry.bridges().filter_map(|(reference, bridge)| {
        world.facts.stopped(registry, reference).map(|reason| format!("bridge {}: {reason}", bridge.id))
    });
    let pairs = registry.wrapper_pairs().filter_map(|(_, pair)| {
        let local = &registry[pair.local];
        match world.facts.pair(registry, &pair) {
            PairState::Contradicted(reason) => {
                Some(format!("{} of {}: {reason}", local.denom, registry[local.chain].id))
            }
            PairState::Unknown | PairState::Confirmed => None,
        }
    });
    json(&RegistryInfo {
        hash: registry.hash(),
        chains: registry.chains().count(),
        assets: registry.assets().count(),
        channels: registry.channels().count(),
        bridges: registry.bridges().count(),
        paused: channels.chain(bridges).chain(pairs).collect(),
    })
}
