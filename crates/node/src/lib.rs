//! Everything remote: clients for the node of a rollup.
//!
//! A [`Node`] holds one client per service: [`Comet`] (blocks and their results), [`Rest`] (the SDK's
//! queries), [`Evm`] (receipts, traces and calls), [`Grpc`] (descriptors), each over several addresses. They hand on the bytes that the node
//! sent, without the envelope; the crate `chain` reads them. Single transactions are found as [`FoundTx`]. Beside the
//! node stands the [`Executor`] of its bridge.
//!
//! Holds: every failure is an [`Error`] whose [`Kind`] says whether asking again can help; a failure is never
//! taken for an empty answer; every wait, body, queue and retry has a bound ([`Limits`]).

mod body;
mod chains;
mod comet;
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
mod grpc;
mod heads;
mod health;
mod hedge;
mod judge;
mod limits;
mod member;
mod meter;
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
mod silence;
mod state;
mod state_at;
mod status;
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
pub use observer::{Exchange, Observer};
pub use origin::{Answer, Origin};
pub use state::AccountsPage;
pub use state_at::{Probe, StateAt};
pub use status::Status;
pub use url::{Url, UrlError};
pub use validators::Validator;

use crate::pool::Pool;

/// The clients of one chain. Cheap to call from many tasks at once; share it in an `Arc`.
pub struct Node {
    /// CometBFT RPC: always there.
    pub comet: Comet,
    /// Cosmos REST, if an address was given.
    pub rest: Option<Rest>,
    /// EVM JSON-RPC, if an address was given.
    pub evm: Option<Evm>,
    /// gRPC, if an address was given.
    pub grpc: Option<Grpc>,
}

/// Where a chain's services are: any number of addresses each, in order of preference.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// CometBFT RPC, at least one.
    pub comet: Vec<Url>,
    /// Cosmos REST.
    pub rest: Vec<Url>,
    /// EVM JSON-RPC.
    pub json_rpc: Vec<Url>,
    /// gRPC: scheme, host and port only.
    pub grpc: Vec<Url>,
}

impl Node {
    /// Clients for the given addresses. Connects to nothing yet.
    pub fn new(endpoints: Endpoints, limits: Limits) -> Result<Self, SetupError> {
        let Endpoints { comet, rest, json_rpc, grpc } = endpoints;
        let comet = Comet::new(comet, limits)?;
        let follow = |evm: Evm| evm.at_the_tip_of(comet.pool().tip().clone());
        let node = Self {
            rest: (!rest.is_empty()).then(|| Rest::new(rest, limits)).transpose()?,
            evm: (!json_rpc.is_empty()).then(|| Evm::new(json_rpc, limits).map(follow)).transpose()?,
            grpc: (!grpc.is_empty()).then(|| Grpc::new(grpc, limits)).transpose()?,
            comet,
        };
        node.pools().for_each(Pool::log_outages);
        Ok(node)
    }

    /// The same, with an observer of all answers but those by gRPC.
    pub fn observed(endpoints: Endpoints, limits: Limits, observer: &Observer) -> Result<Self, SetupError> {
        let node = Self::new(endpoints, limits)?;
        let (rest, evm) = (node.rest.as_ref().map(Rest::pool), node.evm.as_ref().map(Evm::pool));
        [Some(node.comet.pool()), rest, evm].into_iter().flatten().for_each(|pool| pool.observe(observer));
        Ok(node)
    }

    /// The highest height that an endpoint is known to have; 0 before any has told its own.
    pub fn tip(&self) -> u64 {
        self.comet.pool().tip().get()
    }
}

/// Why clients cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A service without addresses.
    #[error("no address for {service}; give at least one")]
    NoUrls {
        /// The service.
        service: &'static str,
    },
    /// A gRPC address that is more than scheme, host and port.
    #[error("grpc address `{url}`: {reason}")]
    GrpcAddress {
        /// The address without credentials and path.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An https address and nothing to check certificates with.
    #[error(
        "no root certificates on this system ({reason}), needed for https addresses; install the package \
         `ca-certificates` or set SSL_CERT_FILE"
    )]
    NoRoots {
        /// The system's words.
        reason: String,
    },
    /// The TLS library refuses its own settings.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// The library's words.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send(_: impl Send) {}

    /// Compiles or does not: a caller must be able to spawn every call.
    #[test]
    fn every_call_can_be_spawned_from_a_shared_node() {
        let endpoints =
            Endpoints { comet: vec!["http://127.0.0.1:1".parse().unwrap()], ..Endpoints::default() };
        let node = std::sync::Arc::new(Node::new(endpoints, Limits::default()).unwrap());
        is_send(std::sync::Arc::clone(&node));
        is_send((node.comet.block(1), node.comet.block_results(1), node.comet.verify_chain("c")));
        is_send((node.comet.abci_query("/", ""), node.descriptors()));
        is_send((node.comet.watch("c", std::time::Duration::ZERO), node.comet.status()));
        is_send((
            node.watch("c", std::time::Duration::ZERO),
            node.verify_chain("c"),
            node.comet.validators(1),
        ));
        let other = Origin::new("comet", "n".into(), 0);
        is_send((node.comet.block_from_other(1, &other), node.comet.results_from_other(1, &other)));
        is_send(node.evm.as_ref().map(|evm| evm.receipts_from_other(1, &other)));
        is_send(node.rest.as_ref().map(|rest| (rest.get("/", None), rest.validators(), rest.decode_tx(&[]))));
        is_send(node.evm.as_ref().map(|evm| (evm.block_number(), evm.block_receipts(1), evm.trace_block(1))));
        is_send(node.evm.as_ref().map(|evm| evm.call([0; 20], &[], None)));
        let latest = StateAt::default();
        is_send(node.evm.as_ref().map(|evm| evm.calls(&[], &latest)));
        is_send(node.rest.as_ref().map(|rest| (rest.accounts(None, None), rest.balances("a", None))));
        is_send(node.rest.as_ref().map(|rest| (rest.erc20_of_denom("a"), rest.denom_of_erc20([0; 20]))));
        is_send((node.comet.tx([0; 32]), node.comet.tx_search("", 1, 1, true), node.comet.block_time(1)));
        is_send(node.rest.as_ref().map(|rest| (rest.find_tx([0; 32]), rest.find_txs("", 1, 1, true))));
        is_send(node.rest.as_ref().map(|rest| rest.get_or_absent("/", None)));
        is_send(node.evm.as_ref().map(|evm| (evm.receipt([0; 32]), evm.logs("{}"), evm.balance([0; 20]))));
        is_send(node.evm.as_ref().map(|evm| (evm.chain_id(), evm.block_time(1), evm.finalized())));
        is_send(node.evm.as_ref().map(|evm| (evm.cosmos_hash([0; 32]), evm.eth_hashes([0; 32]))));
        let urls = vec!["http://127.0.0.1:1".parse().unwrap()];
        is_send(Executor::new(urls, Limits::default()).unwrap().withdrawal(1));
        is_send(retry::until(retry::Backoff::default(), "", || node.comet.block(1)));
    }
}
