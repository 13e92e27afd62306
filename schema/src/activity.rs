//! The optional index `activity`: gas and accounts of hours and days.

use std::collections::BTreeSet;

use chain::comet::Event;
use chain::signer::sequence_accounts;
use chain::{Account, JsonText};
use serde::Deserialize;
use store::{Message, Table as _};

use crate::Error;
use crate::evm_tx::EvmTxs;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::keys::AccountKey;
use crate::records::damaged;
use crate::tx::Txs;

/// The index.
pub const ACTIVITY: Index = Index {
    name: "activity",
    version: 1,
    tables: &[Hours::SPEC, Days::SPEC, AccountHours::SPEC],
    replies: &[],
    input: Input::Records,
    needs_evm: false,
    rows,
};

/// An hour in nanoseconds.
pub const HOUR: i64 = 3_600_000_000_000;

const HOURS_OF_DAY: u64 = 24;

/// The event of a Cosmos transaction that only carries one of Ethereum (cosmos/evm, ethermint): the signer is that of the receipt, and
/// there is no other. minievm's receipts also have senders that did not sign.
const ETHEREUM_TX: &str = "ethereum_tx";

store::tables! {
    /// What was done in each hour (UTC) that has transactions.
    ///
    /// | hours since 1970 (8, BE) | → [`Activity`]
    pub table Hours("hour", 0xa2, Point): u64 => Message<Activity>;

    /// What was done on each day (UTC) that has transactions.
    ///
    /// | days since 1970 (8, BE) | → [`Activity`]
    pub table Days("day", 0xa3, Point): u64 => Message<Activity>;

    /// The last hour in which an account signed.
    ///
    /// | account (1 + 20 or 32) | → hours since 1970 (8, BE)
    pub table AccountHours("account_hour", 0xa4, Point): AccountKey => u64;
}

/// What was done in a period.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Activity {
    /// Gas that its transactions used.
    #[prost(uint64, tag = "1")]
    pub gas: u64,
    /// Accounts that signed a transaction.
    #[prost(uint64, tag = "2")]
    pub accounts: u64,
    /// Those of them that had signed none before.
    #[prost(uint64, tag = "3")]
    pub new_accounts: u64,
}

impl Activity {
    fn add(&mut self, more: Self) {
        self.gas = self.gas.saturating_add(more.gas);
        self.accounts += more.accounts;
        self.new_accounts += more.new_accounts;
    }
}

/// The members of a record that are needed here.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    gas_used: JsonText<'a>,
    #[serde(borrow)]
    events: Vec<Event<'a>>,
}

/// The member of a receipt that is needed here.
#[derive(Deserialize)]
struct Receipt<'a> {
    #[serde(borrow)]
    from: JsonText<'a>,
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let (mut of_hour, mut accounts) = (Activity::default(), BTreeSet::new());
    let (mut is_empty, mut carries) = (true, false);
    let prefix = &rows.chain().prefix;
    block.txs(|seq, record| {
        let invalid = |error: serde_json::Error| damaged::<Txs>(seq, &error.to_string());
        let Record { gas_used, events } = serde_json::from_slice(record).map_err(invalid)?;
        // A node may say less than zero; it then used none.
        of_hour.gas = of_hour.gas.saturating_add(gas_used.parse().unwrap_or_default());
        accounts.extend(sequence_accounts(&events, prefix));
        carries |= events.iter().any(|event| event.kind == ETHEREUM_TX);
        is_empty = false;
        Ok(())
    })?;
    if is_empty {
        return Ok(());
    }
    if carries {
        block.evm_txs(|seq, record| {
            let invalid = |error: serde_json::Error| damaged::<EvmTxs>(seq, &error.to_string());
            let Receipt { from } = serde_json::from_slice(record).map_err(invalid)?;
            accounts.extend(Account::from_hex_literal(&from));
            Ok(())
        })?;
    }
    // Times before 1970 are those of invalid headers.
    let hour = u64::try_from(block.time().div_euclid(HOUR)).unwrap_or_default();
    let day = hour / HOURS_OF_DAY;
    let mut of_day = of_hour;
    for account in accounts {
        let key = AccountKey(account);
        let last = rows.get::<AccountHours>(&key)?;
        let is_new = u64::from(last.is_none());
        if last != Some(hour) {
            of_hour.add(Activity { gas: 0, accounts: 1, new_accounts: is_new });
            rows.set::<AccountHours>(&key, &hour);
        }
        if last.is_none_or(|last| last / HOURS_OF_DAY != day) {
            of_day.add(Activity { gas: 0, accounts: 1, new_accounts: is_new });
        }
    }
    let sum = |stored: Option<Message<Activity>>, mut more: Activity| {
        more.add(stored.map(|Message(stored)| stored).unwrap_or_default());
        Message(more)
    };
    let (hours, days) = (rows.get::<Hours>(&hour)?, rows.get::<Days>(&day)?);
    rows.set::<Hours>(&hour, &sum(hours, of_hour));
    rows.set::<Days>(&day, &sum(days, of_day));
    Ok(())
}
