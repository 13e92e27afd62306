//! JSON operations of a plan.
//!
//! One operation is one bridge transfer. Wrapping and unwrapping have no operation kind: they are folded into the
//! adjacent transfer of the same transaction, and become a `swap` if there is none.

mod swap;

use registry::Registry;
use serde::{Deserialize, Serialize};

use crate::asset::{WireAsset, fee_coin};
use crate::plan::{Hop, Plan, Step, World};
use crate::usd;

pub use swap::{
    MINITSWAP_VENUE, SmartSwapIn, Swap, SwapIn, SwapOperation, SwapOut, SwapRoute, SwapVenue, WRAPPER_VENUE,
};

/// One operation, with amounts in base units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Map<String, serde_json::Value>")]
pub struct Operation {
    /// Action of the hop.
    #[serde(flatten)]
    pub kind: OperationKind,
    /// Which of the user's transactions does it.
    pub tx_index: usize,
    /// A decimal number; empty if a client left it out.
    pub amount_in: String,
    /// The same.
    pub amount_out: String,
}

/// The kinds of operations that plans are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// An ICS-20 transfer.
    Transfer(Transfer),
    /// A send to another account of the same chain.
    BankSend(BankSend),
    /// A swap in pools, or a conversion by the ERC20Wrapper.
    Swap(Swap),
    /// A deposit into an optimistic bridge, or a withdrawal.
    OpInitTransfer(OpInitTransfer),
    /// A LayerZero transfer.
    LayerZeroTransfer(LayerZeroTransfer),
}

impl OperationKind {
    /// Its key on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Transfer(_) => "transfer",
            Self::BankSend(_) => "bank_send",
            Self::Swap(_) => "swap",
            Self::OpInitTransfer(_) => "op_init_transfer",
            Self::LayerZeroTransfer(_) => "layer_zero_transfer",
        }
    }
}

/// An ICS-20 transfer. In a client's operation of any kind, an empty text stands for a member that was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct Transfer {
    /// Of the sending end.
    pub port: String,
    /// Of the sending end.
    pub channel: String,
    pub from_chain_id: String,
    pub to_chain_id: String,
    /// Whether the sending chain forwards packets.
    pub pfm_enabled: bool,
    pub supports_memo: bool,
    pub denom_in: String,
    pub denom_out: String,
    /// Fee, already deducted from the amount out.
    pub fee_amount: Option<String>,
    pub usd_fee_amount: Option<String>,
    pub fee_asset: Option<WireAsset>,
    pub bridge_id: String,
    pub smart_relay: bool,
    pub to_chain_entry_contract_address: Option<String>,
    pub to_chain_callback_contract_address: Option<String>,
    /// The old name of `denom_out`.
    pub dest_denom: String,
}

/// A send to another account of the same chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct BankSend {
    pub chain_id: String,
    pub denom: String,
}

/// A deposit into an optimistic bridge, or a withdrawal from the rollup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct OpInitTransfer {
    pub from_chain_id: String,
    pub to_chain_id: String,
    pub denom_in: String,
    pub denom_out: String,
    /// A decimal number, written as a text; read as either.
    #[serde(deserialize_with = "text_or_number")]
    pub op_init_bridge_id: String,
    pub bridge_id: String,
    pub smart_relay: bool,
}

/// A LayerZero transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct LayerZeroTransfer {
    pub from_chain_id: String,
    pub to_chain_id: String,
    pub denom_in: String,
    pub denom_out: String,
    pub source_oft_contract_address: String,
    /// LayerZero's number of the receiving chain; 0 if a client left it out.
    pub destination_endpoint_id: u32,
    pub messaging_fee_asset: WireAsset,
    pub messaging_fee_amount: String,
    /// Empty without a price.
    pub messaging_fee_amount_usd: String,
    pub bridge_id: String,
}

/// The operations of a plan, in order. `world` must be the one that the plan was made from.
pub fn operations(world: World<'_>, plan: &Plan) -> Vec<Operation> {
    let (mut operations, mut done) = (Vec::new(), 0);
    while let Some(rest) = plan.hops.get(done..).filter(|rest| !rest.is_empty()) {
        let hops = &rest[..together(rest)];
        operations.extend(operation(world, plan, hops));
        done += hops.len();
    }
    operations
}

/// Number of hops of the next operation.
fn together(hops: &[Hop]) -> usize {
    let follows = |at: usize, wanted: fn(Step) -> bool| {
        hops.get(at).is_some_and(|hop| hop.tx == hops[0].tx && wanted(hop.step))
    };
    let transfers = |step| !matches!(step, Step::Wrap | Step::Unwrap | Step::Send | Step::Swap);
    let unwraps = usize::from(hops[0].step == Step::Unwrap && follows(1, transfers));
    let wraps = transfers(hops[unwraps].step) && follows(unwraps + 1, |step| step == Step::Wrap);
    unwraps + 1 + usize::from(wraps)
}

