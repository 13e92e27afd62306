//! What a transaction paid as its fee, which is not its gas times its price: minievm takes the whole gas limit before execution and
//! returns a part of what was not used (`minievm:app/ante`, `app/posthandler`).

use serde::Deserialize;

use super::eth_form::scaled;
use super::transfer::Standard;
use super::{Log, Receipt};
use crate::U256;
use crate::serde_lenient::JsonText;

/// The account that fees are paid to: the module account `fee_collector` of the Cosmos SDK.
const COLLECTOR: [u8; 20] = alloy::primitives::hex!("f1829676db577682e944fc3493d451b67ff3e29f");

/// The fee in wei that the transaction in the record of a Cosmos transaction paid, with its receipt. `decimals` are those of the fee
/// token. The fee of a failed transaction is not returned, and has no logs.
pub fn fee_paid(record: &[u8], receipt: &Receipt<'_>, decimals: u8) -> U256 {
    let taken = match serde_json::from_slice::<Record<'_>>(record) {
        Ok(record) => record.tx.auth_info.fee.amount.into_iter().next(),
        Err(_) => None,
    };
    let taken = taken.and_then(|coin| U256::from_str_radix(&coin.amount, 10).ok()).unwrap_or_default();
    scaled(taken.saturating_sub(returned(&receipt.logs)), decimals).unwrap_or(U256::MAX)
}

/// The part of the fee that the last log returns to who paid it in the first.
fn returned(logs: &[Log<'_>]) -> U256 {
    let [first, .., last] = logs else { return U256::ZERO };
    match (&Standard::Erc20.read(first)[..], &Standard::Erc20.read(last)[..]) {
        ([taken], [back])
            if taken.to == COLLECTOR
                && back.from == COLLECTOR
                && back.to == taken.from
                && first.address.eq_ignore_ascii_case(&last.address) =>
        {
            back.amount.unwrap_or_default()
        }
        _ => U256::ZERO,
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Record<'a> {
    tx: Tx<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Tx<'a> {
    auth_info: AuthInfo<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AuthInfo<'a> {
    fee: Fee<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Fee<'a> {
    amount: Vec<Coin<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Coin<'a> {
    amount: JsonText<'a>,
}
