//! The events of a contract from before it was a collection, from the records of its transactions.
//!
//! A contract may log transfers before it answers as a collection, for example a proxy before its upgrade. Its events are
//! not kept until then: most contracts that log such events never become one.

use chain::Account;
use chain::comet::Event;
use chain::evm::ethereum_events;
use chain::nft::{NftEvent, events_of_collection};
use schema::keys::{AccountKey, Role};
use schema::records;
use schema::tx::{AccountTxs, Txs};
use serde::Deserialize;
use store::{Table as _, Txn};

use crate::Error;
use crate::index::IndexContext;

/// The newest transactions of the contract that are read, and their bytes: about a second of work, once for each
/// collection.
const TXS: u64 = 1_000;
const BYTES: usize = 16 << 20;

/// Events that are applied together.
const EVENTS: usize = 20_000;

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    events: Vec<Event<'a>>,
}

/// The events about tokens of `contract` in its transactions below the sequence `end`, in chain order, each with the
/// sequence of its transaction. Of a contract with more transactions, those of the newest.
pub(super) fn earlier_events(
    txn: &mut Txn<'_>,
    context: &IndexContext,
    contract: Account,
    end: u64,
) -> Result<Vec<(u64, NftEvent)>, Error> {
    let owner = (AccountKey(contract), Role::Involved);
    let len = txn.len::<AccountTxs>(&owner)?;
    let (mut found, mut bytes, mut events) = (Vec::new(), 0, 0);
    for ordinal in (0..len).rev() {
        let Some(seq) = txn.nth::<AccountTxs>(&owner, ordinal)?.filter(|seq| *seq < end) else { continue };
        let json = records::find::<Txs>(txn, &context.codec, seq)?;
        bytes += json.len();
        if len - ordinal > TXS || bytes > BYTES || events > EVENTS {
            let contract = contract.to_hex();
            tracing::warn!(contract, before = seq, "the older tokens of a new NFT collection are not read");
            break;
        }
        let damaged = |error: serde_json::Error| schema::Error::Record {
            table: Txs::SPEC.name,
            key: seq.to_string(),
            reason: error.to_string(),
        };
        let mut record: Record<'_> = serde_json::from_slice(&json).map_err(damaged)?;
        record.events.extend(ethereum_events::events_of_record(&json));
        let of_tx = events_of_collection(context.vm, &context.prefix, &record.events, contract);
        events += of_tx.len();
        found.push((seq, of_tx));
    }
    let in_order = found.into_iter().rev();
    Ok(in_order.flat_map(|(seq, events)| events.into_iter().map(move |event| (seq, event))).collect())
}
