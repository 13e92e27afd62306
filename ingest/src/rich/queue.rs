//! The order in which tokens are compared with their contracts.
//!
//! ```text
//! a block touches a token that drifts ──▶ at once
//! each turn ──▶ tokens that drift, tokens that blocks have touched since, a few others in the order of addresses
//! ```
//!
//! There are [`TURNS`] turns in the time of the setting `reconcile`, of at most [`TOKENS_PER_TURN`] tokens: in a minute a
//! thousand tokens. So up to that many, a wrong balance is found within that time after the block that touched its token.
//!
//! # Invariants
//! * Memory is bounded: [`MAX_TOUCHED`] tokens with [`TOUCHED_ACCOUNTS`] accounts each. Further ones are found in the order
//!   of addresses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use chain::Account;
use chain::evm::erc20::Erc20Event;
use schema::keys::AccountKey;
use schema::nft::Collections;
use schema::rich::{Address, Erc20s, NewContracts};
use store::{Bounds, Message, Order, Snapshot, Table as _};
use tokio::time::Instant;

use super::flow::ZERO;
use crate::Error;

/// Turns in the time of the setting `reconcile`.
const TURNS: u32 = 4;
/// Tokens of a turn.
const TOKENS_PER_TURN: usize = 256;
/// Tokens of a turn that drift.
const DRIFTING_PER_TURN: usize = TOKENS_PER_TURN / 2;
/// Tokens of a turn that no block has touched.
const OTHERS_PER_TURN: usize = 16;
/// Searches for holders of incomplete tokens in a turn, each of some transactions.
const SEARCHES_PER_TURN: usize = 32;
/// Tokens whose touch is remembered.
const MAX_TOUCHED: usize = 1 << 14;
/// Accounts of a token whose touch is remembered: the last ones.
const TOUCHED_ACCOUNTS: usize = 4;

/// A token, and accounts that blocks have touched since it was compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) contract: Address,
    pub(super) accounts: Vec<Address>,
}

/// Tokens that wait to be compared or repaired.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The rest of the turn.
    turn: VecDeque<Address>,
    /// The start of the last turn.
    turned: Option<Instant>,
    touched: BTreeMap<Address, Vec<Address>>,
    /// Tokens that drift; `None` before the first turn.
    drifting: Option<BTreeSet<Address>>,
    /// The last token of those that drift, and of all, that were taken in the order of addresses.
    last: [Option<Address>; 2],
    repairs: VecDeque<Touched>,
    searches: VecDeque<Address>,
    /// Searches that this turn has left.
    searches_left: usize,
}

impl Queue {
    /// Notes which tokens a block has touched.
    pub(super) fn touch(&mut self, events: &[Erc20Event], snapshot: &dyn Snapshot) -> Result<(), Error> {
        let mut accounts: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        for event in events {
            let (contract, touched) = match event {
                Erc20Event::Transfer { contract, from, to, .. } => (contract, [*from, *to]),
                Erc20Event::Touched { contract, account, .. } => (contract, [*account, ZERO]),
                Erc20Event::Active { contract } | Erc20Event::Denom { contract, .. } => (contract, [ZERO; 2]),
                // Coins are compared in the order of addresses.
                Erc20Event::Contract { .. }
                | Erc20Event::Coin { .. }
                | Erc20Event::ValuesInEvents
                | Erc20Event::Untraced => continue,
            };
            // The zero address is not asked when tokens come from it, so its balance may be unknown.
            let touched = touched.into_iter().filter(|account| *account != ZERO);
            accounts.entry(*contract).or_default().extend(touched);
        }
        for (contract, accounts) in accounts {
            let token = store::table::read::<Erc20s>(snapshot, &contract)?;
            if token.is_none() && !Self::may_become_token(&contract, snapshot)? {
                continue;
            }
            if token.is_some_and(|Message(token)| token.drifting) {
                if let Some(drifting) = &mut self.drifting {
                    drifting.insert(contract);
                }
                if !self.turn.contains(&contract) && self.turn.len() < TOKENS_PER_TURN {
                    self.turn.push_front(contract);
                }
            }
            if self.touched.len() < MAX_TOUCHED || self.touched.contains_key(&contract) {
                let of_token = self.touched.entry(contract).or_default();
                of_token.retain(|account| !accounts.contains(account));
                of_token.extend(accounts.iter().take(TOUCHED_ACCOUNTS));
                of_token.drain(..of_token.len().saturating_sub(TOUCHED_ACCOUNTS));
            }
        }
        Ok(())
    }

    /// Whether a contract that is not a token may be found to be one by its supply: it was created since the list began, and
    /// is not a collection of NFTs.
    fn may_become_token(contract: &Address, snapshot: &dyn Snapshot) -> Result<bool, Error> {
        let key = AccountKey(Account::from(*contract));
        Ok(store::table::read::<NewContracts>(snapshot, contract)?.is_some()
            && store::table::read::<Collections>(snapshot, &key)?.is_none())
    }

