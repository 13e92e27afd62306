//! Repairs that need no node: derived rows, and the NFT tables.

use store::{BulkWriter, Durability, Store};

use super::Plan;
use crate::{Error, nft};

/// Writes the derived rows of `plan`, and rebuilds the NFT tables if the plan requires it.
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
