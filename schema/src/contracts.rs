//! The optional index `contracts`: the transactions that created a contract.

use chain::comet::Event;
use chain::evm::{contract_created, ethereum_events};
use memchr::memmem;
use serde::Deserialize;
use store::List as _;

use crate::Error;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::keys::AccountKey;
use crate::records::damaged;
use crate::tx::Txs;

/// The index.
pub const CONTRACTS: Index = Index {
    name: "contracts",
    version: 1,
    tables: &[ContractTxs::SPEC],
    replies: &[],
    input: Input::Records,
    needs_evm: true,
    rows,
};

store::tables! {
    /// Cosmos transactions that created an EVM contract, oldest first. A contract that destroyed itself may be created again.
    ///
    /// | account (1 + 20) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list ContractTxs("contract_tx", 0x27): AccountKey;
}

/// The events in a record.
#[derive(Deserialize)]
struct Events<'a> {
    #[serde(borrow)]
    events: Vec<Event<'a>>,
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let name = memmem::Finder::new(contract_created::EVENT);
    let mut created = Vec::new();
    block.txs(|seq, record| {
        // Few transactions have the event, and parsing is what costs.
        if name.find(record).is_none() && !ethereum_events::is_in(record) {
            return Ok(());
        }
        let Events { mut events } =
            serde_json::from_slice(record).map_err(|error| damaged::<Txs>(seq, &error.to_string()))?;
        events.extend(ethereum_events::events_of_record(record));
        created.clear();
        created.extend(events.iter().filter_map(contract_created::read).map(AccountKey));
        created.sort_unstable();
        created.dedup();
        created.iter().try_for_each(|contract| rows.push::<ContractTxs>(contract, seq))
    })
}
