//! Evidence about transfers: what transactions, logs and messages show, and the state that follows. Pure.

pub(crate) mod asset_location;
pub(crate) mod continuation;
pub(crate) mod detect;
pub(crate) mod event;
pub mod hop;
pub mod hop_query;
pub(crate) mod known_acks;
pub(crate) mod layer_zero;
mod link;
mod other_bridges;
mod packet;
pub mod state;
pub(crate) mod swap;
pub mod transfer;
