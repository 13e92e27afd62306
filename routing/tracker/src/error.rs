//! Errors of the tracker, apart from node errors.

use crate::queue::unseen::Limit;

/// The tracker cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Error of the database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A row does not decode.
    #[error(
        "table {table} has a row that is not what it must be; restore the tracker's directory or delete it"
    )]
    Damaged {
        /// The table.
        table: &'static str,
    },
    /// The database was written by another version.
    #[error(
        "the tracker's database has format {found}, and this version reads format {known}; use the version that wrote \
         it, or another directory"
    )]
    Format {
        /// Format of the database.
        found: u64,
        /// Format of this version.
        known: u64,
    },
    /// A reply cannot be written as JSON.
    #[error("an answer cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// Whether the disk is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(store::Error::NoSpace { .. }))
    }

    /// Whether it concerns one row only, so that work on the others can continue.
    pub(crate) fn is_of_one_row(&self) -> bool {
        use store::Error::{Corrupt, Damaged};
        matches!(self, Self::Store(Corrupt { .. } | Damaged { .. }) | Self::Damaged { .. } | Self::Json(_))
    }
}

/// A text that is not a transaction hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no transaction hash: 64 hex digits, with or without 0x")]
pub struct BadHash(String);

impl BadHash {
    /// Keeps the beginning of the text.
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
    /// The hash is invalid.
    #[error(transparent)]
    BadHash(#[from] BadHash),
    /// Too many hashes are registered that no node has seen.
    #[error("too many transactions are registered that no node of their chain has seen: {0}")]
    TooMany(Limit),
    /// It could not be stored.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Reason why there is no status of a transaction.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The hash is invalid.
    #[error(transparent)]
    BadHash(#[from] BadHash),
    /// Error of the database.
    #[error(transparent)]
    Failed(#[from] Error),
}
