//! Shape of the response.

use schemars::JsonSchema;
use serde::Serialize;

/// Progress of a transaction.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "tx.StatusResponse")]
pub struct Answer {
    /// One for each transfer that it began, with the members below.
    pub(super) transfers: Vec<Status>,
    #[serde(flatten)]
    pub(super) top: Status,
    /// The older states: STATE_SUBMITTED, STATE_PENDING, STATE_COMPLETED, STATE_FAILED, STATE_ABANDONED.
    pub(super) status: &'static str,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct Status {
    /// STATE_SUBMITTED, STATE_PENDING, STATE_PENDING_ERROR, STATE_COMPLETED_SUCCESS, STATE_COMPLETED_ERROR or
    /// STATE_ABANDONED.
    pub(super) state: &'static str,
    /// The hops that were found, in order.
    pub(super) transfer_sequence: Vec<Event>,
    /// The hop that is waited for.
    pub(super) next_blocking_transfer: Option<Blocking>,
    /// Location of the tokens, now or later.
    pub(super) transfer_asset_release: Option<Release>,
    /// Swaps of the transfer, in order; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) swaps: Vec<SwapEvent>,
    /// Why it failed or was abandoned. A pending transfer has one if it cannot be followed any further; the message then
    /// begins with "cannot be followed: ". A submitted one has one if its chain has no index of transactions.
    pub(super) error: Option<TransferError>,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct Blocking {
    pub(super) transfer_sequence_index: usize,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct Release {
    pub(super) chain_id: String,
    pub(super) denom: String,
    pub(super) amount: Option<String>,
    pub(super) released: bool,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct TransferError {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) details: Option<Details>,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct Details {
    pub(super) code: u64,
    pub(super) message: String,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(clippy::enum_variant_names, reason = "the names of the wire")]
pub(super) enum Event {
    IbcTransfer(HopEvent),
    OpInitTransfer(HopEvent),
    LayerZeroTransfer(HopEvent),
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct HopEvent {
    pub(super) from_chain_id: String,
    pub(super) to_chain_id: String,
    pub(super) state: &'static str,
    #[serde(flatten)]
    pub(super) txs: Txs,
    pub(super) src_chain_id: String,
    pub(super) dst_chain_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) withdrawal: Option<WithdrawalAt>,
}

/// Under `packet_txs` for a packet, under `txs` for anything else.
#[derive(Debug, Serialize, Clone, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(clippy::enum_variant_names, reason = "the names of the wire")]
pub(super) enum Txs {
    PacketTxs {
        send_tx: Option<Tx>,
        receive_tx: Option<Tx>,
        acknowledge_tx: Option<Tx>,
        timeout_tx: Option<Tx>,
        error: Option<TransferError>,
    },
    #[serde(rename = "txs")]
    BridgeTxs { send_tx: Option<Tx>, receive_tx: Option<Tx> },
    #[serde(rename = "txs")]
    MessageTxs { send_tx: Option<Tx>, receive_tx: Option<Tx>, compose_tx: Option<Tx>, error_tx: Option<Tx> },
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct SwapEvent {
    pub(super) chain_id: String,
    pub(super) tx: Option<Tx>,
    /// Number of the hops before it.
    pub(super) transfer_sequence_index: usize,
    /// What was paid; null while the chain has not named it.
    pub(super) denom_in: Option<String>,
    pub(super) amount_in: String,
    /// What came of it; null if it failed or is not named yet.
    pub(super) denom_out: Option<String>,
    pub(super) amount_out: Option<String>,
    /// Why it failed.
    pub(super) error: Option<String>,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct WithdrawalAt {
    pub(super) l2_sequence: String,
    pub(super) phase: &'static str,
    pub(super) output_index: Option<String>,
    pub(super) output_tx: Option<Tx>,
    pub(super) claimable_at: Option<String>,
}

#[derive(Debug, Serialize, Clone, JsonSchema)]
#[schemars(inline)]
#[allow(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct Tx {
    pub(super) chain_id: String,
    pub(super) tx_hash: String,
    pub(super) explorer_link: String,
    pub(super) on_chain_at: Option<String>,
}
