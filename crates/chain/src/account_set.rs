//! The accounts that one transaction touches, each once, in the order in which they were found.
//!
//! The order is a function of the transaction alone, so two indexers of one chain write the same rows.

use rustc_hash::FxHashSet;

use crate::address::Account;

/// Below this many accounts a look through the list is cheaper than a hash; nearly all transactions stay below.
const LINEAR: usize = 16;

/// A set of accounts that keeps the order of insertion. Reuse one per worker with [`AccountSet::clear`].
#[derive(Debug, Default, Clone)]
pub struct AccountSet {
    order: Vec<Account>,
    /// Filled only once the list is longer than [`LINEAR`].
    seen: FxHashSet<Account>,
}

impl AccountSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an account; whether it is new.
    pub fn insert(&mut self, account: Account) -> bool {
        if self.contains(&account) {
            return false;
        }
        self.order.push(account);
        if self.order.len() > LINEAR {
            if self.seen.is_empty() {
                self.seen.extend(self.order.iter().copied());
            } else {
                self.seen.insert(account);
            }
        }
        true
    }

    /// Whether the account was added.
    pub fn contains(&self, account: &Account) -> bool {
        if self.seen.is_empty() { self.order.contains(account) } else { self.seen.contains(account) }
    }

    /// The accounts in order of insertion.
    pub fn as_slice(&self) -> &[Account] {
        &self.order
    }

    /// Empties the set and keeps its memory.
    pub fn clear(&mut self) {
        self.order.clear();
        self.seen.clear();
    }
}

impl Extend<Account> for AccountSet {
    fn extend<I: IntoIterator<Item = Account>>(&mut self, accounts: I) {
        for account in accounts {
            self.insert(account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(n: u8) -> Account {
        Account::from_bytes(&[n; 20]).unwrap()
    }

    #[test]
    fn it_keeps_each_account_once_in_order_below_and_above_the_linear_bound() {
        let mut set = AccountSet::new();
        for round in 0..2 {
            for n in 0..100 {
                assert_eq!(set.insert(numbered(n)), round == 0);
            }
        }
        let expected: Vec<_> = (0..100).map(numbered).collect();
        assert_eq!(set.as_slice(), expected);
        set.clear();
        assert!(set.as_slice().is_empty());
        assert!(!set.contains(&numbered(1)));
    }
}
