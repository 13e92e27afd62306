//! What a transaction paid as its fee, which is not its gas times its price: minievm takes the whole gas limit before execution and
//! returns a part of what was not used (`minievm:app/ante`, `app/posthandler`).

use serde::Deserialize;

use super::eth_form::scaled;
use super::log::bytes;
use super::{Log, Receipt};
use crate::U256;
use crate::serde_lenient::JsonText;

/// The account that fees are paid to: the module account `fee_collector` of the Cosmos SDK.
const COLLECTOR: [u8; 20] = alloy::primitives::hex!("f1829676db577682e944fc3493d451b67ff3e29f");

/// `Transfer(address,address,uint256)`.
const TRANSFER: [u8; 32] =
    alloy::primitives::hex!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

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
    let ([first, .., last], collector) = (logs, address_topic(&COLLECTOR)) else { return U256::ZERO };
    let transfer = |log: &Log<'_>| -> Option<([u8; 32], [u8; 32])> {
        let [name, from, to] = &log.topics[..] else { return None };
        (bytes(name) == Some(TRANSFER)).then_some((bytes(from)?, bytes(to)?))
    };
    match (transfer(first), transfer(last)) {
        (Some((payer, to)), Some((from, back)))
            if to == collector
                && from == collector
                && back == payer
                && first.address.eq_ignore_ascii_case(&last.address) =>
        {
            bytes::<32>(&last.data).map(U256::from_be_bytes).unwrap_or_default()
        }
        _ => U256::ZERO,
    }
}

fn address_topic(address: &[u8; 20]) -> [u8; 32] {
    let mut topic = [0; 32];
    topic[12..].copy_from_slice(address);
    topic
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
