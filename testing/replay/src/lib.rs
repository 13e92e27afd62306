//! A node played from a recording, and the recorder that makes one from a live node.
//!
//! Must hold: what a replay node says was said by a real node, or follows exactly from what it said, unless a fault or
//! a fork was asked for; a question that nobody recorded is answered by a loud error and counted.
//!
//! | module | one job |
//! |---|---|
//! | [`recording`] | the files: read into memory as raw text, and written |
//! | [`fork`] | another history of a recorded chain, bound together as a real one |
//! | [`answers`] | request in, answer out: a pure function, no socket involved |
//! | [`counters`] | what was asked, and what was missing |
//! | [`fault`] | what goes wrong, how often, and for which requests |
//! | [`server`] | the servers, the height that is shown, the changes at run time |
//! | [`mod@record`] | asks a live node everything and writes the files |
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
