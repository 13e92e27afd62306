//! The rows of a stream: the same arrays as in the JSON lists.

use schema::block::Block;
use schema::evm_tx::AccountEvmTxs;
use schema::keys::{AccountKey, Role};
use schema::msg_set;
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs};
use store::{Error, List, Snapshot};

use super::head::Head;
use crate::array::{Array, Run, Stored, Union};
use crate::cursor::Space;

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Blocks,
    Txs,
    EvmTxs,
}

impl Kind {
    /// The name of its events.
    pub(crate) fn event(self) -> &'static str {
        match self {
            Self::Blocks => "block",
            Self::Txs => "tx",
            Self::EvmTxs => "evm_tx",
        }
    }

    /// The space of its rows.
    pub(crate) fn space(self) -> Space {
        match self {
            Self::Blocks => Space::Blocks,
            Self::Txs => Space::Txs,
            Self::EvmTxs => Space::EvmTxs,
        }
    }

    /// All rows of the index with the head `head`.
    pub(crate) fn all(self, start_height: u64, head: &Head) -> Run {
        match self {
            Self::Blocks => Run { first: start_height, len: (head.height + 1).saturating_sub(start_height) },
            Self::Txs => Run { first: 1, len: head.txs },
            Self::EvmTxs => Run { first: 1, len: head.evm_txs },
        }
    }

    /// The rows of a block at `height`; its first row is defined even if it has none.
    pub(crate) fn of_block(self, height: u64, block: &Block) -> Run {
        match self {
            Self::Blocks => Run { first: height, len: 1 },
            Self::Txs => Run { first: block.first_tx, len: block.txs },
            Self::EvmTxs => Run { first: block.first_evm_tx, len: block.evm_txs },
        }
    }
}

/// The rows that a client has chosen.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) kind: Kind,
    /// Only transactions of an account.
    pub(crate) account: Option<(AccountKey, Role)>,
    /// Only transactions with a message of one of these types, if there are any.
    pub(crate) types: Vec<String>,
}

impl Filter {
    /// True if it selects every row.
    pub(crate) fn is_all(&self) -> bool {
        self.account.is_none() && self.types.is_empty()
    }

    /// The array of its rows in `snapshot`, whose head is `head`.
    pub(crate) fn array<'a>(
        &self,
        snapshot: &'a dyn Snapshot,
        start_height: u64,
        head: &Head,
    ) -> Result<Box<dyn Array<Row = u64> + 'a>, Error> {
        Ok(match (self.kind, self.account) {
            (_, None) if self.is_all() => Box::new(self.kind.all(start_height, head)),
            (Kind::EvmTxs, Some(list)) => Box::new(Stored::<AccountEvmTxs>::all(snapshot, list)?),
            (_, Some(list)) if self.types.is_empty() => Box::new(Stored::<AccountTxs>::all(snapshot, list)?),
            (_, Some((account, role))) => {
                let of_set = |set| Stored::<AccountSetTxs>::all(snapshot, (account, role, set));
                Box::new(union(self.sets(snapshot)?, of_set)?)
            }
            (_, None) => Box::new(union(self.sets(snapshot)?, |set| Stored::<SetTxs>::all(snapshot, set))?),
        })
    }

    /// The message-type sets of its types. A block may add one, so they are read each time.
    fn sets(&self, snapshot: &dyn Snapshot) -> Result<Vec<u32>, Error> {
        msg_set::containing_any(snapshot, &self.types)
    }
}

/// The union of the lists of message-type sets, which are disjoint.
fn union<'a, L: List>(
    sets: Vec<u32>,
    list: impl Fn(u32) -> Result<Stored<'a, L>, Error>,
) -> Result<Union<'a>, Error> {
    let part = |set| Ok(Box::new(list(set)?) as Box<dyn Array<Row = u64> + 'a>);
    Ok(Union::of(sets.into_iter().map(part).collect::<Result<_, Error>>()?))
}
