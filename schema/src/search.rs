//! The optional index `search`: transactions by the attributes of their events that clients of nodes search for.

use std::collections::BTreeSet;

use chain::comet::Event;
use sha2::{Digest as _, Sha256};
use store::List as _;

use crate::Error;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::records::damaged;
use crate::tx::{TxRecord, Txs};

/// The index.
pub const SEARCH: Index = Index {
    name: "search",
    version: 1,
    tables: &[AttributeTxs::SPEC],
    replies: &[],
    input: Input::Records,
    needs_evm: false,
    rows,
};

store::tables! {
    /// Transactions that have an event with an attribute of [`LISTED`], oldest first, each once.
    ///
    /// | first 12 bytes of the SHA-256 of type, `.`, key, a byte 0 and value | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list AttributeTxs("attribute_tx", 0xa0): AttributeKey;
}

/// An attribute of an event, hashed: values may be long.
pub type AttributeKey = [u8; 12];

/// The attributes that are listed, as `type.key`: those of the known clients' searches that select few transactions.
pub const LISTED: [&str; 47] = [
    "acknowledge_packet.packet_dst_channel",
    "acknowledge_packet.packet_sequence",
    "acknowledge_packet.packet_src_channel",
    "call.contract",
    "coin_received.receiver",
    "coin_spent.spender",
    "contract_created.contract",
    "create.contract",
    "create_bridge.bridge_id",
    "create_client.client_id",
    "delete_output.output_index",
    "execute._contract_address",
    "execute.module_addr",
    "finalize_token_deposit.l1_sequence",
    "finalize_token_deposit.recipient",
    "finalize_token_withdrawal.l2_sequence",
    "finalize_token_withdrawal.to",
    "initiate_token_deposit.l1_sequence",
    "initiate_token_deposit.to",
    "initiate_token_withdrawal.from",
    "initiate_token_withdrawal.l2_sequence",
    "initiate_token_withdrawal.to",
    "instantiate._contract_address",
    "message.action",
    "message.module",
    "message.sender",
    "move.type_tag",
    "propose_output.output_index",
    "record_batch.submitter",
    "recv_packet.packet_dst_channel",
    "recv_packet.packet_sequence",
    "recv_packet.packet_src_channel",
    "send_packet.packet_dst_channel",
    "send_packet.packet_sequence",
    "send_packet.packet_src_channel",
    "timeout_packet.packet_dst_channel",
    "timeout_packet.packet_sequence",
    "timeout_packet.packet_src_channel",
    "transfer.recipient",
    "transfer.sender",
    "tx.fee_payer",
    "update_client.client_id",
    "update_client.consensus_height",
    "wasm._contract_address",
    "write_acknowledgement.packet_dst_channel",
    "write_acknowledgement.packet_sequence",
    "write_acknowledgement.packet_src_channel",
];

/// The owner of the list of an attribute; `None` if the attribute is not listed.
pub fn attribute_key(tag: &str, value: &str) -> Option<AttributeKey> {
    LISTED.binary_search(&tag).ok()?;
    let hash = Sha256::new().chain_update(tag).chain_update([0]).chain_update(value).finalize();
    hash.first_chunk().copied()
}

/// The events of a transaction.
pub fn events(record: &[u8]) -> Result<Vec<Event<'_>>, serde_json::Error> {
    TxRecord::read(record).map(|record| record.events)
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let mut tag = String::new();
    block.txs(|seq, record| {
        let events = events(record).map_err(|error| damaged::<Txs>(seq, &error.to_string()))?;
        let mut keys = BTreeSet::new();
        for event in &events {
            for attribute in &event.attributes {
                tag.clear();
                tag.extend([&*event.kind, ".", &*attribute.key]);
                keys.extend(attribute_key(&tag, &attribute.value));
            }
        }
        keys.iter().try_for_each(|key| rows.push::<AttributeTxs>(key, seq))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_the_key_depends_on_name_and_value() {
        assert!(LISTED.is_sorted());
        assert_eq!(attribute_key("message.unknown", "1"), None);
        assert_ne!(attribute_key("message.sender", "1"), attribute_key("message.sender", "2"));
        assert_ne!(attribute_key("message.sender", "1"), attribute_key("message.action", "1"));
    }
}
