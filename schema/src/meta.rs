//! What the database is of, and how far each lane has come.

use store::key::Text;
use store::{Access, Batch, Key as _, Snapshot, Table, TableSpec, Txn};

/// Named rows about the database itself.
///
/// | name (escaped text) | → a protobuf message, by name: see the constants of this module
#[derive(Debug)]
pub struct Meta;

impl Table for Meta {
    const SPEC: &'static TableSpec = &TableSpec { name: "meta", tag: 0x02, access: Access::Point };
    type Key = Text;
    type Value = Vec<u8>;
}

/// A row of [`Meta`]: its name and the message it holds.
pub trait Named: prost::Message + Default {
    /// The row's name.
    const NAME: &'static str;
}

/// What the database is of. Written when it is made, never changed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Identity {
    /// [`crate::FORMAT`] of the program that made it.
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

impl Named for Identity {
    const NAME: &'static str = "identity";
}

/// How far the block lane has come. In the same commit as the rows of its last block.
#[derive(Clone, PartialEq, Eq, prost::Message)]
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
    #[prost(bytes = "vec", tag = "5")]
    pub hash: Vec<u8>,
}

impl Named for BlockLane {
    const NAME: &'static str = "lane/blocks";
}

/// How far the internal-transaction lane has come; never ahead of the block lane.
#[derive(Clone, PartialEq, Eq, prost::Message)]
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
}

impl Named for CallLane {
    const NAME: &'static str = "lane/internal_txs";
}

/// How far the rich list has come; never ahead of the block lane.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RichLane {
    /// The last height whose transfers are in the balances; 0 until the baseline is complete.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// The height at which balances were asked for at the beginning.
    #[prost(uint64, tag = "2")]
    pub baseline: u64,
    /// While the baseline is being taken: the node's key of the next page of accounts.
    #[prost(string, tag = "3")]
    pub next_accounts: String,
}

impl Named for RichLane {
    const NAME: &'static str = "lane/rich_list";
}

/// A rebuild of the NFT tables that has begun and is to be finished before anything else.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PendingNftRebuild {
    /// The tables were emptied in the commit that wrote this.
    #[prost(bool, tag = "1")]
    pub emptied: bool,
    /// The last height of the log that the tables have again; 0 before the first.
    #[prost(uint64, tag = "2")]
    pub height: u64,
}

impl Named for PendingNftRebuild {
    const NAME: &'static str = "rebuild/nft";
}

/// A rollback that has begun and is to be finished before anything else.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PendingRollback {
    /// The height that stays the last.
    #[prost(uint64, tag = "1")]
    pub to: u64,
    /// Nothing that is stored is relied on: the database may be damaged.
    #[prost(bool, tag = "2")]
    pub damaged: bool,
    /// Sequence of the last transaction whose rows by hash and entries of lists are still there; none if that is not known.
    #[prost(uint64, optional, tag = "3")]
    pub txs: Option<u64>,
    /// The same of EVM transactions.
    #[prost(uint64, optional, tag = "4")]
    pub evm_txs: Option<u64>,
    /// The same of call frames.
    #[prost(uint64, optional, tag = "5")]
    pub calls: Option<u64>,
}

impl Named for PendingRollback {
    const NAME: &'static str = "rollback";
}

/// How often something was taken back. It grows in every commit of a rewind and in the last of a rollback: who keeps what
/// he read keeps this with it, and reads all again when it is another. Not part of the digest.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Rewinds {
    /// Grows.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The height that it was to be taken back to the last time.
    #[prost(uint64, tag = "2")]
    pub last_to: u64,
}

impl Named for Rewinds {
    const NAME: &'static str = "rewinds";
}

/// What the results of the last block come to, until the next header confirms it. In the same commit as its block; not part
/// of the digest, since a block that others follow is confirmed. Nor is it taken back: whatever stays was confirmed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Unconfirmed {
    /// The block's height; the row counts for nothing at any other.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// What the next header has to have as `last_results_hash`, 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub results_hash: Vec<u8>,
    /// What the next header has to have as `app_hash`, if the node told it.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub app_hash: Option<Vec<u8>>,
}

impl Named for Unconfirmed {
    const NAME: &'static str = "unconfirmed";
}

/// What the process that writes the database does not keep, for those that serve it. Written at its start; not part of the
/// digest.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Disabled {
    /// Why there is no rich list, in words; empty if there is one, or if the chain's VM has none.
    #[prost(string, tag = "1")]
    pub rich_list: String,
}

impl Named for Disabled {
    const NAME: &'static str = "disabled";
}

/// The rows (table and key) that say how a database came to be what it is, and not what it holds: they are neither part of
/// the digest nor taken back.
pub fn passing() -> [(&'static TableSpec, Vec<u8>); 3] {
    [key::<Rewinds>(), key::<Unconfirmed>(), key::<Disabled>()].map(|key| (Meta::SPEC, key.to_bytes()))
}

/// Says that something is taken back to `to`.
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
    let Some(bytes) = store::table::read::<Meta>(snapshot, &key::<M>())? else {
        return Ok(None);
    };
    M::decode(bytes.as_slice()).map(Some).map_err(|error| crate::Error::Record {
        table: Meta::SPEC.name,
        key: M::NAME.to_owned(),
        reason: error.to_string(),
    })
}

/// Writes the named row `M`.
pub fn put<M: Named>(txn: &mut Txn<'_>, message: &M) {
    txn.put::<Meta>(&key::<M>(), &message.encode_to_vec());
}

/// Writes the named row `M` with the batch.
pub(crate) fn put_in<M: Named>(batch: &mut Batch, message: &M) {
    batch.put(Meta::SPEC, key::<M>().to_bytes(), message.encode_to_vec());
}
