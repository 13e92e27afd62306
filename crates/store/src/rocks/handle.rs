//! An open database and its column families.

use std::ops::Deref;

use rocksdb::{ColumnFamily, DB};

use crate::{error::Error, spec::TableSpec};

/// An open database. Drop waits until flushes and compactions have stopped, because they must not outlive the process.
pub(super) struct Handle(pub(super) DB);

impl Deref for Handle {
    type Target = DB;

    fn deref(&self) -> &DB {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.cancel_all_background_work(true);
    }
}

pub(super) fn family<'a>(db: &'a DB, table: &'static TableSpec) -> Result<&'a ColumnFamily, Error> {
    db.cf_handle(table.name).ok_or(Error::UnopenedTable { table: table.name })
}
