//! The indexer API: read-only HTTP handlers over snapshots of the store.
//!
//! An endpoint is a value ([`web::endpoint::Endpoint`]) in the list of its group. [`ENDPOINTS`] contains all of them;
//! routing, the errors 404 and 405, and the OpenAPI document are derived from it. A handler takes one snapshot and
//! selects an array of rows ([`mod@array`]); [`page`] paginates it, and `record` and `nft_record` write the JSON
//! records. A stream (`stream`) sends the new rows of an array as events.
//!
//! # Invariants
//!
//! * A request reads exactly one snapshot; a stream, one for each page.
//! * No handler calls a node.

pub mod activity;
pub mod array;
pub mod comet;
pub mod cursor;
pub mod evm;
pub mod page;

mod api;
mod bridge_record;
mod collection_search;
mod csv;
mod filtered_page;
mod free_json;
mod indexer;
mod movement_filter;
mod movement_params;
mod msg_sets;
pub mod names;
mod nft_record;
mod node_rest;
mod node_text;
mod packet_record;
mod page_writer;
mod params;
mod raw_tx;
mod record;
pub mod signed_tx;
mod stream;
mod swagger;
mod token_list;
mod token_record;
mod token_types;
mod transfer_record;
mod tx_parts;
mod tx_search;

pub use self::indexer::{Build, EmptyCursor, Indexer};
pub use self::node_rest::unserved;
pub use self::stream::SlowReader;
pub use self::swagger::document;

/// Registers the descriptions of the metrics.
pub fn describe() {
    stream::meter::describe();
    evm::describe();
}

/// The records and responses of the API, generated from `proto/cairn/index/v1/*.proto`: messages of gRPC, and with serde the
/// JSON.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated")]
#[allow(rustdoc::all, reason = "comments of the interface")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/cairn.index.v1.rs"));
}

/// Every endpoint of the interface, by group.
pub const ENDPOINTS: &[&[web::endpoint::Endpoint<Indexer>]] = &[
    api::status::ENDPOINTS,
    api::block::ENDPOINTS,
    api::tx::ENDPOINTS,
    api::evm_tx::ENDPOINTS,
    api::internal_tx::ENDPOINTS,
    api::collection::ENDPOINTS,
    api::token::ENDPOINTS,
    api::nft_tx::ENDPOINTS,
    api::rich_list::ENDPOINTS,
    api::ledger::ENDPOINTS,
    api::balance::ENDPOINTS,
    api::balance_history::ENDPOINTS,
    api::holders::ENDPOINTS,
    api::ledger_token::ENDPOINTS,
    api::ibc::ENDPOINTS,
    api::bridge::ENDPOINTS,
    api::stream::ENDPOINTS,
    swagger::ENDPOINTS,
    swagger::PAGE,
];

/// The endpoints of the interface, and before them the paths of a node that are served too.
pub const WITH_NODE_PATHS: &[&[web::endpoint::Endpoint<Indexer>]] = &{
    let mut groups = [node_rest::ENDPOINTS; ENDPOINTS.len() + 2];
    groups[1] = node_rest::OPHOST;
    let mut group = 0;
    while group < ENDPOINTS.len() {
        groups[group + 2] = ENDPOINTS[group];
        group += 1;
    }
    groups
};
