//! The optional index `parties`: EVM transactions by their recipient.

use chain::{Account, JsonText};
use serde::Deserialize;
use store::List as _;

use crate::Error;
use crate::evm_tx::EvmTxs;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::keys::AccountKey;
use crate::records::damaged;

/// The index.
pub const PARTIES: Index = Index {
    name: "parties",
    version: 1,
    tables: &[RecipientEvmTxs::SPEC],
    replies: &[],
    input: Input::Records,
    needs_evm: true,
    rows,
};

store::tables! {
    /// EVM transactions that an account received from another one, or that created it; oldest first. Together with those that it
    /// sent ([`crate::evm_tx::AccountEvmTxs`]) these are its transactions as explorers list them, each once.
    ///
    /// | account (1 + 20) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list RecipientEvmTxs("recipient_evm_tx", 0x23): AccountKey;
}

/// The members of a receipt that name accounts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parties<'a> {
    #[serde(borrow)]
    from: JsonText<'a>,
    /// Empty for a creation.
    #[serde(borrow)]
    to: JsonText<'a>,
    #[serde(borrow, default)]
    contract_address: JsonText<'a>,
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    block.evm_txs(|seq, record| {
        let Parties { from, to, contract_address } =
            serde_json::from_slice(record).map_err(|error| damaged::<EvmTxs>(seq, &error.to_string()))?;
        let recipient = [to, contract_address].iter().find_map(|text| Account::from_hex_literal(text));
        match recipient {
            Some(recipient) if Account::from_hex_literal(&from) != Some(recipient) => {
                rows.push::<RecipientEvmTxs>(&AccountKey(recipient), seq)
            }
            _ => Ok(()),
        }
    })
}
