//! What pages compute of a transaction's record.
//!
//! Members may be missing of a record, so that an unusual record still has a page.

use query::signed_tx::{Body, Message, SignedTx};
use query::v1::Tx;
use serde_json::value::RawValue;

/// The signed part; empty if the record has another form, as one that no descriptor decodes.
pub(crate) fn signed(tx: &Tx) -> SignedTx {
    serde_json::from_str(&tx.tx).unwrap_or_default()
}

/// True if a record is not a transaction: data that the proposer put into the block, for example votes with oracle prices on
/// chains with vote extensions. The chain cannot decode it, or finds no message in it, and refuses it.
pub(crate) fn is_block_data(tx: &Tx) -> bool {
    tx.code != 0 && signed(tx).body.messages.is_empty()
}

/// The types of the messages, in order.
pub(crate) fn types(body: &Body) -> Vec<String> {
    body.messages.iter().map(|message| message_type(message)).collect()
}

/// The type of a message; empty if it has none.
pub(crate) fn message_type(message: &RawValue) -> String {
    serde_json::from_str(message.get()).map(|Message { kind }| kind).unwrap_or_default()
}