    /// Whether tokens can be taken at once.
    pub(super) fn is_ready(&self) -> bool {
        !self.turn.is_empty()
            || !self.repairs.is_empty()
            || (self.searches_left > 0 && !self.searches.is_empty())
    }

    /// The start of the next turn.
    pub(super) fn due(&mut self, reconcile_every: Duration) -> Instant {
        *self.turned.get_or_insert_with(Instant::now) + reconcile_every / TURNS
    }

    /// Takes at most `most` tokens; begins a turn if none wait.
    pub(super) fn take(&mut self, snapshot: &dyn Snapshot, most: usize) -> Result<Vec<Touched>, Error> {
        if self.turn.is_empty() {
            self.begin_turn(snapshot)?;
        }
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(contract) = self.turn.pop_front()
        {
            let accounts = self.touched.remove(&contract).unwrap_or_default();
            let token = store::table::read::<Erc20s>(snapshot, &contract)?;
            // A silent contract tells no balance.
            if token.is_none_or(|Message(token)| !token.silent) {
                taken.push(Touched { contract, accounts });
            }
        }
        Ok(taken)
    }

    fn begin_turn(&mut self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        self.turned = Some(Instant::now());
        self.searches_left = SEARCHES_PER_TURN;
        let mut turn = BTreeSet::new();
        let [last_drifting, last] = self.last;
        let drifting = self.drifting(snapshot)?;
        let after = |address: &&Address| last_drifting.is_none_or(|last| **address > last);
        let in_turn: Vec<_> =
            drifting.iter().filter(after).chain(drifting).take(DRIFTING_PER_TURN).copied().collect();
        self.last[0] = in_turn.last().copied();
        for contract in in_turn.iter().chain(self.touched.keys()) {
            if turn.len() < TOKENS_PER_TURN && turn.insert(*contract) {
                self.turn.push_back(*contract);
            }
        }
        let others = Self::others(last, snapshot)?;
        self.last[1] = others.last().copied();
        self.turn.extend(others.into_iter().filter(|contract| turn.insert(*contract)));
        Ok(())
    }

    /// The tokens that drift; the first call reads all tokens.
    fn drifting(&mut self, snapshot: &dyn Snapshot) -> Result<&BTreeSet<Address>, Error> {
        if self.drifting.is_none() {
            let mut drifting = BTreeSet::new();
            store::for_each_row(snapshot, Erc20s::SPEC, Bounds::all(), |key, value| {
                let (contract, Message(token)) = store::table::decode_row::<Erc20s>(key, value)?;
                drifting.extend(token.drifting.then_some(contract));
                Ok::<(), Error>(())
            })?;
            self.drifting = Some(drifting);
        }
        Ok(self.drifting.get_or_insert_default())
    }

    /// Some tokens after `last` in the order of addresses, from the first again after the end.
    fn others(last: Option<Address>, snapshot: &dyn Snapshot) -> Result<Vec<Address>, Error> {
        let all = &store::key::All;
        let mut rows = match last {
            Some(last) => {
                store::table::rows_after::<Erc20s>(snapshot, all, &last, Order::Asc, OTHERS_PER_TURN)?
            }
            None => Vec::new(),
        };
        if rows.len() < OTHERS_PER_TURN {
            rows.extend(store::table::rows::<Erc20s>(
                snapshot,
                all,
                Order::Asc,
                OTHERS_PER_TURN - rows.len(),
            )?);
        }
        Ok(rows.into_iter().map(|(contract, _)| contract).collect())
    }

    /// Puts a token into the next turn.
    pub(super) fn again(&mut self, contract: Address) {
        self.touched.entry(contract).or_default();
    }

    /// Puts all that waits into the next turn, because the node does not answer.
    pub(super) fn postpone(&mut self) {
        self.turned = Some(Instant::now());
        for contract in self.turn.drain(..).chain(self.searches.drain(..)) {
            self.touched.entry(contract).or_default();
        }
    }

    /// Puts a token into the queue of repairs, with accounts that need not be known as holders.
    pub(super) fn repair(&mut self, token: Touched) {
        if let Some(drifting) = &mut self.drifting {
            drifting.insert(token.contract);
        }
        if !self.repairs.iter().any(|waiting| waiting.contract == token.contract) {
            self.repairs.push_back(token);
        }
    }

    /// Puts a contract into the queue of searches for holders.
    pub(super) fn search(&mut self, contract: Address) {
        if !self.searches.contains(&contract) {
            self.searches.push_back(contract);
        }
    }

    /// The next contract to search.
    pub(super) fn next_search(&mut self) -> Option<Address> {
        self.searches_left = self.searches_left.checked_sub(1)?;
        self.searches.pop_front()
    }

