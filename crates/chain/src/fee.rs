//! Sums of declared fees over a block.
//!
//! Amounts are decimal texts of any length and are added as such: nothing overflows, nothing is rounded (T28, T35).

use std::collections::BTreeMap;

use crate::tx::Coin;

/// Declared fees per denom.
#[derive(Debug, Clone, Default)]
pub struct FeeTotals(BTreeMap<String, String>);

impl FeeTotals {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a transaction's declared fee. An amount that is no decimal number adds nothing: a node does not decode such
    /// a transaction.
    pub fn add(&mut self, fee: &[Coin]) {
        for coin in fee.iter().filter(|coin| is_decimal(&coin.amount)) {
            match self.0.get_mut(&coin.denom) {
                Some(total) => *total = add_decimal(total, &coin.amount),
                None => {
                    self.0.insert(coin.denom.clone(), add_decimal("0", &coin.amount));
                }
            }
        }
    }

    /// `(denom, amount)` sorted by denom, without zeros.
    pub fn into_sorted(self) -> Vec<(String, String)> {
        self.0.into_iter().filter(|(_, amount)| amount != "0").collect()
    }
}

/// Adds two decimal numbers of ASCII digits; the sum has no leading zeros.
fn add_decimal(a: &str, b: &str) -> String {
    if let (Ok(a), Ok(b)) = (a.parse::<u64>(), b.parse::<u64>()) {
        return (u128::from(a) + u128::from(b)).to_string();
    }
    let (mut a, mut b) = (a.bytes().rev(), b.bytes().rev());
    let mut reversed = String::new();
    let mut carry = 0;
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() && carry == 0 {
            break;
        }
        let sum = x.unwrap_or(b'0') - b'0' + (y.unwrap_or(b'0') - b'0') + carry;
        reversed.push(char::from(b'0' + sum % 10));
        carry = sum / 10;
    }
    let sum: String = reversed.trim_end_matches('0').chars().rev().collect();
    if sum.is_empty() { "0".to_owned() } else { sum }
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use alloy::primitives::U256;
    use proptest::prelude::*;

    use super::*;

    fn coin(amount: &str, denom: &str) -> Coin {
        Coin { denom: denom.to_owned(), amount: amount.to_owned() }
    }

    #[test]
    fn fees_are_merged_per_denom_sorted_and_zeros_are_dropped() {
        let mut totals = FeeTotals::new();
        totals.add(&[coin("5", "umin"), coin("0", "abc")]);
        totals.add(&[coin("007", "GAS"), coin("x", "umin"), coin("", "umin"), coin("-1", "umin")]);
        totals.add(&[coin("6", "umin")]);
        let expected = [("GAS", "7"), ("umin", "11")].map(|(d, a)| (d.to_owned(), a.to_owned()));
        assert_eq!(totals.into_sorted(), expected);
    }

    #[test]
    fn amounts_beyond_128_bits_survive() {
        let [big, double]: [U256; 2] = [200_usize, 201].map(|bits| U256::from(1) << bits);
        let big = big.to_string();
        let mut totals = FeeTotals::new();
        totals.add(&[coin(&big, "wei")]);
        totals.add(&[coin(&big, "wei")]);
        assert_eq!(totals.into_sorted()[0].1, double.to_string());
    }

    proptest! {
        #[test]
        fn sums_are_those_of_256_bit_numbers(a in any::<[u64; 4]>(), b in any::<[u64; 4]>(), cut in 1..255_usize) {
            let (a, b): (U256, U256) = (U256::from_limbs(a) >> cut, U256::from_limbs(b) >> 1_usize);
            prop_assert_eq!(add_decimal(&a.to_string(), &b.to_string()), (a + b).to_string());
        }
    }
}
