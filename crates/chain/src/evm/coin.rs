//! Coins of the bank on a chain with cosmos/evm or ethermint, whose balances the bank keeps: the changes that events tell, and
//! the contracts under which the EVM knows them.
//!
//! What a transaction of the EVM pays for its gas is in events; what it sends along is in none (since cosmos/evm 0.5), only in its
//! calls.

use alloy::primitives::U256;

use super::erc20::Erc20Event;
use super::log::bytes;
use crate::address::Account;
use crate::comet::{Event, ResultsResponse};
use crate::movement::{bank_coins, module_account};

/// The address that stands for the native coin (EIP-7528). Chains that wrap it for contracts do so at this address too.
pub const NATIVE: [u8; 20] = [0xee; 20];

/// The contract of a bank denom on a chain with the native coin `native`; `None` if the EVM knows it under no address that
/// follows from its name. That of a coin of another chain is the end of its denom.
pub fn contract_of(denom: &str, native: &str) -> Option<[u8; 20]> {
    if denom == native {
        return Some(NATIVE);
    }
    let hash: [u8; 32] = bytes(&format!("0x{}", denom.strip_prefix("ibc/")?))?;
    hash.last_chunk().copied()
}

/// The changes of balances in all events of a block, of accounts that the EVM can name.
pub fn events(results: &ResultsResponse<'_>, prefix: &str) -> Vec<Erc20Event> {
    let mut found = Vec::new();
    let evm = module_account("evm").to_bech32(prefix);
    let of_txs = results.txs_results.iter().flat_map(|result| &result.events);
    for event in of_txs.clone().chain(&results.finalize_block_events) {
        let (account, into) = match event.kind.as_ref() {
            "coin_spent" => (event.value("spender"), false),
            "coin_received" => (event.value("receiver"), true),
            _ => continue,
        };
        let account = account.and_then(|text| Account::from_bech32(text, prefix));
        let Some(account) = account.and_then(|account| account.as_bytes().try_into().ok()) else { continue };
        for (denom, amount) in bank_coins(event.value("amount").map_or("", |text| text)) {
            found.push(Erc20Event::Coin { denom: denom.to_owned(), account, amount, into });
        }
    }
    if of_txs.into_iter().any(|event| is_made_by(event, &evm)) {
        found.push(Erc20Event::ValuesInEvents);
    }
    found
}

/// Whether the EVM has made or destroyed coins: before cosmos/evm 0.5 it changes every balance so.
fn is_made_by(event: &Event<'_>, evm: &str) -> bool {
    let by = match event.kind.as_ref() {
        "coinbase" => event.value("minter"),
        "burn" => event.value("burner"),
        _ => None,
    };
    by.is_some_and(|by| **by == *evm)
}

/// What one call of a transaction sends along with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The calling account.
    pub from: [u8; 20],
    /// The called or created one, or that which inherits.
    pub to: [u8; 20],
    /// In the native coin's base units.
    pub amount: U256,
}

/// A call with its place in its transaction.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its place, from 0.
    pub index: u64,
    /// That of the calling one; negative for the first.
    pub parent: i64,
    /// `CALL`, `CREATE`, …
    pub kind: &'a str,
    /// Hex.
    pub from: &'a str,
    /// Hex.
    pub to: &'a str,
    /// Hex.
    pub value: &'a str,
    /// True if it has an error.
    pub failed: bool,
}

/// What the calls of a transaction, in order, have sent for good: a call that failed takes back what it and those within it sent.
pub fn sent<'a>(calls: impl IntoIterator<Item = Call<'a>>) -> Vec<Sent> {
    let (mut undone, mut all) = (std::collections::HashSet::new(), Vec::new());
    for call in calls {
        if call.failed || u64::try_from(call.parent).is_ok_and(|parent| undone.contains(&parent)) {
            undone.insert(call.index);
            continue;
        }
        let amount = call.value.strip_prefix("0x").and_then(|digits| U256::from_str_radix(digits, 16).ok());
        let moves = matches!(call.kind, "CALL" | "CREATE" | "CREATE2" | "SELFDESTRUCT");
        let Some(amount) = amount.filter(|amount| moves && !amount.is_zero()) else { continue };
        if let (Some(from), Some(to)) = (bytes(call.from), bytes(call.to)) {
            all.push(Sent { from, to, amount });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coin_of_another_chain_has_the_end_of_its_denom_as_address_and_others_have_none() {
        let hash = "ABCDEF0000000000000000000102030405060708090A0B0C0D0E0F1011121314";
        let mut expected = [0; 20];
        (1..=20).zip(&mut expected).for_each(|(n, byte)| *byte = n);
        assert_eq!(contract_of(&format!("ibc/{hash}"), "atest"), Some(expected));
        assert_eq!(contract_of("atest", "atest"), Some(NATIVE));
        for other in ["utest", "ibc/AB", "factory/a/b", "ibc/", "erc20:0x00"] {
            assert_eq!(contract_of(other, "atest"), None, "{other}");
        }
    }

    #[test]
    fn calls_within_a_failed_one_send_nothing_and_only_calls_that_have_a_value_of_their_own_send() {
        let (a, b) = (format!("0x{}", "aa".repeat(20)), format!("0x{}", "bb".repeat(20)));
        let call = |index, parent, kind, failed| Call {
            index,
            parent,
            kind,
            from: &a,
            to: &b,
            value: "0x07",
            failed,
        };
        let calls = [
            call(0, -1, "CALL", false),
            call(1, 0, "CALL", true),
            call(2, 1, "CALL", false),
            call(3, 2, "CREATE", false),
            call(4, 0, "DELEGATECALL", false),
            call(5, 0, "SELFDESTRUCT", false),
        ];
        let sent = sent(calls);
        assert_eq!(sent, [Sent { from: [0xaa; 20], to: [0xbb; 20], amount: U256::from(7) }; 2]);
    }
}
