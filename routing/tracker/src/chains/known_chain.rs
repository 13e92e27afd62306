//! What tracking needs to know of a chain, kept in each record that mentions it: a registry that loses the chain stops
//! no transfer.
//!
//! # Invariants
//!
//! * The registry in use comes first; what was kept stands in for a chain that it lacks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chain::Vm;
use registry::{ChainKind, Endpoints, Registry};
use serde::{Deserialize, Serialize};

/// Addresses kept of each service of a chain.
const ADDRESSES: usize = 4;

/// A chain by its id.
pub type KnownChains = BTreeMap<String, KnownChain>;

/// The members of [`registry::Chain`] that tracking needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownChain {
    /// Whether it is an EVM chain without CometBFT.
    is_evm: bool,
    /// Its virtual machine, by name.
    vm: String,
    pub(crate) bech32_prefix: String,
    rpc: Vec<String>,
    rest: Vec<String>,
    json_rpc: Vec<String>,
    #[serde(default)]
    executor: Vec<String>,
    pub(crate) explorer_tx: Option<String>,
    pub(crate) layer_zero_endpoint: Option<String>,
    pub(crate) confirmations: u32,
}

impl KnownChain {
    /// The chain in a registry, if that has it.
    pub(crate) fn in_registry(registry: &Registry, id: &str) -> Option<Self> {
        let chain = &registry[registry.chain(id)?];
        let some = |addresses: &[String]| addresses.iter().take(ADDRESSES).cloned().collect();
        Some(Self {
            is_evm: chain.kind == ChainKind::Evm,
            vm: chain.vm.to_string(),
            bech32_prefix: chain.bech32_prefix.clone(),
            rpc: some(&chain.endpoints.rpc),
            rest: some(&chain.endpoints.rest),
            json_rpc: some(&chain.endpoints.json_rpc),
            executor: some(&chain.endpoints.executor),
            explorer_tx: chain.explorer_tx.clone(),
            layer_zero_endpoint: chain.layer_zero_endpoint.clone(),
            confirmations: chain.confirmations,
        })
    }

    /// The chain in a registry, or else as it was kept.
    pub(crate) fn find<'a>(registry: &Registry, kept: &'a KnownChains, id: &str) -> Option<Cow<'a, Self>> {
        Self::in_registry(registry, id).map(Cow::Owned).or_else(|| kept.get(id).map(Cow::Borrowed))
    }

    pub(crate) fn kind(&self) -> ChainKind {
        if self.is_evm { ChainKind::Evm } else { ChainKind::Cosmos }
    }

    pub(crate) fn vm(&self) -> Vm {
        self.vm.parse().unwrap_or(Vm::None)
    }

    pub(crate) fn endpoints(&self) -> Endpoints {
        Endpoints {
            rpc: self.rpc.clone(),
            rest: self.rest.clone(),
            json_rpc: self.json_rpc.clone(),
            executor: self.executor.clone(),
            ..Endpoints::default()
        }
    }
}
