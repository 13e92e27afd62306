//! Balances in which two indexes differ, settled by the contracts' own replies.
//!
//! A token may change balances without a log. Its stored balances are then those that reconciliation has taken from the
//! contract, while a new index has only sums of logs: neither index proves the other wrong.
//!
//! # Invariants
//! * A stored balance that its contract confirms is never a finding.
//! * A balance of a token that drifts is never a finding without the contract's reply.

use std::collections::{BTreeMap, BTreeSet};

use chain::{U256, evm::abi};
use node::{BATCH, ContractCall, Evm, Kind, StateAt};
use schema::audit::{Report, compare};
use schema::rich::{Address, Balances, Erc20, Erc20s, amount_of};
use store::{Key as _, Message, Snapshot, Table as _, Value as _};

use crate::Error;
use crate::rich::address_text;

/// Balances that are asked of contracts; further ones are not compared.
const MAX_ASKED: usize = 100_000;

/// Attempts before a question counts as unanswered.
const ATTEMPTS: u32 = 3;

/// The outcome for the balances that differ.
#[derive(Default)]
pub(super) struct Settled {
    /// The expected value by key, of balances whose contract has replied.
    expected: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Tokens whose other balances are not compared.
    left_out: BTreeSet<Address>,
    /// Whether a stored row is right, and differs from the new index.
    pub(super) keeps_rows: bool,
}

/// A balance that differs.
struct Differing {
    key: Vec<u8>,
    stored: Option<Vec<u8>>,
    indexed: Option<Vec<u8>>,
}

impl Settled {
    /// Asks the contracts about each balance that differs between the database and the `indexed` rows, in the state of
    /// `height`, which is that of both.
    pub(super) async fn read(
        (stored, indexed): (&dyn Snapshot, &dyn Snapshot),
        evm: Option<&Evm>,
        height: u64,
        report: &mut Report,
    ) -> Result<Self, Error> {
        let (mut differing, mut beyond) = (Vec::new(), 0);
        compare::differences((stored, indexed), Balances::SPEC, &[], |key, stored, indexed| {
            let [stored, indexed] = [stored, indexed].map(|value| value.map(<[u8]>::to_vec));
            if differing.len() < MAX_ASKED {
                differing.push(Differing { key: key.to_vec(), stored, indexed });
            } else {
                beyond += 1;
            }
            Ok::<(), Error>(())
        })?;
        report.unchecked("balances beyond the first that differ", beyond);
        let mut settled = Self { keeps_rows: beyond > 0, ..Self::default() };
        let (mut confirmed, mut unanswered) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
        for some in differing.chunks(BATCH) {
            let replies = replies(some, evm, height).await;
            for (row, reply) in some.iter().zip(replies) {
                let Some((contract, _)) = <(Address, Address)>::from_bytes(&row.key) else { continue };
                let token = token(stored, &contract)?;
                match reply {
                    Some(amount) if amount == held(row.stored.as_deref()) => {
                        *confirmed.entry(contract).or_default() += 1;
                        settled.expected.insert(row.key.clone(), row.stored.clone());
                    }
                    Some(amount) if amount == held(row.indexed.as_deref()) => {}
                    Some(amount) => {
                        let zeros = amount.leading_zeros() / 8;
                        let value = amount.to_be_bytes::<32>()[zeros..].to_vec();
                        let is_absent = amount.is_zero() && token.complete;
                        settled.expected.insert(row.key.clone(), (!is_absent).then_some(value));
                    }
                    None if token.drifting || self::token(indexed, &contract)?.drifting => {
                        *unanswered.entry(contract).or_default() += 1;
                        settled.left_out.insert(contract);
                    }
                    None => {}
                }
            }
        }
        settled.keeps_rows |= !confirmed.is_empty() || !unanswered.is_empty();
        for (contract, n) in confirmed {
            let contract = address_text(&contract);
            report.note(format!(
                "token {contract}: {n} balances are those of its contract at height {height}, not the sums of its logs"
            ));
        }
        for (contract, n) in unanswered {
            report.unchecked("balances of tokens that drift, for want of their contracts' replies", n);
            report.note(format!("token {}: {n} balances are not compared", address_text(&contract)));
        }
        Ok(settled)
    }

    /// The value to compare a stored balance with.
    pub(super) fn expected<'a>(
        &'a self,
        key: &[u8],
        stored: Option<&'a [u8]>,
        indexed: Option<&'a [u8]>,
    ) -> Option<&'a [u8]> {
        if let Some(expected) = self.expected.get(key) {
            return expected.as_deref();
        }
        let is_left_out = key.first_chunk().is_some_and(|contract| self.left_out.contains(contract));
        if is_left_out { stored } else { indexed }
    }
}

/// The row to compare a stored token with. What reconciliation has found out about a token is a part of its history:
/// another index may not have found it yet, or by other samples.
pub(super) fn token_row(stored: Option<&[u8]>, indexed: Option<&[u8]>) -> Option<Vec<u8>> {
    let decoded = |row: Option<&[u8]>| Message::<Erc20>::decode(row?).map(|Message(token)| token);
    let (Some(stored), Some(indexed)) = (decoded(stored), decoded(indexed)) else {
        return indexed.map(<[u8]>::to_vec);
    };
    Some(Message(Erc20 { silent: indexed.silent, ..stored }).encoded())
}

fn token(snapshot: &dyn Snapshot, contract: &Address) -> Result<Erc20, Error> {
    let row = snapshot.get(Erc20s::SPEC, contract)?;
    // The audit reports a row that does not decode.
    Ok(row.and_then(|row| Message::<Erc20>::decode(&row)).map(|Message(token)| token).unwrap_or_default())
}

/// The amount in a row; a missing or malformed one has none.
fn held(row: Option<&[u8]>) -> U256 {
    row.and_then(amount_of).map(U256::from_be_bytes).unwrap_or_default()
}

/// The contracts' replies, in the order of `rows`; `None` without one.
async fn replies(rows: &[Differing], evm: Option<&Evm>, height: u64) -> Vec<Option<U256>> {
    let call = |row: &Differing| {
        let (to, account) = <(Address, Address)>::from_bytes(&row.key).unwrap_or_default();
        ContractCall { to, data: abi::balance_of(account) }
    };
    let calls: Vec<_> = rows.iter().map(call).collect();
    let Some(evm) = evm else { return vec![None; rows.len()] };
    let state = StateAt { exact: true, ..StateAt::from(Some(height)) };
    let mut replies = Vec::new();
    for step in 0..ATTEMPTS {
        if step > 0 {
            tokio::time::sleep(node::retry::Backoff::default().delay(step)).await;
        }
        replies = evm.calls(&calls, &state).await;
        let is_final = |reply: &Result<_, node::Error>| {
            reply.as_ref().err().is_none_or(|error| error.kind() == Kind::Permanent)
        };
        if replies.iter().all(is_final) {
            break;
        }
    }
    replies.into_iter().map(|reply| abi::read_uint(&reply.ok()?)).collect()
}