fn operation(world: World<'_>, plan: &Plan, hops: &[Hop]) -> Option<Operation> {
    let World { registry, facts, .. } = world;
    let (first, last) = (hops.first()?, hops.last()?);
    let moved = hops.iter().find(|hop| !matches!(hop.step, Step::Wrap | Step::Unwrap)).unwrap_or(first);
    let ends = Ends::of(registry, first, last);
    let kind = match moved.step {
        Step::Send => {
            OperationKind::BankSend(BankSend { chain_id: ends.from_chain_id, denom: ends.denom_in })
        }
        Step::Ibc { channel }
        | Step::MigratedDeposit { channel, .. }
        | Step::MigratedWithdraw { channel, .. } => {
            let end = registry[channel].on(registry[moved.from].chain)?;
            OperationKind::Transfer(transfer(world, end, moved, ends))
        }
        Step::Deposit { bridge } | Step::Withdraw { bridge } => {
            OperationKind::OpInitTransfer(OpInitTransfer {
                from_chain_id: ends.from_chain_id,
                to_chain_id: ends.to_chain_id,
                denom_in: ends.denom_in,
                denom_out: ends.denom_out,
                op_init_bridge_id: registry[bridge].id.to_string(),
                bridge_id: "OPINIT".to_owned(),
                smart_relay: false,
            })
        }
        Step::Wrap | Step::Unwrap => OperationKind::Swap(Swap::by_wrapper(registry, moved, ends)),
        Step::Swap => OperationKind::Swap(Swap::in_pools(registry, moved, plan.swap.as_ref()?, ends)),
        Step::LayerZero { oft, from, to, fee } => {
            let (leg, other) = (registry[oft].legs.get(from)?, registry[oft].legs.get(to)?);
            let coin = fee_coin(registry, registry[moved.from].chain)?;
            OperationKind::LayerZeroTransfer(LayerZeroTransfer {
                from_chain_id: ends.from_chain_id,
                to_chain_id: ends.to_chain_id,
                denom_in: ends.denom_in,
                denom_out: ends.denom_out,
                source_oft_contract_address: leg.contract.clone(),
                destination_endpoint_id: other.eid,
                messaging_fee_asset: WireAsset::of(registry, coin),
                messaging_fee_amount: fee.to_string(),
                messaging_fee_amount_usd: usd::of(registry, facts, coin, fee).unwrap_or_default(),
                bridge_id: "LAYER_ZERO".to_owned(),
            })
        }
    };
    let (amount_in, amount_out) = (first.amount_in.to_string(), last.amount_out.to_string());
    Some(Operation { kind, tx_index: first.tx, amount_in, amount_out })
}

/// Chains and denominations of an operation.
struct Ends {
    from_chain_id: String,
    to_chain_id: String,
    denom_in: String,
    denom_out: String,
}

impl Ends {
    fn of(registry: &Registry, first: &Hop, last: &Hop) -> Self {
        let (from, to) = (&registry[first.from], &registry[last.to]);
        Self {
            from_chain_id: registry[from.chain].id.clone(),
            to_chain_id: registry[to.chain].id.clone(),
            denom_in: from.denom.clone(),
            denom_out: to.denom.clone(),
        }
    }
}

fn transfer(world: World<'_>, end: &registry::End, hop: &Hop, ends: Ends) -> Transfer {
    let World { registry, facts, .. } = world;
    let fee = hop.amount_in.checked_sub(hop.amount_out).filter(|fee| !fee.is_zero());
    Transfer {
        port: end.port.clone(),
        channel: end.channel.clone(),
        from_chain_id: ends.from_chain_id,
        to_chain_id: ends.to_chain_id,
        pfm_enabled: world.facts.forwards(registry, end.chain),
        supports_memo: !registry::denom::is_contract_port(&end.port),
        denom_in: ends.denom_in,
        dest_denom: ends.denom_out.clone(),
        denom_out: ends.denom_out,
        fee_amount: fee.map(|fee| fee.to_string()),
        usd_fee_amount: fee.and_then(|fee| usd::of(registry, facts, hop.from, fee)),
        fee_asset: fee.map(|_| WireAsset::of(registry, hop.from)),
        bridge_id: "IBC".to_owned(),
        ..Transfer::default()
    }
}

fn text_or_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Ok(text),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        other => Err(serde::de::Error::custom(format!("{other} is neither a text nor a number"))),
    }
}
