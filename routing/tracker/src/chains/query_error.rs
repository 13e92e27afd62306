//! Error of a node query.

use node::Kind;

use crate::chains::clients::NoAddress;

/// Reason why a query has no result; the next poll repeats it.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum QueryError {
    /// Error of a node.
    #[error(transparent)]
    Node(#[from] node::Error),
    /// The circuit breaker of the chain is open.
    #[error("chain {chain} was not queried: none of its nodes answered the last requests")]
    CircuitOpen { chain: String },
    /// Error of a search for transactions: the state of the chain may answer all the same.
    #[error(transparent)]
    Search(node::Error),
    /// The circuit breaker of searches is open.
    #[error("chain {chain} was not searched: its nodes refused the last searches, or did not answer them")]
    SearchOpen { chain: String },
    /// Too many polls wait for the chain.
    #[error("chain {chain} was not queried: too many queries wait for its nodes")]
    Busy { chain: String },
    /// One service of the chain answered, but another required one did not.
    #[error(transparent)]
    Partly(node::Error),
    #[error("{0}; add one to its endpoints")]
    NoAddress(#[from] NoAddress),
    #[error("the registry has no chain {chain}; add it")]
    UnknownChain { chain: String },
    /// The reply does not decode.
    #[error("chain {chain}: {what} cannot be read: {reason}; is json_rpc the address of its EVM?")]
    Unreadable { chain: String, what: &'static str, reason: String },
}

impl QueryError {
    /// The same error as that of a search.
    pub(crate) fn into_search(self) -> Self {
        match self {
            Self::Node(error) => Self::Search(error),
            other => other,
        }
    }

    /// Whether a later query may be answered.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Node(error) | Self::Search(error) => error.kind() != Kind::Permanent,
            _ => true,
        }
    }

    /// Whether no node of the chain has an index of transactions.
    pub(crate) fn is_without_index(&self) -> bool {
        matches!(self, Self::Node(node::Error::NotIndexed { .. }))
    }

    /// Whether no node answered at all. An error that is specific to one query is a reply: otherwise a hash that a
    /// node cannot search for would stop all other queries.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Node(node::Error::Faulty { .. } | node::Error::Malformed { .. }) => false,
            Self::Node(error) => error.kind() == Kind::Transient,
            _ => false,
        }
    }
}
