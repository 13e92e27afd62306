//! Node clients by chain: created on first use and again when the addresses change.
//!
//! # Invariants
//!
//! * There is at most one set of clients, and so one connection pool, per chain and service.
//! * An invalid address is logged once and skipped.
//! * A node of another chain, which any typo in a registry names, is not queried: its state would be taken for evidence.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node::{Comet, Evm, Limits, OpinitExecutor, Rest, SetupError, Url};
use registry::{Chain, ChainKind, Endpoints};

use crate::chains::executor_withdrawals::ExecutorWithdrawals;

/// The clients of all chains that were queried so far.
pub struct ChainClients {
    limits: Limits,
    clients: Mutex<HashMap<String, (Endpoints, Arc<Clients>)>>,
}

/// The clients of one chain.
pub struct Clients {
    chain: String,
    pub(crate) comet: Option<Comet>,
    pub(crate) rest: Option<Rest>,
    pub(crate) evm: Option<Evm>,
    /// Of the rollup's bridge. What one at another address reported does not count.
    pub(crate) executor: Option<ExecutorWithdrawals>,
    /// When the nodes were last asked for their chain, in nanoseconds.
    checked: tokio::sync::Mutex<Option<i64>>,
}

/// Nanoseconds between two checks of the nodes' chain, and after a check that a service did not answer.
const CHECK: i64 = 600_000_000_000;
const CHECK_AGAIN: i64 = 60_000_000_000;

/// The registry has no usable address of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chain `{chain}` has no {service} address in the registry")]
pub struct NoAddress {
    /// The chain id.
    pub chain: String,
    /// For example `rest`.
    pub service: &'static str,
}

impl ChainClients {
    /// Clients whose queries take at most `timeout` per node.
    pub fn new(timeout: Duration) -> Self {
        const MIB: usize = 1 << 20;
        // A page of transactions with all their events is a few MiB; whole blocks are never fetched.
        let limits = Limits {
            connect: timeout,
            timeout,
            trace_timeout: timeout,
            rate_limit_wait: timeout,
            body: 32 * MIB,
            in_flight: 32,
            bytes_in_flight: 64 * MIB,
        };
        Self { limits, clients: Mutex::default() }
    }

    /// The clients of a chain.
    pub fn of(&self, chain: &Chain) -> Arc<Clients> {
        self.at(&chain.id, chain.kind, &chain.endpoints)
    }

    /// The clients of a chain with these addresses.
    pub(crate) fn at(&self, chain: &str, kind: ChainKind, addresses: &Endpoints) -> Arc<Clients> {
        // The map is consistent after every single step.
        let mut all = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((endpoints, clients)) = all.get(chain)
            && endpoints == addresses
        {
            return Arc::clone(clients);
        }
        let clients = Arc::new(self.connect(chain, kind, addresses));
        all.insert(chain.to_owned(), (addresses.clone(), Arc::clone(&clients)));
        clients
    }

    fn connect(&self, chain: &str, kind: ChainKind, addresses: &Endpoints) -> Clients {
        let Endpoints { rpc, rest, json_rpc, executor, .. } = addresses;
        // An EVM chain has only JSON-RPC, so its `rpc` addresses are JSON-RPC too.
        let (rpc, json_rpc) = match kind {
            ChainKind::Cosmos => (&rpc[..], json_rpc),
            ChainKind::Evm if json_rpc.is_empty() => (&[][..], rpc),
            ChainKind::Evm => (&[][..], json_rpc),
        };
        let evm = self.client(chain, json_rpc, Evm::new);
        if let (ChainKind::Evm, Some(evm), Ok(number)) = (kind, &evm, chain.parse()) {
            evm.expect_number(number);
        }
        Clients {
            chain: chain.to_owned(),
            comet: self.client(chain, rpc, Comet::new),
            rest: self.client(chain, rest, Rest::new),
            evm,
            executor: self.client(chain, executor, OpinitExecutor::new).map(ExecutorWithdrawals::new),
            checked: tokio::sync::Mutex::default(),
        }
    }

    fn client<T>(
        &self,
        chain: &str,
        addresses: &[String],
        new: impl FnOnce(Vec<Url>, Limits) -> Result<T, SetupError>,
    ) -> Option<T> {
        let parse = |address: &String| {
            let invalid = |error: &_| tracing::warn!(chain, %error, "invalid node address skipped");
            address.parse::<Url>().inspect_err(invalid).ok()
        };
        let urls: Vec<Url> = addresses.iter().filter_map(parse).collect();
        if urls.is_empty() {
            return None;
        }
        new(urls, self.limits).inspect_err(|error| tracing::warn!(chain, %error, "no client")).ok()
    }
}

impl Clients {
    /// Excludes the nodes that are of another chain. Returns no error: what is excluded fails when it is queried. The EVM
    /// of a Cosmos chain, whose number the registry does not have, is recognized by the times of its blocks.
    pub(crate) async fn check_chain(&self, now: i64) {
        let mut checked = self.checked.lock().await;
        if checked.is_some_and(|at| now.saturating_sub(at) < CHECK) {
            return;
        }
        let mut outcomes = Vec::new();
        if let Some(comet) = &self.comet {
            outcomes.push(comet.verify_chain(&self.chain).await.map(drop));
        }
        if let Some(rest) = &self.rest {
            outcomes.push(rest.verify_chain(&self.chain).await);
        }
        if let Some(evm) = &self.evm {
            outcomes.push(evm.verify_chain(self.comet.as_ref(), &self.chain).await);
        }
        let is_complete = outcomes.iter().all(Result::is_ok);
        *checked = Some(if is_complete { now } else { now.saturating_sub(CHECK - CHECK_AGAIN) });
    }

    /// CometBFT RPC.
    pub fn comet(&self) -> Result<&Comet, NoAddress> {
        self.comet.as_ref().ok_or_else(|| self.no_address("rpc"))
    }

    /// Cosmos REST.
    pub fn rest(&self) -> Result<&Rest, NoAddress> {
        self.rest.as_ref().ok_or_else(|| self.no_address("rest"))
    }

    /// EVM JSON-RPC.
    pub fn evm(&self) -> Result<&Evm, NoAddress> {
        self.evm.as_ref().ok_or_else(|| self.no_address("json_rpc"))
    }

    pub(crate) fn no_address(&self, service: &'static str) -> NoAddress {
        NoAddress { chain: self.chain.clone(), service }
    }
}
