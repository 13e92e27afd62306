//! The first transaction that involved a contract: the API shows its block and signer for an EVM collection.

use std::borrow::Cow;

use chain::Account;
use chain::comet::Event;
use schema::Error as SchemaError;
use schema::block::Blocks;
use schema::keys::{AccountKey, Role};
use schema::payload::Codec;
use schema::records;
use schema::tx::{AccountTxs, Txs};
use serde::Deserialize;
use store::{Message, Table as _, Txn};

use crate::Error;
use crate::finality::signed;

/// The members of a transaction's record that are read.
pub(super) struct FirstTx {
    pub(super) height: u64,
    /// Nanoseconds since 1970 UTC.
    pub(super) time: i64,
    /// Its first signer.
    pub(super) signer: Option<Account>,
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    height: Cow<'a, str>,
    #[serde(borrow)]
    events: Vec<Event<'a>>,
}

/// The first indexed transaction that involves `contract`; `None` if it was only touched outside of transactions, or
/// before the index began.
pub(super) fn first_tx(
    txn: &mut Txn<'_>,
    codec: &Codec,
    prefix: &str,
    contract: Account,
) -> Result<Option<FirstTx>, Error> {
    let Some(seq) = txn.first::<AccountTxs>(&(AccountKey(contract), Role::Involved))? else {
        return Ok(None);
    };
    let damaged = |reason: String| {
        Error::Schema(SchemaError::Record { table: Txs::SPEC.name, key: seq.to_string(), reason })
    };
    let json = records::find::<Txs>(txn, codec, seq)?;
    let record: Record<'_> = serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
    let height = record.height.parse().map_err(|_| damaged("its height is not a number".to_owned()))?;
    let Message(block) = txn.find::<Blocks>(&height)?.ok_or(Error::BlockMissing { height })?;
    Ok(Some(FirstTx { height, time: block.time, signer: signer(&record, prefix) }))
}

fn signer(record: &Record<'_>, prefix: &str) -> Option<Account> {
    let (address, _) = signed(&record.events).next()?.split_once('/')?;
    Account::from_bech32(address, prefix)
}
