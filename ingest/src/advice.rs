//! Advice for the operator, at the start of an ingest and for `cairn init`: settings that do not fit the chain, and
//! features that are off because a setting is missing.

use chain::Vm;
use chain::evm::flavour::Flavour;
use node::Node;
use proto::json::Registry;

use crate::Error;
use crate::config::Config;

/// A message type that exists only on chains with this VM.
const MESSAGES: [(Vm, &str); 2] =
    [(Vm::Move, "/initia.move.v1.MsgExecute"), (Vm::Wasm, "/cosmwasm.wasm.v1.MsgExecuteContract")];

/// The NFTs of other chains than EVM ones are queried over REST.
const NO_NFTS: &str = "no REST address, NFTs are not indexed: set `rest`";

/// The VMs of the chain with these descriptors; [`Vm::None`] alone if it has none.
pub fn vms(descriptors: &node::Descriptors) -> Result<Vec<Vm>, Error> {
    let registry = Registry::from_descriptors(&descriptors.bytes).map_err(Error::descriptors)?;
    Ok(vms_of(&registry))
}

/// The software of the chain's EVM, by its messages.
pub fn evm_of(descriptors: &node::Descriptors) -> Result<Option<Flavour>, Error> {
    let registry = Registry::from_descriptors(&descriptors.bytes).map_err(Error::descriptors)?;
    Ok(flavour(&registry))
}

/// The features that are off because a setting is missing, each with the setting.
pub fn features_off(config: &Config, node: &Node) -> Vec<String> {
    let nfts = lacks_nfts(config, node).then(|| NO_NFTS.to_owned());
    let rich_list = no_rich_list(config, node).filter(|_| config.vm == Vm::Evm);
    nfts.into_iter().chain(rich_list.map(|reason| format!("rich list disabled: {reason}"))).collect()
}

/// Logs the advice.
pub(crate) fn log(config: &Config, node: &Node) {
    if config.vm != Vm::Evm && node.evm.is_some() {
        tracing::info!(vm = config.vm.name(), "`json_rpc` is not used: it is for `vm = \"evm\"` only");
    }
    if lacks_nfts(config, node) {
        tracing::warn!("{NO_NFTS}");
    }
    if config.vm == Vm::Evm
        && let Some(reason) = no_rich_list(config, node)
    {
        if config.rich_list {
            tracing::warn!(reason, "rich list disabled");
        } else {
            tracing::info!(reason, "rich list disabled");
        }
    }
}

/// Logs that the node's EVM index lacks the block at `height`, one of the last of its chain.
pub(crate) async fn probe_receipts(node: &Node, height: u64) {
    let Some(evm) = &node.evm else { return };
    if evm.block_exists(height).await.is_ok_and(|exists| !exists) {
        tracing::warn!(
            height,
            "the node's EVM index lacks a block of its chain: see indexer-disable under [evm] in its app.toml"
        );
    }
}

fn lacks_nfts(config: &Config, node: &Node) -> bool {
    matches!(config.vm, Vm::Move | Vm::Wasm) && node.rest.is_none()
}

/// The reason why an EVM chain has no rich list; `None` if it has one.
pub(crate) fn no_rich_list(config: &Config, node: &Node) -> Option<&'static str> {
    if !config.rich_list {
        Some("the setting `rich_list` is false")
    } else if node.rest.is_none() {
        Some("it begins with balances from REST, and there is no REST address: set `rest`")
    } else if node.evm.is_none() {
        Some("there is no JSON-RPC address: set `json_rpc`")
    } else {
        None
    }
}

/// The EVM of the chain with these messages, if it has one.
pub(crate) fn flavour(registry: &Registry) -> Option<Flavour> {
    Flavour::of_messages(|message| registry.knows(message))
}

/// The VMs whose message types a chain has; [`Vm::None`] if it has none of them.
pub(crate) fn vms_of(registry: &Registry) -> Vec<Vm> {
    let evm = flavour(registry).map(|_| Vm::Evm);
    let others = MESSAGES.iter().filter(|(_, message)| registry.knows(message)).map(|(vm, _)| *vm);
    let known: Vec<_> = evm.into_iter().chain(others).collect();
    if known.is_empty() { vec![Vm::None] } else { known }
}
