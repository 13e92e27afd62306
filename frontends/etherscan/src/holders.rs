//! Holders: of tokens, and of the native currency, which is a token here. And the tokens of an account.

use chain::U256;
use query::evm::history::HeldToken;
use serde_json::{Value, json};

use crate::node::{JsonCall, number, of_contract};
use crate::outcome::{Failure, Outcome, Success};
use crate::reads::Reads;
use crate::token::decimals;

/// Rows of a list.
const MAX_ROWS: u64 = 10_000;

/// Decimals of wei.
const WEI: u64 = 18;

/// Calls of the node about what was found in the index, and what is made of their replies.
pub(crate) struct Follow {
    pub(crate) calls: Vec<JsonCall>,
    pub(crate) print: Box<dyn FnOnce(Vec<Value>) -> Outcome + Send>,
}

/// The number of the holders of a contract, and those of a page with their amounts.
fn holders(reads: &Reads<'_>, contract: [u8; 20]) -> Result<(u64, Vec<(String, U256)>), Failure> {
    let window = reads.form.page(MAX_ROWS, 0..=u64::MAX)?;
    let found = reads.view.holders_of(contract, window.skip, window.take)?;
    if found.is_incomplete {
        return Err(Failure::Text("Error! Not all holders of this token are known".to_owned()));
    }
    let rows =
        found.page.into_iter().map(|(account, amount)| (format!("0x{}", hex::encode(account)), amount));
    Ok((found.count, rows.collect()))
}

fn list(rows: Vec<Value>) -> Success {
    if rows.is_empty() {
        return Success::Marked("0", "No token holder found", b"[]".to_vec());
    }
    Success::Result(Value::from(rows).to_string().into_bytes())
}

fn of_form(reads: &Reads<'_>) -> Result<(u64, Vec<(String, U256)>), Failure> {
    holders(reads, reads.form.one_address("contractaddress")?)
}

pub(crate) fn tokenholderlist(reads: &Reads<'_>) -> Outcome {
    let row = |(account, amount): (String, U256)| json!({ "TokenHolderAddress": account, "TokenHolderQuantity": amount.to_string() });
    Ok(list(of_form(reads)?.1.into_iter().map(row).collect()))
}

/// The same list as Blockscout has it.
pub(crate) fn gettokenholders(reads: &Reads<'_>) -> Outcome {
    let row = |(account, amount): (String, U256)| json!({ "address": account, "value": amount.to_string() });
    Ok(list(of_form(reads)?.1.into_iter().map(row).collect()))
}

pub(crate) fn tokenholdercount(reads: &Reads<'_>) -> Outcome {
    Ok(Success::text(&of_form(reads)?.0.to_string()))
}

/// The tokens of a page of those that an account holds.
fn held(reads: &Reads<'_>, row: impl Fn(HeldToken) -> Value) -> Outcome {
    let account = reads.form.one_address("address")?;
    let window = reads.form.page(MAX_ROWS, 0..=u64::MAX)?;
    let rows: Vec<_> =
        reads.view.tokens_of(account, window.skip, window.take)?.into_iter().map(row).collect();
    if rows.is_empty() {
        return Ok(Success::Marked("0", "No tokens found", b"[]".to_vec()));
    }
    Ok(Success::Result(Value::from(rows).to_string().into_bytes()))
}

pub(crate) fn addresstokenbalance(reads: &Reads<'_>) -> Outcome {
    held(reads, |HeldToken { contract, amount, texts }| {
        json!({
            "TokenAddress": format!("0x{}", hex::encode(contract)),
            "TokenName": texts.name,
            "TokenSymbol": texts.symbol,
            "TokenQuantity": amount.to_string(),
            "TokenDivisor": decimals(&texts),
        })
    })
}

/// The same list as Blockscout has it.
pub(crate) fn tokenlist(reads: &Reads<'_>) -> Outcome {
    held(reads, |HeldToken { contract, amount, texts }| {
        json!({
            "balance": amount.to_string(),
            "contractAddress": format!("0x{}", hex::encode(contract)),
            "decimals": decimals(&texts),
            "name": texts.name,
            "symbol": texts.symbol,
            "type": "ERC-20",
        })
    })
}

/// The token that the native currency is.
fn native(reads: &Reads<'_>) -> Result<[u8; 20], Failure> {
    let none = || Failure::Text("Error! No token of the native currency is known".to_owned());
    reads.view.fee_token()?.ok_or_else(none)
}

/// An amount of the native currency in wei, by the reply that has the decimals of its token.
fn wei(amount: U256, decimals: &Value) -> Result<U256, Failure> {
    let unknown = || Failure::Text("Error! The native currency has no known decimals".to_owned());
    let decimals: u64 = number(decimals)?.parse().map_err(|_| unknown())?;
    let scale = WEI.checked_sub(decimals).ok_or_else(unknown)?;
    U256::from(10)
        .checked_pow(U256::from(scale))
        .and_then(|scale| amount.checked_mul(scale))
        .ok_or_else(unknown)
}

/// Blockscout's list of accounts by their balances.
pub(crate) fn listaccounts(reads: &Reads<'_>) -> Result<Follow, Failure> {
    let token = native(reads)?;
    let (_, rows) = holders(reads, token)?;
    let print = move |replies: Vec<Value>| {
        let decimals = replies.into_iter().next().unwrap_or_default();
        let row = |(account, amount)| {
            let balance = wei(amount, &decimals)?.to_string();
            Ok(json!({ "address": account, "balance": balance, "stale": false }))
        };
        Ok(list(rows.into_iter().map(row).collect::<Result<_, Failure>>()?))
    };
    Ok(Follow { calls: vec![of_contract(token, &chain::evm::abi::decimals())], print: Box::new(print) })
}

pub(crate) fn ethsupply(reads: &Reads<'_>) -> Result<Follow, Failure> {
    let token = native(reads)?;
    let print = |replies: Vec<Value>| {
        let [supply, decimals] = &replies[..] else {
            return Err(Failure::Text("Error! The node gave no number".to_owned()));
        };
        let supply = U256::from_str_radix(&number(supply)?, 10).unwrap_or_default();
        Ok(Success::text(&wei(supply, decimals)?.to_string()))
    };
    let calls = [chain::evm::abi::total_supply(), chain::evm::abi::decimals()];
    Ok(Follow { calls: calls.iter().map(|data| of_contract(token, data)).collect(), print: Box::new(print) })
}
