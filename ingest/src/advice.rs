//! Advice for the operator at the start of an ingest: settings that do not fit the chain, and features that are off
//! because a setting is missing.

use chain::Vm;
use node::Node;
use proto::json::Registry;

use crate::config::Config;

/// A message type that exists only on chains with this VM.
const MESSAGES: [(Vm, &str); 3] = [
    (Vm::Evm, "/minievm.evm.v1.MsgCall"),
    (Vm::Move, "/initia.move.v1.MsgExecute"),
    (Vm::Wasm, "/cosmwasm.wasm.v1.MsgExecuteContract"),
];

/// Logs the advice; `registry` has the chain's messages.
pub(crate) fn log(config: &Config, node: &Node, registry: &Registry) {
    let (vm, chain) = (config.vm, vms_of(registry));
    if !chain.contains(&vm) && (vm != Vm::None || !chain.is_empty()) {
        let chain = if chain.is_empty() { vec![Vm::None] } else { chain };
        let chain: Vec<_> = chain.into_iter().map(Vm::name).collect();
        tracing::warn!(
            vm = vm.name(),
            chain_has = chain.join(", "),
            "the chain has another vm: set `vm` and index into a new directory"
        );
    }
    if matches!(vm, Vm::Move | Vm::Wasm) && node.rest.is_none() {
        tracing::warn!("no REST address, NFTs are not indexed: set `rest`");
    }
    if vm == Vm::Evm
        && let Some(reason) = no_rich_list(config, node)
    {
        if config.rich_list {
            tracing::warn!(reason, "rich list disabled");
        } else {
            tracing::info!(reason, "rich list disabled");
        }
    }
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

/// The VMs whose message types a chain has.
fn vms_of(registry: &Registry) -> Vec<Vm> {
    MESSAGES.iter().filter(|(_, message)| registry.knows(message)).map(|(vm, _)| *vm).collect()
}
