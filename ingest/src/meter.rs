//! Metrics of an ingest.

use metrics::{counter, describe_counter, describe_gauge, gauge};

/// A counted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A rewind.
    Rewind,
    /// Receipts are accepted that do not follow from their transactions.
    UnprovenReceipts,
    /// Receipts are derived, because the node has none that can be used.
    DerivedReceipts,
    /// A transaction is indexed without internal transactions.
    UntracedTx,
    /// A token's balances change without transfer events.
    Drift,
    /// A balance is compared with its contract.
    Sample,
    /// A balance is corrected.
    Repaired,
    /// A token has holders that are unknown.
    Incomplete,
    /// A name or a URI of an NFT is too long.
    TooLong,
    /// Tokens of a consecutive transfer are not read.
    UnreadTransfer,
    /// An output on the layer one has another root than follows from the index.
    OutputMismatch,
    /// An EVM header does not follow from the one before, or is not the one that receipts name.
    HeaderBreak,
}

/// Each event, its metric, and its description.
const EVENTS: [(Event, &str, &str); 12] = [
    (
        Event::Rewind,
        "cairn_rewinds_total",
        "times that blocks were removed, for a fork or a reply proved false",
    ),
    (
        Event::UnprovenReceipts,
        "cairn_unproven_receipts_total",
        "blocks whose receipts do not follow from their transactions, and were indexed for want of others",
    ),
    (
        Event::DerivedReceipts,
        "cairn_derived_receipts_total",
        "blocks whose receipts were derived from their results, because the node has none that can be used",
    ),
    (
        Event::UntracedTx,
        "cairn_untraced_txs_total",
        "EVM transactions indexed without internal transactions, because the node cannot trace them",
    ),
    (
        Event::Drift,
        "cairn_rich_list_drifts_total",
        "tokens whose balances turned out to change without their events telling",
    ),
    (Event::Sample, "cairn_rich_list_samples_total", "balances that were compared with their contracts"),
    (Event::Repaired, "cairn_rich_list_healed_total", "balances that were corrected"),
    (
        Event::Incomplete,
        "cairn_rich_list_incomplete_total",
        "tokens whose known holders turned out to have another sum than the total supply",
    ),
    (
        Event::TooLong,
        "cairn_nft_texts_too_long_total",
        "names and URIs of NFTs that are longer than 256 KiB, and are shown as such",
    ),
    (
        Event::UnreadTransfer,
        "cairn_nft_unread_transfers_total",
        "consecutive transfers of NFTs with more tokens than are read of one log or block",
    ),
    (
        Event::OutputMismatch,
        "cairn_bridge_output_mismatch_total",
        "outputs of the rollup on its layer one whose root differs from that of the indexed withdrawals: a false output, or a false database",
    ),
    (
        Event::HeaderBreak,
        "cairn_evm_header_breaks_total",
        "EVM headers that name another parent, or have another hash than the receipts name: the node has rebuilt its EVM index",
    ),
];

impl Event {
    /// Increments the counter.
    pub(crate) fn count(self) {
        self.count_many(1);
    }

    /// Adds `many` to the counter.
    pub(crate) fn count_many(self, many: u64) {
        let metric = EVENTS.iter().find(|(event, ..)| *event == self).map_or("", |(_, metric, _)| metric);
        counter!(metric).increment(many);
    }
}

const METADATA_MISSING_FROM: &str = "cairn_metadata_missing_from_height";
const TOKENS_MISSING_FROM: &str = "cairn_token_metadata_missing_from_height";
const LANE_STOPPED: &str = "cairn_lane_stopped";
const LANE_STATE: &str = "cairn_lane_state";

/// State of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// It indexes, or is at the head.
    Running,
    /// It waits for space on the disk, for a height that the node can trace, or, while the block lane does not run, for
    /// that.
    Waiting,
    /// It has failed and waits for its restart.
    Stopped,
}

impl LaneState {
    const ALL: [(Self, &str); 3] =
        [(Self::Running, "running"), (Self::Waiting, "waiting"), (Self::Stopped, "stopped")];

    /// Sets the state of a lane.
    pub(crate) fn set(self, lane: &'static str) {
        for (state, label) in Self::ALL {
            let is_current = f64::from(u8::from(state == self));
            gauge!(LANE_STATE, "lane" => lane, "state" => label).set(is_current);
        }
    }
}

/// Sets whether a lane has failed and waits for its restart.
pub(crate) fn lane_stopped(lane: &'static str, is_stopped: bool) {
    gauge!(LANE_STOPPED, "lane" => lane).set(f64::from(u8::from(is_stopped)));
}

/// Sets the first height with a query about NFTs or its proposer that the node has not answered; 0 if there is none.
pub(crate) fn metadata_missing_from(height: u64) {
    #[expect(clippy::cast_precision_loss, reason = "heights are below 2^53")]
    let height = height as f64;
    gauge!(METADATA_MISSING_FROM).set(height);
}

/// Sets the first height with a token whose metadata the node has not given; 0 if there is none.
pub(crate) fn tokens_missing_from(height: u64) {
    #[expect(clippy::cast_precision_loss, reason = "heights are below 2^53")]
    let height = height as f64;
    gauge!(TOKENS_MISSING_FROM).set(height);
}

/// Registers the descriptions of all metrics, with counters at zero.
pub fn describe() {
    describe_gauge!(
        METADATA_MISSING_FROM,
        "the first block of which the name of the proposer, or a name or URI of an NFT, is missing until the node \
         answers; 0 if none is"
    );
    describe_gauge!(
        TOKENS_MISSING_FROM,
        "the first block with a token whose name, symbol or decimals are missing until the node answers; 0 if none is"
    );
    describe_gauge!(LANE_STOPPED, "1 while a lane has failed and waits to be tried again");
    describe_gauge!(
        LANE_STATE,
        "1 for the state that a lane is in: running, waiting or stopped; 0 for the others"
    );
    for (event, metric, description) in EVENTS {
        describe_counter!(metric, description);
        event.count_many(0);
    }
}
