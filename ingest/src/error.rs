//! Why an ingest stops. What asking again can cure is not among it.

use std::fmt::Display;

use crate::derive::Block;
use crate::link::Tail;

/// An error that ends a lane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed or is refused.
    #[error(transparent)]
    Schema(#[from] schema::Error),
    /// Heights cannot be taken back.
    #[error(transparent)]
    Impossible(#[from] schema::rollback::RollbackError),
    /// The node does not have what the database is compared with.
    #[error("the node has heights {earliest} to {latest} and the database ends at {last}: {remedy}")]
    NothingToCompare {
        /// The node's first height.
        earliest: u64,
        /// The node's last height.
        latest: u64,
        /// The database's last height.
        last: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// The node does not answer.
    #[error("the node does not answer within {seconds} s: {reason}")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
        /// The last failure.
        reason: String,
    },
    /// The node will never answer this.
    #[error("{what} of height {height}")]
    Node {
        /// The height.
        height: u64,
        /// What was asked for.
        what: &'static str,
        /// The node's answer.
        source: Box<node::Error>,
    },
    /// The node refuses what a start needs.
    #[error("asking the node for its {what}")]
    Start {
        /// What was asked for.
        what: &'static str,
        /// The node's answer.
        source: Box<node::Error>,
    },
    /// An endpoint belongs to another chain.
    #[error("block {height} is of chain `{found}`, not `{wanted}`: check the node's addresses")]
    WrongChain {
        /// The block's height.
        height: u64,
        /// Its chain.
        found: String,
        /// The configured chain.
        wanted: String,
    },
    /// A block does not follow the one that was indexed before it.
    #[error("block {height} names {parent} as its parent, but the block before it was indexed as {stored}")]
    Fork {
        /// The block that does not fit.
        height: u64,
        /// The parent that it names.
        parent: String,
        /// The stored hash of the block before.
        stored: String,
        /// Who told it, where that is known.
        told_by: Option<node::Origin>,
    },
    /// The chain has another history, from further back than may be taken back.
    #[error(
        "the node's chain is not the one that is indexed: they differ from {lowest} on or earlier, and the index ends at \
         {last}. If the node is right (a chain that was restarted or restored), raise max_rewind (now {max_rewind} blocks), \
         or index into a new directory; if not, correct the node's address"
    )]
    TooDeep {
        /// The last indexed height.
        last: u64,
        /// The lowest height that may be kept as the last.
        lowest: u64,
        /// The setting.
        max_rewind: u64,
    },
    /// The node's chain has nothing in common with the index.
    #[error(
        "the index at height {last} belongs to another history: the node has none of its blocks. If the chain was begun \
         anew, delete the data directory or give another one (--data); if not, correct the node's address"
    )]
    OtherHistory {
        /// The last indexed height.
        last: u64,
    },
    /// An endpoint's tip is indexed, with another hash.
    #[error("{origin} shows another block {height} than the one that is indexed")]
    Elsewhere {
        /// The endpoint's tip.
        height: u64,
        /// The endpoint.
        origin: node::Origin,
    },
    /// What was indexed as the last block turned out not to be true.
    #[error("block {height} was indexed with results that the chain does not have: {reason}")]
    Untrue {
        /// The height.
        height: u64,
        /// What contradicts it.
        reason: String,
    },
    /// The node no longer has the next height.
    #[error(
        "height {next} is the next to index, but the node only has {earliest} and later: add an endpoint with older \
         blocks, or index into a new directory"
    )]
    Gap {
        /// The next height to index.
        next: u64,
        /// The node's first height.
        earliest: u64,
    },
    /// The node's EVM index no longer has the height.
    #[error(
        "the node has EVM transactions up to height {tip} but those of {height} are pruned: add a JSON-RPC endpoint \
         that keeps them (`evm.indexer-retain-height = 0` in its app.toml)"
    )]
    ReceiptsPruned {
        /// The height.
        height: u64,
        /// The last height in the node's EVM index.
        tip: u64,
    },
    /// The chain's validators sign in a way that is not known.
    #[error("the signatures on block {height} cannot be verified: {reason}")]
    Unverifiable {
        /// The height.
        height: u64,
        /// What every endpoint tells.
        reason: String,
    },
    /// Something that must be configured is not, and the node cannot be asked for it.
    #[error("{0}")]
    Setup(&'static str),
    /// The chain's descriptors cannot be used.
    #[error("the chain's protobuf descriptors cannot be used: {reason}")]
    Descriptors {
        /// Why.
        reason: String,
    },
    /// More than 2^32 message-type sets.
    #[error("the chain has more message-type sets than can be numbered")]
    TooManySets,
    /// The block lane has passed a height without storing it.
    #[error(
        "table `block` has no row {height} below the block lane's height; `cairn db rollback --to` a height below it"
    )]
    BlockMissing {
        /// The height.
        height: u64,
    },
    /// Results of a block that the block lane could use cannot be read now.
    #[error("the results of block {height} cannot be read: {reason}; ask another endpoint")]
    BadResults {
        /// The height.
        height: u64,
        /// Why.
        reason: String,
    },
    /// A task ended in a way that it must not.
    #[error("fetching height {height} ended unexpectedly: {reason}")]
    FetchCrashed {
        /// The height.
        height: u64,
        /// The runtime's words.
        reason: String,
    },
    /// A lane ended in a way that it must not.
    #[error("the lane `{lane}` ended unexpectedly: {reason}")]
    Crashed {
        /// The lane.
        lane: &'static str,
        /// The runtime's words.
        reason: String,
    },
}

impl Error {
    /// Descriptors that cannot be used.
    pub(crate) fn descriptors(reason: impl Display) -> Self {
        Self::Descriptors { reason: reason.to_string() }
    }

    /// The node's final no to a question about `height`.
    pub(crate) fn node(height: u64, what: &'static str, source: node::Error) -> Self {
        Self::Node { height, what, source: Box::new(source) }
    }

    /// The node's final no to a question of a start.
    pub(crate) fn start(what: &'static str, source: node::Error) -> Self {
        Self::Start { what, source: Box::new(source) }
    }
}

impl Error {
    /// A block that is committed and is not the chain's.
    pub(crate) fn untrue(height: u64, reason: String) -> Self {
        Self::Untrue { height, reason }
    }

    /// `next` does not follow `tail`, which is committed.
    pub(crate) fn fork(tail: &Tail, next: &Block) -> Self {
        let hex = |hash: &[u8; 32]| hex::encode_upper(hash);
        Self::Fork {
            height: next.height,
            parent: next.parent.as_ref().map_or_else(|| "none".to_owned(), hex),
            stored: hex(&tail.hash),
            told_by: next.told_by.as_ref().map(|told_by| told_by.block.clone()),
        }
    }

    /// Whether it is a node that cannot do what it is asked: one that is mended can.
    pub(crate) fn is_the_nodes(&self) -> bool {
        matches!(
            self,
            Self::Node { .. }
                | Self::Gap { .. }
                | Self::ReceiptsPruned { .. }
                | Self::WrongChain { .. }
                | Self::Fork { .. }
        )
    }

    /// Whether only a person can decide how to go on: starting again ends in the same way.
    pub fn needs_an_operator(&self) -> bool {
        matches!(self, Self::TooDeep { .. } | Self::OtherHistory { .. })
    }

    /// Whether the disk has no room for more.
    pub(crate) fn is_full(&self) -> bool {
        use schema::rollback::RollbackError::Database;
        let (Self::Schema(error) | Self::Impossible(Database(error))) = self else { return false };
        matches!(error, schema::Error::Store(store::Error::NoSpace { .. }))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Schema(error.into())
    }
}
