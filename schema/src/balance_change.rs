//! How movements have changed each balance, after each block that changed it.
//!
//! A balance at any height is a balance that is known at one height, and the difference of the changes at the two. So these
//! rows follow from movements alone, and no state of an earlier height is needed.
//!
//! # Invariants
//!
//! * A balance with n changes has the ordinals 0 to n - 1, `ROW` in each row; heights ascend.
//! * The changes of all holders of a token, the outside included, add up to 0.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use chain::movement::{Movement, Token};
use chain::{Account, U256};
use serde_json::{Value as Json, json};
use store::value::{put_varint, take_varint};
use store::{Key, Snapshot, Table as _, Value};

use crate::Error;
use crate::index::Rows;
use crate::keys::AccountKey;
use crate::movement::TokenKey;

/// Changes of a row.
const ROW: u64 = store::list::ROW;

store::tables! {
    /// How all movements have changed the balances of a token.
    ///
    /// | token | holder: an account (1 + 20 or 32), or 0 for what was minted and burned (1) | → [`Total`]
    pub table BalanceTotals("balance_total", 0x78, Point): (TokenKey, Holder) => Total;

    /// How movements had changed a balance after each block that changed it, oldest first.
    ///
    /// | token | holder | first ordinal (8, BE) | → up to 32 of them ([`ChangeRow`])
    pub table BalanceChanges("balance_change", 0x79, Scan): (TokenKey, Holder, u64) => ChangeRow;
}

/// Who holds an amount: an account, or `None`, from where amounts are minted and to where they are burned. Its change is what
/// the supply has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder(pub Option<Account>);

impl Key for Holder {
    fn put(&self, out: &mut Vec<u8>) {
        match self.0 {
            Some(account) => AccountKey(account).put(out),
            None => out.push(0),
        }
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(self.0.map(|account| hex::encode(account.as_bytes())).into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        if let Some(rest) = input.strip_prefix(&[0]) {
            *input = rest;
            return Some(Self(None));
        }
        AccountKey::take(input).map(|AccountKey(account)| Self(Some(account)))
    }
}

/// What was received less what was given since the first block of the index. Modulo 2^256, because a contract may log amounts
/// whose sum is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change(pub U256);

impl Change {
    fn parts(self) -> (bool, U256) {
        let is_negative = is_negative(self.0);
        (is_negative, if is_negative { self.0.wrapping_neg() } else { self.0 })
    }

    /// The amount that `base` becomes by the change; `None` if it would be negative.
    pub fn amount_after(self, base: U256) -> Option<U256> {
        Some(base.wrapping_add(self.0)).filter(|amount| !is_negative(*amount))
    }

    /// The amount that has become `amount` by the change.
    #[must_use]
    pub fn taken_from(self, amount: U256) -> U256 {
        amount.wrapping_sub(self.0)
    }

    fn put(self, out: &mut Vec<u8>) {
        let (is_negative, amount) = self.parts();
        let amount = amount.to_be_bytes_trimmed_vec();
        // At most 32 bytes.
        out.push(u8::try_from(amount.len()).unwrap_or_default() | if is_negative { NEGATIVE } else { 0 });
        out.extend_from_slice(&amount);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let (head, rest) = input.split_first()?;
        let (amount, rest) = rest.split_at_checked(usize::from(head & !NEGATIVE))?;
        let number = U256::try_from_be_slice(amount).filter(|_| amount.first() != Some(&0))?;
        let is_negative = head & NEGATIVE != 0;
        let change = Self(if is_negative { number.wrapping_neg() } else { number });
        *input = rest;
        // One form of each number.
        (change.parts().0 == is_negative).then_some(change)
    }
}

const NEGATIVE: u8 = 0x80;

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is_negative, amount) = self.parts();
        write!(f, "{}{amount}", if is_negative { "-" } else { "" })
    }
}

/// The change after the last block.
///
/// | number of blocks that have changed it (varint) | change: its length, plus 128 if it is negative (1), and its bytes (big-endian,
/// without sign and leading zeros) |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number of blocks that have changed it.
    pub blocks: u64,
    /// The change.
    pub change: Change,
}

impl Value for Total {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(self.blocks, out);
        self.change.put(out);
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let total = Self { blocks: take_varint(&mut bytes)?, change: Change::take(&mut bytes)? };
        bytes.is_empty().then_some(total)
    }

    fn json(&self) -> Json {
        json!([self.blocks, self.change.to_string()])
    }
}

/// The changes after consecutive blocks that have changed the balance.
///
/// Each is: | height (varint) | change, as in [`Total`] |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeRow(pub Vec<(u64, Change)>);

