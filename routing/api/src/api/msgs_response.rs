//! Response of the endpoints for messages.

use messages::{BuiltTxs, Tx};
use planner::{Plan, operations};
use registry::Registry;
use schemars::JsonSchema;
use serde::Serialize;

use super::fees::{Fee, fees};
use super::wire::WireMsg;
use crate::quotes::QuoteSet;
use crate::service::World;

/// Transactions to sign, in order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.MsgsResponse")]
pub(super) struct MsgsResponse<'a> {
    /// The old form: one entry for each message.
    msgs: Vec<OldMsg<'a>>,
    txs: Vec<WireTx<'a>>,
    /// Amount out at the slippage limit.
    min_amount_out: String,
    /// As in the route.
    estimated_fees: Vec<Fee<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum OldMsg<'a> {
    MultiChainMsg {
        chain_id: &'a str,
        path: Vec<&'a str>,
        #[serde(flatten)]
        msg: WireMsg,
    },
    EvmTx(EvmTx<'a>),
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct WireTx<'a> {
    #[serde(flatten)]
    tx: EitherTx<'a>,
    operations_indices: Vec<usize>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(clippy::enum_variant_names, reason = "the names of the wire")]
enum EitherTx<'a> {
    CosmosTx { chain_id: &'a str, path: Vec<&'a str>, signer_address: String, msgs: Vec<WireMsg> },
    EvmTx(EvmTx<'a>),
}

#[derive(Serialize, Clone, JsonSchema)]
#[schemars(inline)]
struct EvmTx<'a> {
    chain_id: &'a str,
    to: String,
    value: String,
    data: String,
    required_erc20_approvals: Vec<WireApproval>,
    signer_address: String,
}

#[derive(Serialize, Clone, JsonSchema)]
#[schemars(inline)]
struct WireApproval {
    token_contract: String,
    spender: String,
    amount: String,
}

impl<'a> MsgsResponse<'a> {
    /// The response for a plan.
    pub(super) fn new(world: &'a World, quotes: &QuoteSet<'_>, plan: &Plan, built: BuiltTxs) -> Self {
        let registry = &*world.registry;
        let view = planner::World { registry, facts: &world.facts, quotes };
        let operations = operations(view, plan);
        let (mut msgs, mut txs) = (Vec::new(), Vec::new());
        for (index, tx) in built.txs.into_iter().enumerate() {
            let of_tx = operations.iter().enumerate().filter(|(_, operation)| operation.tx_index == index);
            let operations_indices = of_tx.map(|(index, _)| index).collect();
            let tx = wire(registry, tx);
            match &tx {
                EitherTx::CosmosTx { chain_id, path, msgs: several, .. } => {
                    let old = |msg: &WireMsg| OldMsg::MultiChainMsg {
                        chain_id,
                        path: path.clone(),
                        msg: msg.clone(),
                    };
                    msgs.extend(several.iter().map(old));
                }
                EitherTx::EvmTx(tx) => msgs.push(OldMsg::EvmTx(tx.clone())),
            }
            txs.push(WireTx { tx, operations_indices });
        }
        let (min_amount_out, estimated_fees) = (built.min_amount_out.to_string(), fees(world, plan));
        Self { msgs, txs, min_amount_out, estimated_fees }
    }
}

fn wire(registry: &Registry, tx: Tx) -> EitherTx<'_> {
    match tx {
        Tx::Cosmos { chain, path, signer, msgs, .. } => EitherTx::CosmosTx {
            chain_id: &registry[chain].id,
            path: path.into_iter().map(|chain| registry[chain].id.as_str()).collect(),
            signer_address: signer,
            msgs: msgs.into_iter().map(WireMsg::from).collect(),
        },
        Tx::Evm { chain, to, value, data, approvals, signer, .. } => EitherTx::EvmTx(EvmTx {
            chain_id: &registry[chain].id,
            to,
            value: value.to_string(),
            data,
            required_erc20_approvals: approvals
                .into_iter()
                .map(|approval| WireApproval {
                    token_contract: approval.token,
                    spender: approval.spender,
                    amount: approval.amount.to_string(),
                })
                .collect(),
            signer_address: signer,
        }),
    }
}
