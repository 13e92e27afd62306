//! Clients for the services of a chain's node.
//!
//! A [`Node`] holds one client per service, each over several addresses: [`Comet`] (blocks and their results),
//! [`Rest`] (the SDK's queries), [`Evm`] (receipts, traces and calls) and [`Grpc`] (descriptors). Answers are
//! returned as the bytes that the node sent, without the envelope; the crate `chain` decodes them. [`TxSearchHit`] is a
//! transaction found by a search. [`OpinitExecutor`] is the client of a rollup's bridge executor.
//!
//! # Invariants
//!
//! * Every failure is an [`Error`] whose [`Kind`] decides whether a retry can help; a failure never becomes an empty
//!   answer.
//! * Every wait, body, queue and retry is bounded ([`Limits`]).

mod accounts;
mod bridge_state;
mod broadcast;
mod comet;
mod comet_rpc;
mod cosmos;
mod descriptors;
mod disclosure;
mod endpoint;
mod endpoint_state;
mod error;
mod evm;
mod evm_calls;
mod evm_lookups;
mod evm_receipts;
mod gateway;
mod grpc;
mod ibc_state;
mod in_flight;
mod json;
mod large_replies;
mod limits;
mod meter;
mod module_queries;
mod node;
mod observer;
mod opinit_executor;
mod origin;
mod outage;
mod pagination;
mod pool;
mod price_feed;
pub mod retry;
mod rpc;
mod search;
mod setup_error;
mod state_at;
mod status;
mod subscription;
mod transport;
mod tx_search_hit;
mod url;
mod validator_set;
mod validators;
mod verify_chain;
mod watch;
mod websocket;

pub use bridge_state::BridgeOutput;
pub use comet::Comet;
pub use cosmos::{NodeInfo, Rest};
pub use descriptors::Descriptors;
pub use endpoint_state::{EndpointState, EndpointStatus};
pub use error::{Error, Kind, RequestContext};
pub use evm::Evm;
pub use evm_calls::{BATCH, ContractCall};
pub use evm_receipts::{EvmBlock, ReceiptFailures};
pub use grpc::Grpc;
pub use ibc_state::{PacketPath, Receipt};
pub use limits::Limits;
pub use meter::{SECONDS_BY_METHOD, describe_metrics};
pub use module_queries::AccountsPage;
pub use node::{Endpoints, Node};
pub use observer::{Exchange, Observer};
pub use opinit_executor::{OpinitExecutor, Withdrawal};
pub use origin::{Origin, Reply};
pub use price_feed::PriceFeed;
pub use setup_error::SetupError;
pub use state_at::{Probe, StateAt};
pub use status::Status;
pub use tx_search_hit::{FoundEvent, TxSearchHit};
pub use url::{Url, UrlError, masked};
pub use validators::Validator;
