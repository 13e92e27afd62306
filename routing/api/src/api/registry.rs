//! Endpoint for the registry in use.

use registry::facts::PairState;
use serde::Serialize;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::json;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Get,
    path: "/v2/info/registry",
    tag: "Info",
    summary: "Which registry is in use, and what the chains said against it.",
    params: &[],
    response: &REGISTRY,
    handler: Handler::Now(registry_info),
    cache: Freshness::LIST,
}];

static REGISTRY: Schema = Schema {
    name: "info.Registry",
    doc: "The registry in use.",
    fields: &[
        Field::new("hash", Kind::String, "Of its content."),
        Field::new("chains", Kind::Integer, "How many."),
        Field::new("assets", Kind::Integer, "How many."),
        Field::new("channels", Kind::Integer, "How many."),
        Field::new("bridges", Kind::Integer, "How many."),
        Field::new(
            "paused",
            Kind::Array(&Kind::String),
            "Channels, bridges and pairs of wrappers that are not to be used now, and why.",
        ),
    ],
};

fn registry_info(service: &Service, _: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        hash: &'a str,
        chains: usize,
        assets: usize,
        channels: usize,
        bridges: usize,
        paused: Vec<String>,
    }
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
    json(&Answer {
        hash: registry.hash(),
        chains: registry.chains().count(),
        assets: registry.assets().count(),
        channels: registry.channels().count(),
        bridges: registry.bridges().count(),
        paused: channels.chain(bridges).chain(pairs).collect(),
    })
}
