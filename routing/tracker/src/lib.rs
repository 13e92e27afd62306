//! Follows registered transfers over the nodes of their chains, from the transaction that began them to their end.
//!
//! A transaction is registered with [`Tracker::track`] and then looked at whenever it is due ([`Tracker::poll_due`],
//! [`Tracker::run`]); [`Tracker::status`] gives the answer of `GET /v2/tx/status`, made ready at the last look. Only what
//! was never registered, or is deleted ([`Options::retention`], [`Options::unseen_kept`]), has no answer. From the moment of its registration a transaction has the state
//! `STATE_SUBMITTED`, since both real clients fail on anything else; if no node has seen it within the grace time
//! ([`Options::submitted_grace`]) it becomes `STATE_ABANDONED`.
//!
//! Must hold: a state is a function of the evidence that was found on chains ([`hop`]); evidence only grows, in whatever
//! order it is found ([`state`]); what has ended never changes ([`transfer`]).
//!
//! | module | one job |
//! |---|---|
//! | [`hop`] | what is known of one step of a transfer |
//! | [`state`] | what a piece of evidence adds to it |
//! | [`transfer`] | what steps mean together |
//! | [`record`] | a registered transaction, and when it is looked at next |
//! | [`question`] | what can be asked about a step |
//! | [`mod@status`] | the answer |
//! | `ask`, `search`, `nodes` | what is asked of nodes, and what their answers say |
//! | `start`, `event`, `layer_zero` | what transactions say |
//! | `release` | which tokens are where |
//! | `look` | one look |
//! | [`queue`], `poll` | what is due, by chain; all looks, and deleting what is over |
//! | `limiter`, `breaker` | how much a chain is asked at once; when it is not asked |
//! | `unseen` | how many hashes that no node has seen are registered |
//! | `tracker`, `tables`, `migrate` | registering and storing; what is on disk; databases of the first format |
//!
//! # When a transfer is in error
//!
//! `STATE_PENDING_ERROR` is told only when success is impossible, because a wallet takes it for the end: an error
//! acknowledgement was written, or the receiving chain is past a packet's timeout, has not received it, and nobody will
//! send it again. A packet in that second state stays `TRANSFER_PENDING` with no error of its own until its timeout is
//! proved to the sending chain; nobody may ever do that, so it may end as `STATE_ABANDONED`.

mod ask;
mod breaker;
mod error;
mod event;
pub mod hop;
mod layer_zero;
mod limiter;
mod look;
mod migrate;
mod nodes;
pub mod options;
mod poll;
pub mod question;
pub mod queue;
pub mod record;
mod release;
mod search;
mod start;
pub mod state;
pub mod status;
mod tables;
mod tracker;
pub mod transfer;
mod unseen;

pub use error::{BadHash, Error, Refused, StatusError};
pub use options::Options;
pub use poll::Polled;
pub use start::starts;
pub use tracker::{Tracked, Tracker};
pub use unseen::Limit;
