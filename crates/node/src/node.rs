//! The clients of one chain together.

use crate::comet::Comet;
use crate::evm::Evm;
use crate::grpc::Grpc;
use crate::limits::Limits;
use crate::observer::Observer;
use crate::pool::Pool;
use crate::pool::endpoint_state::EndpointState;
use crate::pool::origin::Origin;
use crate::rest::Rest;
use crate::setup_error::SetupError;
use crate::url::Url;

/// The clients of one chain. Cheap to call from many tasks at once; share it in an `Arc`.
pub struct Node {
    /// CometBFT RPC: always present.
    pub comet: Comet,
    /// Cosmos REST, if an address was given.
    pub rest: Option<Rest>,
    /// EVM JSON-RPC, if an address was given.
    pub evm: Option<Evm>,
    /// gRPC, if an address was given.
    pub grpc: Option<Grpc>,
}

/// Addresses of a chain's services: any number each, in order of preference.
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
    /// Clients for the given addresses. Does not connect yet.
    pub fn new(endpoints: Endpoints, limits: Limits) -> Result<Self, SetupError> {
        let Endpoints { comet, rest, json_rpc, grpc } = endpoints;
        let mut node = Self {
            comet: Comet::new(comet, limits)?,
            rest: (!rest.is_empty()).then(|| Rest::new(rest, limits)).transpose()?,
            evm: (!json_rpc.is_empty()).then(|| Evm::new(json_rpc, limits)).transpose()?,
            grpc: (!grpc.is_empty()).then(|| Grpc::new(grpc, limits)).transpose()?,
        };
        node.comet.pool.log_outages();
        node.rest.iter_mut().for_each(|rest| rest.pool.log_outages());
        node.evm.iter_mut().for_each(|evm| evm.pool.log_outages());
        Ok(node)
    }

    /// As [`Node::new`], with an observer of all replies except those over gRPC.
    pub fn observed(endpoints: Endpoints, limits: Limits, observer: &Observer) -> Result<Self, SetupError> {
        let node = Self::new(endpoints, limits)?;
        node.pools().for_each(|pool| pool.observe(observer));
        Ok(node)
    }

    /// The pools of all services but gRPC.
    pub(crate) fn pools(&self) -> impl Iterator<Item = &Pool> {
        let (rest, evm) = (self.rest.as_ref().map(|rest| &rest.pool), self.evm.as_ref().map(|evm| &evm.pool));
        std::iter::once(&self.comet.pool).chain(rest).chain(evm)
    }

    /// Records a provably false reply of an endpoint of any service; `reason` is the proof. As [`Comet::distrust`].
    pub fn distrust(&self, origin: &Origin, reason: &str) {
        self.pools().for_each(|pool| pool.distrust(origin, reason));
    }

    /// Current states of all CometBFT, REST and EVM endpoints.
    pub fn endpoints(&self) -> Vec<EndpointState> {
        self.pools().flat_map(|pool| pool.states().to_vec()).collect()
    }

    /// The first service whose endpoints are all down, with its last failure in words for strangers.
    pub fn outage(&self) -> Option<String> {
        self.pools().find_map(|pool| {
            let states = pool.states();
            let all_down = states.iter().all(|endpoint| endpoint.down_since.is_some());
            let last = states.iter().find_map(|endpoint| endpoint.last_outline).filter(|_| all_down);
            last.map(|outline| format!("{}: {outline}", pool.service()))
        })
    }

    /// Highest height of any trusted endpoint; 0 before one has reported its own.
    pub fn tip(&self) -> u64 {
        self.comet.pool.tip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::opinit_executor::OpinitExecutor;
    use crate::retry;
    use crate::state_at::StateAt;

    fn is_send(_: impl Send) {}

    /// A compile-time check: a caller must be able to spawn every call.
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
        is_send(OpinitExecutor::new(urls, Limits::default()).unwrap().withdrawal(1));
        is_send(retry::until(retry::Backoff::default(), "", || node.comet.block(1)));
    }
}