impl Value for ChangeRow {
    fn encode(&self, out: &mut Vec<u8>) {
        for (height, change) in &self.0 {
            put_varint(*height, out);
            change.put(out);
        }
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            all.push((take_varint(&mut bytes)?, Change::take(&mut bytes)?));
        }
        Some(Self(all)).filter(|all| (1..=ROW).contains(&(all.0.len() as u64)))
    }

    fn json(&self) -> Json {
        self.0.iter().map(|(height, change)| json!([height, change.to_string()])).collect()
    }
}

/// The changes of a block.
#[derive(Default)]
pub(super) struct BlockChanges(BTreeMap<(Token, Holder), U256>);

impl BlockChanges {
    pub(super) fn add(&mut self, movement: &Movement) {
        let Movement { token, from, to, amount, .. } = movement;
        if from == to || amount.is_zero() || !has_balances(token) {
            return;
        }
        for (account, change) in [(from, amount.wrapping_neg()), (to, *amount)] {
            let sum = self.0.entry((token.clone(), Holder(*account))).or_default();
            *sum = sum.wrapping_add(change);
        }
    }

    pub(super) fn write(self, height: u64, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
        for ((token, holder), added) in self.0.into_iter().filter(|(_, added)| !added.is_zero()) {
            let owner = (TokenKey(token), holder);
            let Total { blocks, change } = rows.get::<BalanceTotals>(&owner)?.unwrap_or_default();
            let change = Change(change.0.wrapping_add(added));
            rows.set::<BalanceTotals>(&owner, &Total { blocks: blocks + 1, change });
            let row = (owner.0, owner.1, first_of_row(blocks));
            rows.append::<BalanceChanges>(&row, &ChangeRow(vec![(height, change)]));
        }
        Ok(())
    }
}

/// True for an amount that is more than half of all numbers: it is rather less than 0.
pub fn is_negative(amount: U256) -> bool {
    amount.bit(255)
}

fn first_of_row(ordinal: u64) -> u64 {
    ordinal - ordinal % ROW
}

/// True for tokens with an amount for each account.
pub fn has_balances(token: &Token) -> bool {
    !matches!(token, Token::Erc721(_) | Token::Erc1155(_) | Token::Collection(_) | Token::Cw721(_))
}

/// The history of one balance: an array of the blocks that have changed it.
pub struct History<'a> {
    snapshot: &'a dyn Snapshot,
    owner: (TokenKey, Holder),
    total: Total,
}

impl<'a> History<'a> {
    /// That of `holder` in `token`.
    pub fn of(snapshot: &'a dyn Snapshot, token: &Token, holder: Holder) -> Result<Self, store::Error> {
        let owner = (TokenKey(token.clone()), holder);
        let total = store::table::read::<BalanceTotals>(snapshot, &owner)?.unwrap_or_default();
        Ok(Self { snapshot, owner, total })
    }

    /// Number of blocks that have changed the balance.
    pub fn len(&self) -> u64 {
        self.total.blocks
    }

    /// True if none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The change after the last block.
    pub fn total(&self) -> Change {
        self.total.change
    }

    /// Number of the blocks before `height`.
    pub fn position(&self, height: u64) -> Result<u64, store::Error> {
        let (mut low, mut high) = (0, self.len().div_ceil(ROW));
        while low < high {
            let middle = low.midpoint(high);
            let row = self.row(middle * ROW)?.0;
            match row.partition_point(|(at, _)| *at < height) {
                0 => high = middle,
                all if all == row.len() => low = middle + 1,
                some => return Ok(middle * ROW + some as u64),
            }
        }
        Ok(self.len().min(low * ROW))
    }

    /// The last of the blocks up to `height`, with the change after it; `None` if there is none.
    pub fn until(&self, height: u64) -> Result<Option<(u64, Change)>, store::Error> {
        let end = self.position(height.saturating_add(1))?;
        Ok(match end.checked_sub(1) {
            Some(last) => self.slice(last..end)?.pop(),
            None => None,
        })
    }

    /// The blocks with these ordinals, each with the change after it.
    pub fn slice(&self, ordinals: Range<u64>) -> Result<Vec<(u64, Change)>, store::Error> {
        let mut found = Vec::new();
        let mut next = ordinals.start;
        while next < ordinals.end {
            let first = first_of_row(next);
            let row = self.row(first)?.0;
            let end = ordinals.end.min(first + ROW);
            let place = |ordinal: u64| usize::try_from(ordinal - first).unwrap_or(usize::MAX);
            let part = row.get(place(next)..place(end)).ok_or_else(|| self.missing(first))?;
            found.extend_from_slice(part);
            next = end;
        }
        Ok(found)
    }

    fn row(&self, first: u64) -> Result<ChangeRow, store::Error> {
        let key = (self.owner.0.clone(), self.owner.1, first);
        let row = store::table::read::<BalanceChanges>(self.snapshot, &key)?;
        row.ok_or_else(|| self.missing(first))
    }