    /// The next token to repair. Its supply is checked in the next turn.
    pub(super) fn next_repair(&mut self) -> Option<Touched> {
        let next = self.repairs.pop_front()?;
        self.touched.entry(next.contract).or_default();
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use chain::U256;
    use schema::rich::Erc20;
    use store::{Batch, Durability, Key as _, MemStore, Store as _, Value as _};

    use super::*;

    fn contract(n: u32) -> Address {
        let mut contract = [0xc0; 20];
        contract[16..].copy_from_slice(&n.to_be_bytes());
        contract
    }

    /// A store with `tokens`, of which the first `drifting` drift.
    fn with_tokens(tokens: u32, drifting: u32) -> MemStore {
        let (store, mut batch) = (MemStore::new(), Batch::new());
        for n in 0..tokens {
            let row = Message(Erc20 { complete: true, drifting: n < drifting, ..Erc20::default() });
            batch.put(Erc20s::SPEC, contract(n).to_bytes(), row.encoded());
        }
        store.commit(batch, Durability::Buffered).unwrap();
        store
    }

    fn transfer(n: u32, to: u8) -> Erc20Event {
        Erc20Event::Transfer { contract: contract(n), from: ZERO, to: [to; 20], amount: U256::from(1) }
    }

    /// The tokens of a whole turn.
    fn turn(queue: &mut Queue, store: &MemStore) -> Vec<Touched> {
        let snapshot = store.snapshot().unwrap();
        let mut taken = queue.take(&*snapshot, 16).unwrap();
        while queue.is_ready() {
            taken.extend(queue.take(&*snapshot, 16).unwrap());
        }
        taken
    }

    #[test]
    fn a_thousand_touched_tokens_are_taken_within_the_time_and_no_turn_is_longer() {
        let (store, mut queue) = (with_tokens(5000, 0), Queue::default());
        let touched: Vec<_> = (2000..3000).map(|n| transfer(n, 1)).collect();
        queue.touch(&touched, &*store.snapshot().unwrap()).unwrap();
        let mut taken = BTreeSet::new();
        for _ in 0..TURNS {
            let turn = turn(&mut queue, &store);
            assert!(turn.len() <= TOKENS_PER_TURN + OTHERS_PER_TURN, "{}", turn.len());
            taken.extend(
                turn.into_iter().filter(|token| !token.accounts.is_empty()).map(|token| token.contract),
            );
        }
        assert_eq!(taken.len(), 1000);
        assert!(queue.touched.is_empty());
    }

    #[test]
    fn tokens_that_drift_are_first_and_leave_room_for_others() {
        let (store, mut queue) = (with_tokens(1000, 300), Queue::default());
        queue.touch(&[transfer(999, 1)], &*store.snapshot().unwrap()).unwrap();
        let first = turn(&mut queue, &store);
        let drifting =
            |turn: &[Touched]| turn.iter().take_while(|token| token.contract < contract(300)).count();
        assert_eq!(drifting(&first), DRIFTING_PER_TURN);
        assert_eq!(first[DRIFTING_PER_TURN].contract, contract(999));
        assert_eq!(first[DRIFTING_PER_TURN].accounts, [[1; 20]]);
        // Every one has its turn.
        let mut taken: BTreeSet<_> = first.into_iter().map(|token| token.contract).collect();
        for _ in 0..2 {
            taken.extend(turn(&mut queue, &store).into_iter().map(|token| token.contract));
        }
        assert!((0..300).all(|n| taken.contains(&contract(n))));
    }

    #[test]
    fn a_drifting_token_is_taken_at_once_when_it_is_touched() {
        let (store, mut queue) = (with_tokens(100, 10), Queue::default());
        turn(&mut queue, &store);
        assert!(!queue.is_ready());
        let snapshot = store.snapshot().unwrap();
        queue.touch(&[Erc20Event::Active { contract: contract(50) }], &*snapshot).unwrap();
        assert!(!queue.is_ready());
        queue.touch(&[Erc20Event::Active { contract: contract(5) }], &*snapshot).unwrap();
        assert!(queue.is_ready());
        let taken = queue.take(&*snapshot, 16).unwrap();
        assert_eq!(taken, [Touched { contract: contract(5), accounts: Vec::new() }]);
    }

    #[test]
    fn touches_of_strangers_are_bounded() {
        let (store, mut queue) = (with_tokens(20_000, 0), Queue::default());
        let snapshot = store.snapshot().unwrap();
        let all: Vec<_> = (0..20_000).map(|n| transfer(n, 1)).collect();
        queue.touch(&all, &*snapshot).unwrap();
        assert_eq!(queue.touched.len(), MAX_TOUCHED);
        for account in 0..200 {
            queue.touch(&[transfer(0, account)], &*snapshot).unwrap();
        }
        assert_eq!(queue.touched[&contract(0)], [[196; 20], [197; 20], [198; 20], [199; 20]]);
    }
}
