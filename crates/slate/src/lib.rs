//! The store contract on object storage: an engine over SlateDB, an LSM store in a bucket of S3, GCS, Azure or another
//! object store.
//!
//! | Module | Contents |
//! |---|---|
//! | `location` | [`Location`]: an object store and a prefix, from a URL |
//! | `exclusive` | the test that a store lets one of several creators of an object win |
//! | `engine` | [`Engine`]: the runtime, the cache and the time limits that all databases of a process share |
//! | `writer` | [`SlateStore`]: the one process that writes a database; [`Announced`]: its durable commits |
//! | `reader` | [`SlateReader`]: a process that reads it, with snapshots that never change |
//! | `gate` | the clock that decides when a reader looks for new commits |
//! | `rows` | reads of tables, the same for both |
//! | `requests` | [`Requests`]: counts of requests to the object store |
//! | `settings` | SlateDB's settings, with reasons |
//! | `failure` | SlateDB's errors as [`store::Error`] |
//!
//! Without the cargo feature `engine` the crate is empty.
//!
//! # Guarantees
//!
//! * One writer: opening a database for writing fences the previous writer, whose next commit fails with
//!   [`store::Error::Fenced`]. This needs conditional writes of the object store, which are tested at each opening.
//! * A commit with [`store::Durability::Synced`] is in the object store. A buffered one may be lost with the process,
//!   always the newest and without gaps.
//! * Each snapshot, of the writer and of readers, is the state of all tables after one commit.
//! * Readers write nothing: credentials that may read and list are enough.
#![cfg_attr(
    not(feature = "engine"),
    allow(rustdoc::broken_intra_doc_links, reason = "the items are not there")
)]

#[cfg(feature = "engine")]
mod append;
#[cfg(feature = "engine")]
mod engine;
#[cfg(feature = "engine")]
mod exclusive;
#[cfg(feature = "engine")]
mod failure;
#[cfg(feature = "engine")]
mod gate;
#[cfg(feature = "engine")]
mod location;
#[cfg(feature = "engine")]
mod reader;
#[cfg(feature = "engine")]
mod requests;
#[cfg(feature = "engine")]
mod rows;
#[cfg(feature = "engine")]
mod settings;
#[cfg(feature = "engine")]
mod writer;

#[cfg(feature = "engine")]
pub use engine::{Engine, Options, install_crypto};
#[cfg(feature = "engine")]
pub use exclusive::check as check_conditional_writes;
#[cfg(feature = "engine")]
pub use location::Location;
#[cfg(feature = "engine")]
pub use reader::SlateReader;
#[cfg(feature = "engine")]
pub use requests::Requests;
#[cfg(feature = "engine")]
pub use slatedb::object_store;
#[cfg(feature = "engine")]
pub use writer::{Announced, SlateStore};
