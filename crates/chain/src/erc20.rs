//! ERC-20 balance changes in the events of a block (EVM only).
//!
//! # Invariants
//!
//! Every log that changes a balance is included. So block events and failed transactions count as well (the fee of a
//! failed one is paid too), and amounts are exact 256-bit numbers.

use alloy::primitives::U256;

use crate::comet::{Event, ResultsAnswer};
use crate::evm_log::{TransferLogs, bytes};
use crate::order::in_order;

/// A change of ERC-20 tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erc20Event {
    /// A contract logged a transfer. The contract may not be an ERC-20: an ERC-721 that does not index its token ids
    /// logs the same shape.
    Transfer {
        /// The contract that logged it.
        contract: [u8; 20],
        /// The sender; zero for a mint.
        from: [u8; 20],
        /// The recipient; zero for a burn.
        to: [u8; 20],
        /// The amount in the token's base units.
        amount: U256,
    },
    /// A contract was created: before this event all its balances are zero.
    Contract {
        /// The contract.
        contract: [u8; 20],
    },
    /// A contract was assigned to a bank denom, to hold its balances.
    Denom {
        /// The denom as the chain writes it; its case matters.
        denom: String,
        /// The contract.
        contract: [u8; 20],
    },
}

/// The ERC-20 events of a block, in chain order.
///
/// Malformed events are skipped: a transfer has three topics of 32 bytes, two of them addresses, and 32 bytes
/// of data.
pub fn events(results: &ResultsAnswer<'_>) -> Vec<Erc20Event> {
    let logs = TransferLogs::new();
    let mut found = Vec::new();
    for (_, event) in in_order(results) {
        match event.kind.as_ref() {
            "evm" => found.extend(logs.amounts(event).map(|log| Erc20Event::Transfer {
                contract: log.contract,
                from: log.from,
                to: log.to,
                amount: U256::from_be_bytes(log.value),
            })),
            "contract_created" => {
                found.extend(contract_of(event).map(|contract| Erc20Event::Contract { contract }));
            }
            "erc20_created" => found.extend(denom_of(event)),
            _ => {}
        }
    }
    found
}

fn denom_of(event: &Event<'_>) -> Option<Erc20Event> {
    let denom = event.value("denom").filter(|denom| !denom.is_empty())?;
    Some(Erc20Event::Denom { denom: denom.to_string(), contract: contract_of(event)? })
}

fn contract_of(event: &Event<'_>) -> Option<[u8; 20]> {
    bytes(event.value("contract")?)
}
