//! What nodes say of the supplies of tokens. It depends on when they were asked, so it is in no digest.

use chain::U256;
use chain::movement::Token;
use store::{Batch, Bounds, Durability, Message, Snapshot, Store, Table as _, Txn};

use crate::Error;
use crate::ledger::{Change, History, Holder, LEDGER};
use crate::movement::TokenKey;

store::tables! {
    /// Supplies as nodes gave them last.
    ///
    /// | token | → [`SupplyReply`] (protobuf)
    pub table SupplyReplies("token_supply", 0x6f, Point): TokenKey => Message<SupplyReply>;
}

/// A node's reply about a supply.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct SupplyReply {
    /// What the supply was before the first block of the ledger (big-endian, without leading zeros; modulo 2^256).
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub base: Vec<u8>,
    /// The last block of the state that was asked.
    #[prost(uint64, tag = "2")]
    pub height: u64,
}

/// Writes that the supply of `token` is `supply` after the block `height`, which the ledger must have.
pub fn put_supply(txn: &mut Txn<'_>, token: &Token, supply: U256, height: u64) -> Result<(), Error> {
    if LEDGER.state(txn)?.is_none_or(|state| state.height < height) {
        return Ok(());
    }
    let base = supply.wrapping_add(outside(txn, token, height)?).to_be_bytes_trimmed_vec();
    txn.put::<SupplyReplies>(&TokenKey(token.clone()), &Message(SupplyReply { base, height }));
    Ok(())
}

/// Removes what nodes have said about blocks after `to`: they may have been others.
pub(crate) fn rewind(store: &dyn Store, to: u64) -> Result<(), Error> {
    let mut batch = Batch::new();
    store::for_each_row(&*store.snapshot()?, SupplyReplies::SPEC, Bounds::all(), |key, row| {
        let (_, Message(reply)) = store::table::decode_row::<SupplyReplies>(key, row)?;
        if reply.height > to {
            batch.delete(SupplyReplies::SPEC, key.to_vec());
        }
        Ok::<(), Error>(())
    })?;
    if !batch.is_empty() {
        store.commit(batch, Durability::Buffered)?;
    }
    Ok(())
}

/// What the outside has got up to the block `height`, from which amounts are minted and to which they are burned.
pub(crate) fn outside(snapshot: &dyn Snapshot, token: &Token, height: u64) -> Result<U256, Error> {
    let history = History::of(snapshot, token, Holder(None))?;
    Ok(history.until(height)?.map_or(U256::ZERO, |(_, Change(change))| change))
}
