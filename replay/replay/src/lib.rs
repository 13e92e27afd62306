//! A replay node, which serves a recorded chain over CometBFT RPC, REST and JSON-RPC, and the recorder of a live node.
//!
//! # Invariants
//!
//! - Every reply is the recorded text of a real node or follows exactly from it, unless a fault or a fork is set.
//! - A request without a recorded reply gets an error and is counted.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`recording`] | recording files: reader and writer |
//! | [`fork`] | a forged, internally consistent fork of a recorded chain |
//! | [`answers`] | the answer to a request, as a pure function |
//! | [`counters`] | counters of calls and of requests without a recorded reply |
//! | [`fault`] | fault injection: kind, probability, service |
//! | [`server`] | the servers, and control of a running node |
//! | [`mod@record`] | the recorder of a live node |
//!
//! ```no_run
//! # async fn play() -> Result<(), replay::Error> {
//! use std::sync::Arc;
//! use replay::{Addresses, Options, Recording, ReplayNode};
//!
//! let recording = Arc::new(Recording::open("recordings/evm-scenario".as_ref())?);
//! let options = Options { up_to: Some(100), ..Options::default() };
//! let node = ReplayNode::start(recording, Addresses::default(), options).await?;
//! // … an indexer follows node.comet_url(), node.rest_url(), node.json_rpc_url() …
//! node.show(101)?;
//! assert_eq!(node.missing().count, 0);
//! node.stop().await;
//! # Ok(())
//! # }
//! ```

mod edit;
mod error;
mod exchange_log;
mod pace;
mod respond;
mod seeded_rng;
mod state;
mod websocket;

pub mod answers;
pub mod counters;
pub mod eth_header;
pub mod fault;
pub mod fork;
pub mod header;
pub mod record;
pub mod recording;
pub mod server;

pub use answers::{Deviation, Deviations};
pub use counters::{Call, Missing};
pub use error::Error;
pub use fault::Fault;
pub use pace::Pace;
pub use record::{RecordOptions, Recorder, record};
pub use recording::Recording;
pub use server::{Addresses, Options, ReplayNode};
