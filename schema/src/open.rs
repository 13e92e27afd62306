//! Opening of a database: checks that it has this format and belongs to the configured chain.

use store::{Durability, Store};

use crate::meta::{self, Identity};
use crate::{Error, FORMAT, payload};

/// The format in the identity of a copy that is not complete: no program has it.
pub const UNFINISHED_COPY: u32 = 0;

/// The reason why a database cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It was created by a program with another format.
    #[error(
        "the database has format {found}, this program reads and writes format {FORMAT}: use the version that made it, \
         or index into a new directory"
    )]
    Format {
        /// The database's format.
        found: u32,
    },
    /// `cairn db copy` was interrupted.
    #[error("the database is an unfinished copy: run the same `cairn db copy` again, which continues it")]
    UnfinishedCopy,
    /// It was created with another setting.
    #[error(
        "the database was made with {what} `{found}`, not `{wanted}`: use another data directory, or run with `{found}`"
    )]
    Different {
        /// Which setting differs: `chain-id`, `vm`, `prefix` or `start-height`.
        what: &'static str,
        /// The database's.
        found: String,
        /// The configured value.
        wanted: String,
    },
    /// It is empty.
    #[error("the database is empty: run `cairn run` or `cairn ingest` on it first")]
    Empty,
}

/// The database's identity, or `None` if it is new. An error if it has another format or is an unfinished copy.
pub fn identity(store: &dyn Store) -> Result<Option<Identity>, Error> {
    let identity = meta::read::<Identity>(&*store.snapshot()?)?;
    match identity.as_ref().map(|identity| identity.format) {
        None | Some(FORMAT) => Ok(identity),
        Some(UNFINISHED_COPY) => Err(OpenError::UnfinishedCopy.into()),
        Some(found) => Err(OpenError::Format { found }.into()),
    }
}

/// Like [`identity`], but an empty database is an error.
pub fn existing(store: &dyn Store) -> Result<Identity, Error> {
    Ok(identity(store)?.ok_or(OpenError::Empty)?)
}

/// Checks that the database's identity is `wanted`. Initializes a new database with it and the shipped dictionaries.
pub fn or_create(store: &dyn Store, wanted: &Identity) -> Result<(), Error> {
    let Some(found) = identity(store)? else { return initialize(store, wanted) };
    let pairs = [
        ("chain-id", found.chain_id, wanted.chain_id.clone()),
        ("vm", found.vm, wanted.vm.clone()),
        ("prefix", found.prefix, wanted.prefix.clone()),
        ("start-height", found.start_height.to_string(), wanted.start_height.to_string()),
    ];
    for (what, found, wanted) in pairs {
        if found != wanted {
            return Err(OpenError::Different { what, found, wanted }.into());
        }
    }
    Ok(())
}

/// Writes the identity and the shipped dictionaries into a database without records.
pub fn initialize(store: &dyn Store, identity: &Identity) -> Result<(), Error> {
    store::commit_rows(store, Durability::Synced, |txn| {
        meta::put(txn, identity);
        payload::put_shipped(txn);
        Ok(())
    })
}
