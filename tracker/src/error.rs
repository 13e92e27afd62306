//! What can go wrong in a tracker, apart from nodes that do not answer.

/// The tracker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A row is not what it must be.
    #[error(
        "table {table} has a row that is not what it must be; restore the tracker's directory or delete it"
    )]
    Damaged {
        /// The table.
        table: &'static str,
    },
    /// An answer cannot be written as JSON.
    #[error("an answer cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

/// A text that is no transaction hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no transaction hash: 64 hex digits, with or without 0x")]
pub struct BadHash(String);

impl BadHash {
    /// Shows the beginning.
    pub(crate) fn new(text: &str) -> Self {
        const SHOWN: usize = 80;
        Self(text.chars().take(SHOWN).collect())
    }
}

/// Why a registration was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The registry does not have the chain.
    #[error("chain ID not supported")]
    UnknownChain,
    /// The hash is none.
    #[error(transparent)]
    BadHash(#[from] BadHash),
    /// It could not be stored.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Why there is no answer about a transaction.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The hash is none.
    #[error(transparent)]
    BadHash(#[from] BadHash),
    /// The database.
    #[error(transparent)]
    Failed(#[from] Error),
}
