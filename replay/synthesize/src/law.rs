//! The power law by which accounts take part in transactions, with a closed form for the transactions of an account.
//!
//! Each transaction has a *draw*, its number from 0. The trailing zeros of draw + 1 select a pool: half of the draws
//! select pool 0, a quarter pool 1, and so on. A pool has 64 times the members of the pool before, and its draws go
//! around its members. So the frequency of an account falls with about the power 7/6 of its rank, and the number of
//! accounts grows with the chain without end.
//!
//! # Invariants
//!
//! - The draws of a member are an arithmetic progression whose step is a power of two.

/// Members of pool 0.
const SMALLEST: u64 = 4;
/// Binary logarithm of the ratio of two neighbouring pools.
const GROWTH: u32 = 6;
/// The last pool whose accounts have keys.
const LAST_WITH_KEYS: u32 = 2;
/// Pools above have as many members as this one, more than any chain has draws.
const MAX_POOL: u32 = 6;

/// The two laws. They share the pools 0 and 1, so that frequent senders are frequent recipients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Law {
    /// Accounts that sign: pools 0 to 2, the last for all other draws.
    Signer,
    /// Accounts that receive: any pool; only those of the pools 0 and 1 have keys.
    Recipient,
}

/// An account of the law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) pool: u32,
    pub(crate) index: u64,
    /// Whether it has a key, and so can sign.
    pub(crate) signs: bool,
}

/// Draws `first`, `first + step`, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progression {
    pub(crate) first: u64,
    pub(crate) step: u64,
}

/// Members of a pool.
pub(crate) fn pool_size(pool: u32) -> u64 {
    SMALLEST << (GROWTH * pool.min(MAX_POOL))
}

/// Pools whose accounts have keys, and the number of their members that `draws` draws reach.
pub(crate) fn signers(draws: u64) -> impl Iterator<Item = Member> {
    (0..=LAST_WITH_KEYS).flat_map(move |pool| {
        let reached = pool_size(pool).min(draws.div_ceil(1 << pool));
        (0..reached).map(move |index| Member { pool, index, signs: true })
    })
}

impl Law {
    /// The account of a draw.
    pub(crate) fn member(self, draw: u64) -> Member {
        let number = draw + 1;
        let zeros = number.trailing_zeros();
        let (pool, turn) = match self {
            Self::Signer if zeros >= LAST_WITH_KEYS => (LAST_WITH_KEYS, (number >> LAST_WITH_KEYS) - 1),
            Self::Signer | Self::Recipient => (zeros, number >> (zeros + 1)),
        };
        let signs = self == Self::Signer || pool < LAST_WITH_KEYS;
        Member { pool, index: turn % pool_size(pool), signs }
    }

    /// The draws of an account; `None` if this law never selects it.
    pub(crate) fn draws(self, member: Member) -> Option<Progression> {
        let Member { pool, index, signs } = member;
        let is_shared = pool < LAST_WITH_KEYS;
        if index >= pool_size(pool)
            || (!is_shared && signs != (self == Self::Signer))
            || (is_shared && !signs)
        {
            return None;
        }
        let size = pool_size(pool);
        Some(if self == Self::Signer && pool == LAST_WITH_KEYS {
            Progression { first: ((index + 1) << pool) - 1, step: size << pool }
        } else {
            Progression { first: ((2 * index + 1) << pool) - 1, step: size << (pool + 1) }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_draws_of_a_member_are_its_progression() {
        for law in [Law::Signer, Law::Recipient] {
            let mut drawn = HashMap::<Member, Vec<u64>>::new();
            (0..300_000).for_each(|draw| drawn.entry(law.member(draw)).or_default().push(draw));
            for (member, draws) in drawn {
                let Progression { first, step } = law.draws(member).unwrap();
                let computed: Vec<u64> = (first..300_000).step_by(usize::try_from(step).unwrap()).collect();
                assert_eq!(draws, computed, "{law:?} {member:?}");
            }
        }
    }

    #[test]
    fn new_accounts_appear_as_long_as_the_chain_grows_and_old_ones_stay_frequent() {
        let members = |draws: u64| {
            (0..draws).map(|draw| Law::Recipient.member(draw)).collect::<std::collections::HashSet<_>>().len()
        };
        let (few, many) = (members(10_000), members(1_000_000));
        assert!(few > 1_000 && many > 30 * few, "{few} {many}");
        let busiest = (0..8_000).filter(|draw| Law::Recipient.member(*draw).pool == 0).count();
        assert_eq!(busiest, 4_000);
    }
}
