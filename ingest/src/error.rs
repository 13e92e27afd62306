//! Errors that end a lane or an ingest. Failures that a retry can cure are not among them.

use std::fmt::Display;

/// An error that ends a lane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed or is refused.
    #[error(transparent)]
    Schema(#[from] schema::Error),
    /// A rewind is impossible.
    #[error(transparent)]
    Rewind(#[from] schema::rewind::RewindError),
    /// The node lacks the heights to compare the database with.
    #[error("the node has heights {earliest} to {latest} and the database ends at {last}: {remedy}")]
    NothingToCompare {
        /// The node's first height.
        earliest: u64,
        /// The node's last height.
        latest: u64,
        /// The database's last height.
        last: u64,
        /// The remedy.
        remedy: &'static str,
    },
    /// The node does not answer.
    #[error("the node does not answer within {seconds} s: {reason}")]
    Silent {
        /// The time waited.
        seconds: u64,
        /// The last failure.
        reason: String,
    },
    /// A permanent failure of a request.
    #[error("{what} of height {height}")]
    Node {
        /// The height.
        height: u64,
        /// The request.
        what: &'static str,
        /// The node's reply.
        source: Box<node::Error>,
    },
    /// A permanent failure of a request at the start.
    #[error("asking the node for its {what}")]
    Start {
        /// The request.
        what: &'static str,
        /// The node's reply.
        source: Box<node::Error>,
    },
    /// The database does not hold the height from which it should be indexed again.
    #[error(
        "heights from {from} on cannot be indexed again: the database holds {first} to {last}; begin at one of them"
    )]
    NothingToReindex {
        /// The height that was named.
        from: u64,
        /// The first height of the database.
        first: u64,
        /// Its last height.
        last: u64,
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
        /// The block that does not follow.
        height: u64,
        /// Its parent.
        parent: String,
        /// The stored hash of the block before.
        stored: String,
        /// Its endpoint, if known.
        origin: Option<node::Origin>,
    },
    /// The chain has another history, from below the lowest height to which a rewind is allowed.
    #[error(
        "the node's chain is not the one that is indexed: they differ from {lowest} on or earlier, and the index ends at \
         {last}. If the node is right (a chain that was restarted or restored), raise max_rewind (now {max_rewind} blocks), \
         or index into a new directory; if not, correct the node's address"
    )]
    TooDeep {
        /// The last indexed height.
        last: u64,
        /// The lowest height to which a rewind is allowed.
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
    /// The height of an endpoint's tip is indexed with another hash.
    #[error("{origin} shows another block {height} than the one that is indexed")]
    ConflictingBlock {
        /// The endpoint's tip.
        height: u64,
        /// The endpoint.
        origin: node::Origin,
    },
    /// The last committed block turned out to be wrong.
    #[error("block {height} was indexed with results that the chain does not have: {reason}")]
    InvalidBlock {
        /// The height.
        height: u64,
        /// The contradiction.
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
    /// The chain's validators use an unknown signature scheme.
    #[error("the signatures on block {height} cannot be verified: {reason}")]
    Unverifiable {
        /// The height.
        height: u64,
        /// The reason, the same for every endpoint.
        reason: String,
    },
    /// A setting contradicts the node.
    #[error("`{key}` is `{ours}`, and the node has `{theirs}`: {remedy}")]
    Contradiction {
        /// The setting.
        key: &'static str,
        /// Its value, or that of the database.
        ours: String,
        /// What the node has.
        theirs: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A required setting is missing, and the node cannot supply it.
    #[error("{0}")]
    Setup(&'static str),
    /// A value of the node that would be stored cannot be right.
    #[error("the node gives {value:?} as {what}, which cannot be right: {remedy}")]
    Unusable {
        /// Name of the value.
        what: &'static str,
        /// The value.
        value: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The chain's descriptors cannot be used.
    #[error("the chain's protobuf descriptors cannot be used: {reason}")]
    Descriptors {
        /// The reason.
        reason: String,
    },
    /// More than 2^32 message-type sets.
    #[error("the chain has more message-type sets than can be numbered")]
    TooManySets,
    /// The block lane has passed a height without storing it.
    #[error(
        "table `block` has no row {height} below the block lane's height; restore a backup (cairn db restore), or index again (cairn db reindex)"
    )]
    BlockMissing {
        /// The height.
        height: u64,
    },
    /// A task ended unexpectedly.
    #[error("{task} ended unexpectedly: {reason}")]
    Crashed {
        /// The task.
        task: String,
        /// The runtime's message.
        reason: String,
    },
}

impl Error {
    /// Descriptors that cannot be used.
    pub(crate) fn descriptors(reason: impl Display) -> Self {
        Self::Descriptors { reason: reason.to_string() }
    }

    /// A task that ended unexpectedly.
    pub(crate) fn crashed(task: impl Display, reason: impl Display) -> Self {
        Self::Crashed { task: task.to_string(), reason: reason.to_string() }
    }

    /// A permanent failure of a request about `height`.
    pub(crate) fn node(height: u64, what: &'static str, source: node::Error) -> Self {
        Self::Node { height, what, source: Box::new(source) }
    }

    /// A permanent failure of a request at the start.
    pub(crate) fn start(what: &'static str, source: node::Error) -> Self {
        Self::Start { what, source: Box::new(source) }
    }

    /// A block whose `parent` is not the hash `stored` of the block before.
    pub(crate) fn fork(
        height: u64,
        parent: Option<[u8; 32]>,
        stored: &[u8],
        origin: Option<node::Origin>,
    ) -> Self {
        let parent = parent.map_or_else(|| "none".to_owned(), hex::encode_upper);
        Self::Fork { height, parent, stored: hex::encode_upper(stored), origin }
    }

    /// A committed block that is not on the chain.
    pub(crate) fn invalid_block(height: u64, reason: String) -> Self {
        Self::InvalidBlock { height, reason }
    }

    /// The reason in words for strangers: without an address and without a text of the node.
    pub(crate) fn outline(&self) -> String {
        match self {
            Self::Node { what, source, .. } | Self::Start { what, source } => {
                format!("no {what} from the node: {}", source.outline())
            }
            Self::Gap { .. } | Self::ReceiptsPruned { .. } => "the node has pruned what is next".to_owned(),
            Self::Setup(reason) => (*reason).to_owned(),
            error if error.is_full() => "the disk is full".to_owned(),
            _ => "see the log".to_owned(),
        }
    }

    /// True if the node is the cause, so that repairing the node helps.
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

    /// True if a setting contradicts the node or the database.
    pub fn is_contradiction(&self) -> bool {
        match self {
            Self::Contradiction { .. }
            | Self::Schema(schema::Error::Refused(schema::open::OpenError::Different { .. })) => true,
            Self::Start { source, .. } => matches!(**source, node::Error::WrongChain { .. }),
            _ => false,
        }
    }

    /// True if an operator must decide, because a restart ends in the same error.
    pub fn needs_an_operator(&self) -> bool {
        use schema::rewind::RewindError::{BeyondUndoLog, Mismatch};
        matches!(self, Self::TooDeep { .. } | Self::OtherHistory { .. })
            || matches!(self, Self::Rewind(BeyondUndoLog { .. } | Mismatch { .. }))
            || matches!(self.of_the_store(), Some(store::Error::Fenced { .. }))
    }

    /// True if the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self.of_the_store(), Some(store::Error::NoSpace { .. }))
    }

    fn of_the_store(&self) -> Option<&store::Error> {
        use schema::rewind::RewindError::Database;
        match self {
            Self::Schema(schema::Error::Store(error))
            | Self::Rewind(Database(schema::Error::Store(error))) => Some(error),
            _ => None,
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Schema(error.into())
    }
}

/// The error with its chain of causes, in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
