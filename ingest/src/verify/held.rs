//! Balances after random blocks, compared with the state of a node that has it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use chain::movement::Token;
use chain::{Account, U256, evm::abi};
use futures_util::StreamExt as _;
use node::{Node, StateAt};
use schema::audit::{AuditContext, Finding, Report};
use schema::balances::denom_in_bank;
use schema::known_balance::Known;
use schema::ledger::{BalanceTotals, History, Holder, LEDGER};
use schema::movement::TokenKey;
use schema::tokens;
use store::{Bounds, Order, RowCursor, Snapshot, Store, Table as _};

use super::owners::query;
use crate::Error;

/// Balances that are compared.
const SAMPLE: usize = 100;

/// Concurrent queries.
const CONCURRENT_QUERIES: usize = 8;

/// A balance to compare.
struct Sample {
    key: Vec<u8>,
    token: Token,
    denom: String,
    account: Account,
    height: u64,
    amount: U256,
}

/// Compares about [`SAMPLE`] balances, evenly spaced, each at a random height. One that the node does not tell is counted, but is
/// not a finding.
pub(super) async fn compare(
    store: &Arc<dyn Store>,
    node: &Arc<Node>,
    report: &mut Report,
) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let context = AuditContext::new(&*snapshot)?;
    let samples = samples(&*snapshot, report)?;
    let prefix = &context.identity.prefix;
    let queries = futures_util::stream::iter(samples)
        .map(|sample| async move { (held_in_state(node, prefix, &sample).await, sample) });
    let answers: Vec<_> = queries.buffered(CONCURRENT_QUERIES).collect().await;
    for (held, Sample { key, token, denom, account, height, amount }) in answers {
        let Some(held) = held else {
            report.unchecked("balances of random heights, which the node does not tell", 1);
            continue;
        };
        report.checked("balances of random heights", 1);
        if held == amount {
            continue;
        }
        let account = account.to_hex();
        if let Token::Denom(_) = token {
            let stored = format!("{amount} of {denom} after block {height}");
            let (kind, table, expected) = ("balance", BalanceTotals::SPEC, format!("{held}"));
            report.add(Finding { kind, table, key, stored, expected });
            report.note(
                "balances differ from those of the node: if no other row is damaged, `cairn db drop-index balances` and the \
                 next start ask for the first ones again"
                    .to_owned(),
            );
        } else {
            report.note(format!(
                "{account} has {held} of {denom} after block {height}, and movements lead to {amount}: the token changes \
                 balances without them"
            ));
        }
    }
    Ok(())
}

fn samples(snapshot: &dyn Snapshot, report: &mut Report) -> Result<Vec<Sample>, Error> {
    let Some(state) = LEDGER.state(snapshot)?.filter(|state| state.height >= state.from) else {
        return Ok(Vec::new());
    };
    let rows = || RowCursor::new(snapshot, BalanceTotals::SPEC, Bounds::all(), Order::Asc);
    let step = rows().count() / SAMPLE + 1;
    let mut samples = Vec::new();
    for row in rows().step_by(step) {
        let (key, value) = row?;
        // The audit reports rows that do not decode.
        let Ok(((TokenKey(token), Holder(Some(account))), _)) =
            store::table::decode_row::<BalanceTotals>(&key, &value)
        else {
            continue;
        };
        if tokens::reply(snapshot, &token)?.is_some_and(|reply| reply.is_derived) {
            report.unchecked("balances that a function of the token computes", 1);
            continue;
        }
        let height = state.from + RandomState::new().hash_one(&key) % (state.height - state.from + 1);
        let history = History::of(snapshot, &token, Holder(Some(account)))?;
        let last = history.until(height)?;
        let known = Known::of(snapshot, &token, account, &history)?.filter(Known::is_exact);
        match known.and_then(|known| known.at(height, last)) {
            Some(amount) => {
                let denom = denom_in_bank(snapshot, &token)?;
                samples.push(Sample { key, token, denom, account, height, amount });
            }
            None => report.unchecked("balances that are not known, or not exact", 1),
        }
    }
    Ok(samples)
}

/// What the node says; `None` if it does not.
async fn held_in_state(node: &Node, prefix: &str, sample: &Sample) -> Option<U256> {
    let Sample { token, denom, account, height, .. } = sample;
    match (token, node) {
        (Token::Erc20(contract), Node { evm: Some(evm), .. }) => {
            let data = abi::balance_of(account.as_bytes().try_into().ok()?);
            let answer = query(|| evm.call(*contract, &data, Some(*height))).await?;
            abi::read_uint(&answer)
        }
        (Token::Asset(_) | Token::Denom(_), Node { rest: Some(rest), .. }) => {
            let address = account.to_bech32(prefix);
            let coins = query(|| rest.balances(&address, StateAt::from(Some(*height)))).await?;
            let amount = coins.iter().find(|(other, _)| other == denom);
            amount.map_or(Some(U256::ZERO), |(_, amount)| U256::from_str_radix(amount, 10).ok())
        }
        _ => None,
    }
}
