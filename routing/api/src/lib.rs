//! The routing service: quotes, messages to sign, and tracking, over HTTP.
//!
//! Holds: it has no key and broadcasts nothing; an answer is made from one snapshot of the registry and of what the chains
//! said last, so that the same request gives the same answer; a request waits for other machines only where its answer
//! is theirs (balances, what LayerZero asks for), and never longer than the clients do. The interface is that of
//! `router-api.md`; what is decided and how, of the crates below.
//!
//! | module | one job |
//! |---|---|
//! | [`service`] | what the endpoints share |
//! | [`config`] | what an operator can set |
//! | [`nodes`] | clients of every chain's nodes |
//! | [`refresh`] | asks the chains what holds at the moment |
//! | [`check`] | compares a registry with the chains, for `cairn route check` |
//! | `quotes` | asks LayerZero's contracts what they want |
//! | `body` | members of a request's body, read or refused |
//! | `deny` | every refusal's text and code |
//! | `api` | one file for each group of endpoints |

pub mod check;
pub mod config;
pub mod nodes;
pub mod refresh;
pub mod service;

mod api;
mod body;
mod deny;
mod quotes;
mod swagger;

pub use self::config::Config;
pub use self::service::{Service, World};
pub use self::swagger::document;

/// Every endpoint, by group.
pub const ENDPOINTS: &[&[web::endpoint::Endpoint<Service>]] = &[
    api::chains::ENDPOINTS,
    api::assets::ENDPOINTS,
    api::balances::ENDPOINTS,
    api::route::ENDPOINTS,
    api::op_hook::ENDPOINTS,
    api::msgs::ENDPOINTS,
    api::tx::ENDPOINTS,
    api::explore::ENDPOINTS,
    api::registry::ENDPOINTS,
    api::unserved::ENDPOINTS,
    swagger::ENDPOINTS,
];
