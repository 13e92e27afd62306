//! Healing what needs no chain: rows that follow from others, and the tables of NFTs.

use store::{Batch, Durability, Store};

use super::Plan;
use crate::{Error, nft};

/// Bytes of one commit.
const BATCH_BYTES: usize = 4 << 20;

/// Writes the rows of `plan` that follow from others, and makes the tables of NFTs anew if it says so.
pub fn heal(store: &dyn Store, plan: &Plan) -> Result<(), Error> {
    let mut batch = Batch::new();
    for (table, key, value) in &plan.rows {
        match value {
            Some(value) => batch.put(table, key.clone(), value.clone()),
            None => batch.delete(table, key.clone()),
        }
        if batch.bytes() >= BATCH_BYTES {
            store.commit(std::mem::take(&mut batch), Durability::Buffered)?;
        }
    }
    store.commit(batch, Durability::Synced)?;
    if plan.nfts { nft::rebuild::rebuild(store) } else { Ok(()) }
}
