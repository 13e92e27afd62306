//! Everything remote: clients for the node of a rollup.
//!
//! A [`Node`] holds one client per service: [`Comet`] (blocks and their results), [`Rest`] (the SDK's
//! queries), [`Evm`] (receipts, traces and calls), [`Grpc`] (descriptors), each over several addresses. They hand on the bytes that the node
//! sent, without the envelope; the crate `chain` reads them. Single transactions are found as [`FoundTx`]. Beside the
//! node stands the [`Executor`] of its bridge.
//!
//! Holds: every failure is an [`Error`] whose [`Kind`] says whether asking again can help; a failure is never
//! taken for an empty answer; every wait, body, queue and retry has a bound ([`Limits`]).

mod accounts;
mod body;
mod chains;
mod comet;
mod comet_rpc;
mod cosmos;
mod descriptors;
mod endpoint;
mod error;
mod evm;
mod evm_calls;
mod evm_lookups;
mod executor;
mod found;
mod gate;
mod gateway;
mod grpc;
mod heads;
mod health;
mod hedge;
mod judge;
mod limits;
mod member;
mod meter;
mod node;
mod observer;
mod opinions;
mod origin;
mod outage;
mod pages;
mod pool;
pub mod retry;
mod round;
mod rpc;
mod search;
mod setup_error;
mod silence;
mod state;
mod state_at;
mod status;
mod status_update;
mod transport;
mod trust;
mod url;
mod validator_set;
mod validators;
mod watch;
mod websocket;

pub use comet::Comet;
pub use cosmos::{NodeInfo, Rest};
pub use descriptors::Descriptors;
pub use error::{Error, Kind, Site};
pub use evm::Evm;
pub use evm_calls::{BATCH, ContractCall};
pub use executor::{Executor, Withdrawal};
pub use found::{FoundEvent, FoundTx};
pub use grpc::Grpc;
pub use heads::{EndpointState, Standing};
pub use limits::Limits;
pub use meter::describe_metrics;
pub use node::{Endpoints, Node};
pub use observer::{Exchange, Observer};
pub use origin::{Answer, Origin};
pub use setup_error::SetupError;
pub use state::AccountsPage;
pub use state_at::{Probe, StateAt};
pub use status::Status;
pub use url::{Url, UrlError};
pub use validators::Validator;
