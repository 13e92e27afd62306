//! Fingerprint: content hash of a registry.
//!
//! # Invariants
//!
//! * The same parts have the same fingerprint, regardless of their files; any different value changes it.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::model::{Asset, Bridge, Chain, Channel, Oft, Venue};
use crate::snapshot::Registry;

#[derive(Serialize)]
struct Content<'a> {
    chains: &'a [Chain],
    assets: &'a [Asset],
    paths: &'a [String],
    channels: &'a [Channel],
    bridges: &'a [Bridge],
    ofts: &'a [Oft],
    venues: &'a [Venue],
    bridge_logos: BTreeMap<&'static str, &'a str>,
}

/// SHA-256 of all parts, in lower-case hex.
pub(crate) fn sha256(registry: &Registry) -> String {
    let content = Content {
        chains: &registry.chains,
        assets: &registry.assets,
        paths: &registry.paths,
        channels: &registry.channels,
        bridges: &registry.bridges,
        ofts: &registry.ofts,
        venues: &registry.venues,
        bridge_logos: registry.bridge_logos.iter().map(|(kind, logo)| (kind.id(), logo.as_str())).collect(),
    };
    #[expect(
        clippy::expect_used,
        reason = "texts, numbers, lists and maps with texts as keys have a JSON form"
    )]
    let bytes = serde_json::to_vec(&content).expect("has a JSON form");
    hex::encode(Sha256::digest(bytes))
}