    fn missing(&self, first: u64) -> store::Error {
        let key = (self.owner.0.clone(), self.owner.1, first).to_bytes();
        store::table::corrupt(BalanceChanges::SPEC, &key, "the row is missing or short")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::{Counts, Durability, MemStore, Store as _, Txn};

    use super::*;
    use crate::meta::Identity;

    const ACCOUNTS: u8 = 4;

    fn account(n: u8) -> Option<Account> {
        (n > 0).then(|| [n; 20].into())
    }

    fn movement(from: u8, to: u8, amount: u64) -> Movement {
        Movement {
            message: None,
            token: Token::Erc20([9; 20]),
            token_id: None,
            from: account(from),
            to: account(to),
            amount: U256::from(amount),
            kind: chain::movement::Kind::Transfer,
            cause: None,
        }
    }

    proptest! {
        /// A balance that a node tells at one height leads to those of all heights, before and after.
        #[test]
        fn a_balance_known_at_any_height_gives_all_others(
            begin in proptest::collection::vec(0..1000_u64, usize::from(ACCOUNTS) + 1),
            moves in proptest::collection::vec((0..=ACCOUNTS, 0..=ACCOUNTS, 0..100_u64, 1..4_u64), 0..300),
            told in proptest::collection::vec(0..1000_u64, usize::from(ACCOUNTS) + 1),
            commits in 1..50_u64,
        ) {
            let (store, chain) = (MemStore::new(), Identity::default());
            let mut held: Vec<u64> = begin;
            let mut after = vec![(0, held.clone())];
            let (mut height, mut numbered) = (0, 0);
            let mut blocks: Vec<(u64, BlockChanges)> = Vec::new();
            for (from, to, amount, gap) in moves {
                // The outside has any amount, an account what it holds.
                let amount = if from == 0 { amount } else { amount.min(held[usize::from(from)]) };
                if gap > 1 || blocks.is_empty() {
                    height += gap;
                    blocks.push((height, BlockChanges::default()));
                }
                if from != 0 { held[usize::from(from)] -= amount; }
                if to != 0 { held[usize::from(to)] += amount; }
                blocks.last_mut().unwrap().1.add(&movement(from, to, amount));
                after.push((height, held.clone()));
            }
            let last = height;
            let mut counts = Counts::new(1);
            let mut blocks = blocks.into_iter().peekable();
            while blocks.peek().is_some() {
                let snapshot = store.snapshot().unwrap();
                let mut txn = Txn::new(&*snapshot, &mut counts);
                for (height, changes) in blocks.by_ref().take(usize::try_from(commits).unwrap()) {
                    let mut rows = Rows { txn: &mut txn, numbered: &mut numbered, chain: &chain };
                    changes.write(height, &mut rows).unwrap();
                }
                let (batch, _) = txn.finish();
                drop(snapshot);
                store.commit(batch, Durability::Buffered).unwrap();
            }
            let snapshot = store.snapshot().unwrap();
            let held_at = |n: u8, height: u64| {
                let (_, held) = &after[after.partition_point(|(at, _)| *at <= height) - 1];
                U256::from(held[usize::from(n)])
            };
            for n in 1..=ACCOUNTS {
                let history = History::of(&*snapshot, &Token::Erc20([9; 20]), Holder(account(n))).unwrap();
                let change = |height| history.until(height).unwrap().unwrap_or_default().1;
                let at = told[usize::from(n)] % (last + 1);
                let base = change(at).taken_from(held_at(n, at));
                for height in 0..=last + 1 {
                    prop_assert_eq!(change(height).amount_after(base), Some(held_at(n, height)));
                }
                let all = history.slice(0..history.len()).unwrap();
                prop_assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
                prop_assert_eq!(all.last().map_or(Change::default(), |(_, change)| *change), history.total());
            }
            let all = (0..=ACCOUNTS).map(|n| {
                History::of(&*snapshot, &Token::Erc20([9; 20]), Holder(account(n))).unwrap().total().0
            });
            prop_assert_eq!(all.fold(U256::ZERO, U256::wrapping_add), U256::ZERO);
        }

        #[test]
        fn changes_have_one_form_on_disk(number: [u8; 32], rest: Vec<u8>) {
            let mut bytes = Vec::new();
            let change = Change(U256::from_be_bytes(number));
            change.put(&mut bytes);
            prop_assert_eq!(Change::take(&mut bytes.as_slice()), Some(change));
            let mut input = rest.as_slice();
            if let Some(change) = Change::take(&mut input) {
                let mut again = Vec::new();
                change.put(&mut again);
                prop_assert_eq!(&rest[..rest.len() - input.len()], again.as_slice());
            }
        }
    }
}
