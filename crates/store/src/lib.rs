//! Storage layer: ordered key-value tables with snapshots and atomic commits, on RocksDB or in memory. It is
//! independent of blockchains.
//!
//! | Module | Contents |
//! |---|---|
//! | [`engine`] | the engine contract: [`Store`], [`Snapshot`], bounded scans |
//! | [`spec`] | [`TableSpec`]: name, tag and access pattern of a table |
//! | [`batch`] | [`Batch`]: a write batch |
//! | [`bulk`] | [`BulkWriter`]: any number of writes, in commits of bounded size |
//! | [`rocks`] | the RocksDB engine: [`RocksStore`], with one writing process and any number of followers |
//! | [`copy_on_write`] | [`CopyOnWrite`]: a store that begins with the rows of another one |
//! | [`double_buffer`] | [`DoubleBuffer`]: consistent views of a database that another process writes |
//! | [`mem`] | the reference engine: [`MemStore`] |
//! | [`key`], [`value`] | order-preserving key encoding; value encoding |
//! | [`table`] | typed tables and reads |
//! | [`list`] | append-only lists as dense arrays: length, random access, exact pages |
//! | [`ranked`] | sorted sets with ranks (indexable skip lists) |
//! | [`txn`] | [`Txn`]: read-your-writes transactions and undo records |
//! | [`error`] | [`Error`]: failures and their remedies |
//!
//! Reads are synchronous and bounded: scans have a limit and return rows, so no iterator outlives a call. Writes go
//! through a [`Txn`] and one [`Store::commit`] per batch.
//!
//! ```
//! use store::{Counts, Durability, MemStore, Order, Store, Txn, key, list, table};
//!
//! store::tables! {
//!     /// A balance by holder.
//!     ///
//!     /// | holder (text) | → amount (varint) |
//!     pub table Balance("balance", 0x10, Point): key::Text => u64;
//!
//!     /// Sequences of the payments that a holder received.
//!     ///
//!     /// | holder (text) | ordinal (8, BE) | → sequence (varint) |
//!     pub list Payments("payments", 0x11): key::Text;
//! }
//!
//! # fn main() -> Result<(), store::Error> {
//! let store = MemStore::new();
//! let mut counts = Counts::new(1_000);
//! let alice = key::Text::from("alice");
//!
//! let snapshot = store.snapshot()?;
//! let mut txn = Txn::new(&*snapshot, &mut counts);
//! for (sequence, amount) in [(7, 100), (9, 50)] {
//!     let balance = txn.get::<Balance>(&alice)?.unwrap_or(0);
//!     txn.put::<Balance>(&alice, &(balance + amount));
//!     txn.push::<Payments>(&alice, sequence)?;
//! }
//! let (batch, pending) = txn.finish();
//! store.commit(batch, Durability::Synced)?;
//! counts.absorb(pending);
//!
//! // The old snapshot has not changed; a new one sees both tables.
//! assert_eq!(table::read::<Balance>(&*snapshot, &alice)?, None);
//! let snapshot = store.snapshot()?;
//! assert_eq!(table::rows::<Balance>(&*snapshot, &key::All, Order::Asc, 10)?, [(alice.clone(), 150)]);
//! assert_eq!(list::len::<Payments>(&*snapshot, &alice)?, 2);
//! assert_eq!(list::slice::<Payments>(&*snapshot, &alice, 0..2)?, [7, 9]);
//! assert_eq!(list::position::<Payments>(&*snapshot, &alice, 2, 8)?, 1);
//! # Ok(())
//! # }
//! ```

pub mod batch;
pub mod bulk;
pub mod copy_on_write;
pub mod double_buffer;
pub mod engine;
pub mod error;
pub mod key;
pub mod list;
pub mod mem;
mod merge;
pub mod ranked;
pub mod rocks;
pub mod spec;
pub mod table;
pub mod txn;
pub mod value;

pub use batch::Batch;
pub use bulk::BulkWriter;
pub use copy_on_write::CopyOnWrite;
pub use double_buffer::DoubleBuffer;
pub use engine::{Bounds, Durability, Order, Row, RowCursor, Snapshot, Store, for_each_row, prefix_end};
pub use error::Error;
pub use key::{Key, PrefixOf};
pub use list::{COUNT, List};
pub use mem::MemStore;
pub use ranked::{RANK, Ranked};
pub use rocks::{Backup, Backups, CorruptFile, RocksOptions, RocksStore, Statistics};
pub use spec::{Access, TableSpec};
pub use table::Table;
pub use txn::{Counts, Pending, Txn, UndoRecord, commit_rows};
pub use value::{Message, Value};
