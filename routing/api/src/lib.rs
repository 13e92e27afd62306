//! HTTP API of the routing service: quotes, messages to sign, and tracking.
//!
//! # Invariants
//!
//! * The service has no key. It broadcasts nothing of its own; with [`Config::submit`] it relays bytes that a client
//!   signed, unchanged.
//! * A response comes from one snapshot of the registry and the chain facts, so the same request gives the same
//!   response.
//! * A request waits for other machines only if its response contains their data (balances, LayerZero quotes), and
//!   never longer than clients wait.
//!
//! The interface is that of Skip's API, as its clients use it; the crates below make the decisions.
//!
//! | module | one job |
//! |---|---|
//! | [`service`] | state that the endpoints share |
//! | [`config`] | operator settings |
//! | [`refresh`] | queries of current chain state |
//! | [`check`] | comparison of a registry with the chains, for `cairn route check` |
//! | `lists` | long lists, serialised and compressed once |
//! | `heavy` | the limit of requests that need much processor time |
//! | `quotes` | LayerZero quotes |
//! | `prices` | prices from a feed |
//! | `local_index` | balances of a chain that the same process indexes |
//! | `body` | parsing of request bodies |
//! | [`meter`] | metrics |
//! | `errors` | text and code of every error response |
//! | `api` | one file for each group of endpoints |

pub mod check;
pub mod config;
pub mod meter;
pub mod refresh;
pub mod service;

mod api;
mod body;
mod errors;
mod heavy;
mod lists;
mod local_index;
mod pools;
mod prices;
mod quotes;
mod swagger;

pub use self::api::submit::SUBMIT;
pub use self::api::tx::TRACK;
pub use self::config::Config;
pub use self::local_index::LocalIndex;
pub use self::prices::PriceSource;
pub use self::service::{Service, World};
pub use self::swagger::{document, swagger_document};

/// Every endpoint, by group.
pub const ENDPOINTS: &[&[web::endpoint::Endpoint<Service>]] = &[
    api::chains::ENDPOINTS,
    api::assets::ENDPOINTS,
    api::balances::ENDPOINTS,
    api::portfolio::ENDPOINTS,
    api::route::ENDPOINTS,
    api::op_hook::ENDPOINTS,
    api::msgs::ENDPOINTS,
    api::tx::ENDPOINTS,
    api::submit::ENDPOINTS,
    api::explore::ENDPOINTS,
    api::registry::ENDPOINTS,
    api::nft::ENDPOINTS,
    api::health::ENDPOINTS,
    swagger::ENDPOINTS,
    swagger::PAGE,
];
