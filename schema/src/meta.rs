//! Metadata rows: the identity of the database and the progress of each lane.

use store::key::Text;
use store::{Key as _, Snapshot, Table as _, TableSpec, Txn};

store::tables! {
    /// Named rows about the database itself.
    ///
    /// | name (escaped text) | → a protobuf message, by name: see the constants of this module, and [`crate::index::State`]
    pub table Meta("meta", 0x02, Point): Text => Vec<u8>;
}

/// A row of [`Meta`]: its name and the message it holds.
pub trait Named: prost::Message + Default {
    /// The row's name.
    const NAME: &'static str;
}

macro_rules! named {
    ($($message:ident: $name:literal),+ $(,)?) => {
        $(impl Named for $message {
            const NAME: &'static str = $name;
        })+
    };
}

named! {
    Identity: "identity",
    BlockLane: "lane/blocks",
    CallLane: "lane/internal_txs",
    RichLane: "lane/rich_list",
    PendingReindex: "reindex",
    Rewinds: "rewinds",
    Unconfirmed: "unconfirmed",
    Disabled: "disabled",
    EvmChain: "evm_chain",
    WrittenIndexes: "written_indexes",
    ListedAccountTokens: "account_tokens",
}

/// The identity of the database: format, chain and start height. Written at creation, never changed.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Identity {
    /// [`crate::FORMAT`] of the program that created it.
    #[prost(uint32, tag = "1")]
    pub format: u32,
    /// The chain's id.
    #[prost(string, tag = "2")]
    pub chain_id: String,
    /// `evm`, `move`, `wasm` or `none`.
    #[prost(string, tag = "3")]
    pub vm: String,
    /// Human-readable part of account addresses, e.g. `init`.
    #[prost(string, tag = "4")]
    pub prefix: String,
    /// The first height that is or will be indexed.
    #[prost(uint64, tag = "5")]
    pub start_height: u64,
}

/// The EVM of a chain that is another than minievm's, as its node has reported it.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct EvmChain {
    /// `cosmos-evm` or `ethermint`.
    #[prost(string, tag = "1")]
    pub flavour: String,
    /// Its EIP-155 id; 0 if the node has not reported it.
    #[prost(uint64, tag = "2")]
    pub chain_id: u64,
}

/// Progress of the block lane. Written in the same commit as the rows of its last block.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct BlockLane {
    /// The last indexed height.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// Number of Cosmos transactions so far, which is the sequence of the last.
    #[prost(uint64, tag = "2")]
    pub txs: u64,
    /// Number of EVM transactions so far.
    #[prost(uint64, tag = "3")]
    pub evm_txs: u64,
    /// Header time of the last block, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "4")]
    pub time: i64,
    /// Hash of the last block, 32 bytes: the next one must name it as its parent.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "5")]
    pub hash: Vec<u8>,
}

/// Progress of the internal-transaction lane; never ahead of the block lane.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct CallLane {
    /// The last height whose frames are indexed.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// Number of call frames so far, which is the sequence of the last.
    #[prost(uint64, tag = "2")]
    pub calls: u64,
    /// From this height on the frames of every block are indexed. Those of some earlier blocks are missing, because the
    /// node had pruned the state that traces need; 0 if none are.
    #[prost(uint64, tag = "3")]
    pub complete_from: u64,
    /// Heights of blocks with transactions that have no frames because the node could not trace them: the first
    /// [`MAX_UNTRACED`], ascending.
    #[prost(uint64, repeated, tag = "4")]
    pub untraced: Vec<u64>,
}

/// Maximum number of heights in [`CallLane::untraced`].
pub const MAX_UNTRACED: usize = 1_000;

/// Progress of the rich list; never ahead of the block lane.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct RichLane {
    /// The last height whose transfers are in the balances; 0 until the baseline is complete.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// The height at which the initial balances were queried.
    #[prost(uint64, tag = "2")]
    pub baseline: u64,
    /// While the baseline is being taken: the node's key of the next page of accounts.
    #[prost(string, tag = "3")]
    pub next_accounts: String,
}

