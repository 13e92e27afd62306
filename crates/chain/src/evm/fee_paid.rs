//! What a transaction paid as its fee, which is not its gas times its price: minievm takes the whole gas limit before execution and
//! returns a part of what was not used (`minievm:app/ante`, `app/posthandler`).

use serde::Deserialize;

use super::eth_form::{DECIMALS, ETHER, scaled};
use super::transfer::Standard;
use super::{Log, Receipt};
use crate::U256;
use crate::serde_lenient::JsonText;

/// The account that fees are paid to: the module account `fee_collector` of the Cosmos SDK.
const COLLECTOR: [u8; 20] = alloy::primitives::hex!("f1829676db577682e944fc3493d451b67ff3e29f");

/// The fee in wei that the transaction in the record of a Cosmos transaction paid, with its receipt. The fee of a failed transaction is
/// not returned, and has no logs. `most` is what the transaction offers in wei: its gas limit times its price. The decimals of the fee
/// token follow from it; those of another transaction, `decimals`, are tried first.
pub fn fee_paid(record: &[u8], receipt: &Receipt<'_>, most: U256, decimals: u8) -> U256 {
    let taken = match serde_json::from_slice::<Record<'_>>(record) {
        Ok(record) => record.tx.auth_info.fee.amount.into_iter().next(),
        Err(_) => None,
    };
    let taken = taken.and_then(|coin| U256::from_str_radix(&coin.amount, 10).ok()).unwrap_or_default();
    let candidates = [decimals].into_iter().chain(DECIMALS).chain(0..=36);
    let decimals =
        candidates.into_iter().find(|decimals| is_taken(taken, most, *decimals)).unwrap_or(decimals);
    scaled(taken.saturating_sub(returned(&receipt.logs)), decimals).unwrap_or(U256::MAX)
}

/// Whether `taken`, in the fee token with these decimals, is what minievm takes of an offer: one unit more than its whole ones.
fn is_taken(taken: U256, most: U256, decimals: u8) -> bool {
    let unit = |exponent: u8| U256::from(10).checked_pow(U256::from(exponent));
    let whole = match ETHER.checked_sub(decimals) {
        Some(down) => unit(down).and_then(|unit| most.checked_div(unit)),
        None => unit(decimals - ETHER).and_then(|unit| most.checked_mul(unit)),
    };
    whole.is_some_and(|whole| taken == whole || Some(taken) == whole.checked_add(U256::ONE))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Decimals differ between chains, and a process that has seen no value does not know them.
    #[test]
    fn the_decimals_of_the_fee_token_follow_from_the_offer() {
        let receipt: Receipt<'_> = serde_json::from_str(r#"{"logs":[]}"#).unwrap();
        let wei = |exponent: u32| U256::from(10).pow(U256::from(exponent));
        // 21,000 of gas at 1,000 gwei, and one unit that minievm adds.
        let most = U256::from(21_000) * wei(12);
        for (taken, expected) in [
            ("21000000000000001", U256::from(21_000) * wei(12) + U256::ONE),
            ("21001", U256::from(21_001) * wei(12)),
            ("2100001", U256::from(2_100_001) * wei(10)),
            ("21000000000000000000001", U256::from(21_000) * wei(12)),
        ] {
            let record =
                format!(r#"{{"tx":{{"auth_info":{{"fee":{{"amount":[{{"amount":"{taken}"}}]}}}}}}}}"#);
            for decimals in [18, 6, 0] {
                assert_eq!(
                    fee_paid(record.as_bytes(), &receipt, most, decimals),
                    expected,
                    "{taken} {decimals}"
                );
            }
        }
    }
}
