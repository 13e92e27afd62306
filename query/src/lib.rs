//! cairn's indexer API: a snapshot of the store in, JSON out.
//!
//! An endpoint is a value ([`web::endpoint::Endpoint`]) in the list of its group; [`ENDPOINTS`] is all of them, and
//! routing, 404 and 405, and the OpenAPI document come from it. A handler takes one snapshot, says which array of
//! rows it shows ([`mod@array`]), and leaves the page to [`page`] and the records to `record` and `nft_record`.
//! Nothing here ever calls a node.

pub mod array;
pub mod cursor;
pub mod page;

mod api;
mod collection_search;
mod indexer;
mod nft_record;
mod params;
mod record;
mod swagger;
mod token_list;

pub use self::indexer::{Build, EmptyCursor, Indexer};
pub use self::swagger::document;

/// Every endpoint, by group.
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
    swagger::ENDPOINTS,
];
