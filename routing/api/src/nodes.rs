//! Node clients of every chain in the registry.
//!
//! A client is created on first use and kept while its addresses stay the same, so that connections survive a reload.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node::{Evm, Limits, Rest, Url};
use registry::{Chain, ChainKind};

/// The clients.
pub struct Nodes {
    limits: Limits,
    rest: Kept<Rest>,
    evm: Kept<Evm>,
}

/// By chain id; with the addresses that it was made from.
type Kept<C> = Mutex<HashMap<String, (Vec<String>, Arc<C>)>>;

/// Why a chain cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoClient {
    /// The registry names no address.
    #[error("chain `{chain}` has no {service} address in the registry")]
    NoAddress {
        /// The chain id.
        chain: String,
        /// `rest` or `json_rpc`.
        service: &'static str,
    },
    /// An address is none.
    #[error("chain `{chain}`, {service} address: {reason}")]
    BadAddress {
        /// The chain id.
        chain: String,
        /// `rest` or `json_rpc`.
        service: &'static str,
        /// Reason.
        reason: String,
    },
}

impl Nodes {
    /// Clients whose questions take at most `ask`.
    pub fn new(ask: Duration) -> Self {
        let limits = Limits { timeout: ask, ..Limits::default() };
        Self { limits, rest: Kept::default(), evm: Kept::default() }
    }

    /// The chain's Cosmos REST.
    pub fn rest(&self, chain: &Chain) -> Result<Arc<Rest>, NoClient> {
        client(&self.rest, chain, "rest", &chain.endpoints.rest, |urls| Rest::new(urls, self.limits))
    }

    /// The chain's EVM JSON-RPC.
    pub fn evm(&self, chain: &Chain) -> Result<Arc<Evm>, NoClient> {
        // An EVM chain has nothing but a JSON-RPC, so its `rpc` is one too.
        let endpoints = &chain.endpoints;
        let rpc = if endpoints.json_rpc.is_empty() && chain.kind == ChainKind::Evm {
            &endpoints.rpc
        } else {
            &endpoints.json_rpc
        };
        client(&self.evm, chain, "json_rpc", rpc, |urls| Evm::new(urls, self.limits))
    }
}

fn client<C>(
    kept: &Kept<C>,
    chain: &Chain,
    service: &'static str,
    addresses: &[String],
    make: impl FnOnce(Vec<Url>) -> Result<C, node::SetupError>,
) -> Result<Arc<C>, NoClient> {
    if addresses.is_empty() {
        return Err(NoClient::NoAddress { chain: chain.id.clone(), service });
    }
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, client)) = kept.get(&chain.id)
        && known == addresses
    {
        return Ok(Arc::clone(client));
    }
    let bad = |reason: String| NoClient::BadAddress { chain: chain.id.clone(), service, reason };
    let urls = addresses.iter().map(|address| address.parse::<Url>().map_err(|e| bad(e.to_string())));
    let client = Arc::new(make(urls.collect::<Result<_, _>>()?).map_err(|e| bad(e.to_string()))?);
    kept.insert(chain.id.clone(), (addresses.to_vec(), Arc::clone(&client)));
    Ok(client)
}
