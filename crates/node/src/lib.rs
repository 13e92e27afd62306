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

mod comet;
mod descriptors;
mod disclosure;
mod error;
mod evm;
mod grpc;
mod json;
mod limits;
mod meter;
mod node;
mod observer;
mod pool;
mod price_feed;
mod rest;
pub mod retry;
mod rpc;
mod search;
mod setup_error;
mod sourcify;
mod state_at;
mod tx_search_hit;
mod url;
mod verify_chain;

pub use comet::Comet;
pub use comet::status::Status;
pub use descriptors::Descriptors;
pub use error::{Error, Kind, RequestContext};
pub use evm::Evm;
pub use evm::calls::{BATCH, ContractCall};
pub use evm::forward::RawReply;
pub use evm::receipts::{EvmBlock, ReceiptFailures};
pub use grpc::Grpc;
pub use limits::Limits;
pub use meter::{SECONDS_BY_METHOD, describe_metrics};
pub use node::{Endpoints, Node};
pub use observer::{Exchange, Observer};
pub use pool::endpoint_state::{EndpointState, EndpointStatus};
pub use pool::origin::{Origin, Reply};
pub use price_feed::PriceFeed;
pub use rest::bridge_state::{BridgeConfig, BridgeOutput};
pub use rest::ibc_state::{ChannelState, Counterparty, PacketPath, Receipt};
pub use rest::module_queries::AccountsPage;
pub use rest::move_views::MoveView;
pub use rest::opinit_executor::{OpinitExecutor, Withdrawal};
pub use rest::validators::Validator;
pub use rest::{NodeInfo, Rest};
pub use setup_error::SetupError;
pub use sourcify::Sourcify;
pub use state_at::{Probe, StateAt};
pub use tx_search_hit::{FoundEvent, TxSearchHit};
pub use url::{Url, UrlError, masked};
