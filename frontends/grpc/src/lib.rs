//! The indexer API over gRPC: each RPC runs the handler of its JSON endpoint in this process.
//!
//! `proto/cairn/index/v1/*.proto` is the source of messages, service, client and reflection. An RPC builds the target of
//! the JSON API, [`web::app::App::read`] answers it, and serde reads the JSON into the message: parameters, cursors,
//! limits and errors have one implementation.
//!
//! # Invariants
//! * An RPC reads nothing but its handler's response.
//! * Connections, requests, rates and times have the bounds of [`web::limits::Limits`]; messages have those of
//!   [`MAX_RESPONSE`] and [`web::limits::Limits::body`].

mod index_service;
pub mod meter;
mod methods;
mod server;
mod status;
mod target;
mod watch;

pub use self::index_service::{Index, MAX_RESPONSE};
pub use self::server::start;

/// The messages of [`query::v1`], the service and its client, generated from `proto/cairn/index/v1/*.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated")]
pub mod v1 {
    pub use query::v1::*;

    tonic::include_proto!("cairn.index.v1");
}

/// The `FileDescriptorSet` of the service.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.binpb"));
