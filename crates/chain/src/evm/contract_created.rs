//! The event by which minievm reports a contract, however it was created: by a message, or by another contract.

use crate::address::Account;
use crate::comet::Event;

/// Its type.
pub const EVENT: &str = "contract_created";

/// The contract that `event` reports.
pub fn read(event: &Event<'_>) -> Option<Account> {
    let contract = (event.kind == EVENT).then(|| event.value("contract"))??;
    Account::from_hex_literal(contract).filter(|account| account.as_bytes().len() == 20)
}
