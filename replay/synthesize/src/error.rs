//! Reasons why a recording cannot be extended.

use std::io;

/// A recording cannot be extended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A profile of block sizes that does not exist.
    #[error("block sizes {0:?}: allowed are 0-4, 100, 5000")]
    BlockSizes(String),
    /// The recording has more transactions already.
    #[error("{wanted} transactions: the recording has {recorded} already; ask for more")]
    Short {
        /// The requested number.
        wanted: u64,
        /// The recorded number.
        recorded: u64,
    },
    /// No transaction of the recording can be copied.
    #[error(
        "{name} cannot be extended: {reason}; evm-load, evm-scenario, move-scenario and wasm-scenario can"
    )]
    Recording {
        /// The recording's name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The temporary file of hashes failed.
    #[error("the temporary file of block hashes: {0}; is the disk full?")]
    Io(#[from] io::Error),
}