/// A reindex in progress: heights are removed and indexed again. Deleted when every lane has reached the last of them; until
/// then the same command continues. Not part of the digest.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct PendingReindex {
    /// The first of the heights.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The last.
    #[prost(uint64, tag = "2")]
    pub to: u64,
    /// True if there was a lane of internal transactions.
    #[prost(bool, tag = "3")]
    pub internal_txs: bool,
    /// True if there was a rich list, whose row the removal may delete.
    #[prost(bool, tag = "4")]
    pub rich_list: bool,
    /// True once the heights are removed.
    #[prost(bool, tag = "5")]
    pub removed: bool,
}

/// Rewind counter, incremented in every commit of a rewind. Caches store it next to
/// their data and invalidate when it changes. Not part of the digest.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Rewinds {
    /// Number of rewinds; it only grows.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The target height of the last rewind.
    #[prost(uint64, tag = "2")]
    pub last_to: u64,
}

/// Hashes of the results of the last block, until the next header confirms them. Written in the same commit as
/// the block. Not part of the digest and not reverted by a rewind, because every block below the last one is
/// confirmed.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Unconfirmed {
    /// The block's height; the row is ignored at any other.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// The expected `last_results_hash` of the next header, 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub results_hash: Vec<u8>,
    /// The expected `app_hash` of the next header, if the node returned it.
    #[serde(serialize_with = "crate::json::optional_hex")]
    #[prost(bytes = "vec", optional, tag = "3")]
    pub app_hash: Option<Vec<u8>>,
}

/// Features that the writing process has disabled, for the processes that serve the API. Written when the writer
/// starts; not part of the digest.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Disabled {
    /// The reason why there is no rich list, as text; empty if there is one, or if the chain's VM has none.
    #[prost(string, tag = "1")]
    pub rich_list: String,
}

/// The optional indexes that the writing process writes, for the processes that serve the API. Written when the writer
/// starts; not part of the digest.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct WrittenIndexes {
    /// Their names, ascending.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
}

/// [`crate::rich::AccountTokens`] has the tokens of all balances. A database that was made without that table has no such row until
/// they are listed; not part of the digest.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct ListedAccountTokens {
    /// How many balances there were then.
    #[prost(uint64, tag = "1")]
    pub balances: u64,
}

/// The rows (table and key) that depend on the history of the database instead of its contents: they are excluded
/// from the digest and from the undo log.
pub fn excluded_rows() -> [(&'static TableSpec, Vec<u8>); 7] {
    [
        key::<Rewinds>(),
        key::<Unconfirmed>(),
        key::<Disabled>(),
        key::<EvmChain>(),
        key::<PendingReindex>(),
        key::<WrittenIndexes>(),
        key::<ListedAccountTokens>(),
    ]
    .map(|key| (Meta::SPEC, key.to_bytes()))
}

/// Increments [`Rewinds`] for a rewind to `to`.
pub(crate) fn count_rewind(txn: &mut Txn<'_>, to: u64) -> Result<(), crate::Error> {
    let before = read::<Rewinds>(txn)?.unwrap_or_default();
    put(txn, &Rewinds { count: before.count.saturating_add(1), last_to: to });
    Ok(())
}

/// The key of a named row.
pub fn key<M: Named>() -> Text {
    Text(M::NAME.to_owned())
}

/// The named row `M`, if it was written.
pub fn read<M: Named>(snapshot: &dyn Snapshot) -> Result<Option<M>, crate::Error> {
    read_row(snapshot, &key::<M>())
}

/// The message of the row `key`, if it was written.
pub(crate) fn read_row<M: prost::Message + Default>(
    snapshot: &dyn Snapshot,
    key: &Text,
) -> Result<Option<M>, crate::Error> {
    let Some(bytes) = store::table::read::<Meta>(snapshot, key)? else { return Ok(None) };
    M::decode(bytes.as_slice()).map(Some).map_err(|error| crate::Error::Record {
        table: Meta::SPEC.name,
        key: key.0.clone(),
        reason: error.to_string(),
    })
}

/// Writes the named row `M`.
pub fn put<M: Named>(txn: &mut Txn<'_>, message: &M) {
    txn.put::<Meta>(&key::<M>(), &message.encode_to_vec());
}
