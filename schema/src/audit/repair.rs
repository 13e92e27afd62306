//! Healing what needs no chain: rows that follow from others, and the tables of NFTs.

use store::{BulkWriter, Durability, Store};

use super::Plan;
use crate::{Error, nft};

/// Writes the rows of `plan` that follow from others, and makes the tables of NFTs anew if it says so.
pub fn apply(store: &dyn Store, plan: &Plan) -> Result<(), Error> {
    let mut writer = BulkWriter::new(store);
    for (table, key, value) in &plan.rows {
        match value {
            Some(value) => writer.put(table, key.clone(), value.clone())?,
            None => writer.delete(table, key.clone())?,
        }
    }
    writer.finish(Durability::Synced)?;
    if plan.nfts { nft::rebuild::rebuild(store) } else { Ok(()) }
}
