//! Sums of declared fees over a block.
//!
//! Amounts have up to 256 bits, as on the chain, and sums twice as many: nothing overflows or is rounded.

use std::collections::BTreeMap;

use alloy::primitives::{U256, U512};

use crate::tx::Coin;

/// Declared fees per denom.
#[derive(Debug, Clone, Default)]
pub struct FeeTotals(BTreeMap<String, U512>);

impl FeeTotals {
    /// An empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a transaction's declared fee. An amount that is not a decimal number of at most 256 bits adds nothing: a
    /// node does not decode such a transaction.
    pub fn add(&mut self, fee: &[Coin]) {
        for coin in fee {
            if let Some(amount) = decimal(&coin.amount) {
                *self.0.entry(coin.denom.clone()).or_default() += U512::from(amount);
            }
        }
    }

    /// `(denom, amount)` sorted by denom, without zeros.
    pub fn into_sorted(self) -> Vec<(String, String)> {
        let totals = self.0.into_iter().filter(|(_, amount)| !amount.is_zero());
        totals.map(|(denom, amount)| (denom, amount.to_string())).collect()
    }
}

fn decimal(text: &str) -> Option<U256> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| U256::from_str_radix(text, 10).ok()).flatten()
}

#[cfg(test)]
mod tests {
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
        totals.add(&[coin("6", "umin"), coin(&format!("1{}", U256::MAX), "umin")]);
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
        fn sums_are_those_of_wider_numbers(a in any::<[u64; 4]>(), b in any::<[u64; 4]>(), cut in 1..255_usize) {
            let (a, b) = (U256::from_limbs(a) >> cut, U256::from_limbs(b));
            let mut totals = FeeTotals::new();
            totals.add(&[coin(&a.to_string(), "wei"), coin(&b.to_string(), "wei")]);
            let sum = U512::from(a) + U512::from(b);
            let expected = (!sum.is_zero()).then(|| ("wei".to_owned(), sum.to_string()));
            prop_assert_eq!(totals.into_sorted(), Vec::from_iter(expected));
        }
    }
}
