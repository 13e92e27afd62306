//! The rows of a stream: the same arrays as in the JSON lists.

use schema::block::Block;
use schema::evm_tx::AccountEvmTxs;
use schema::keys::{AccountKey, Role};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs};
use store::Snapshot;
use web::http_error::HttpError;

use super::head::Head;
use crate::array::union::Union;
use crate::array::{Array, Run, Stored};
use crate::cursor::Space;
use crate::msg_sets;

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

    /// The array of its rows in `snapshot`, whose head is `head`; true if it has others too, so that each row is to be
    /// tested for its types.
    pub(crate) fn array<'a>(
        &self,
        snapshot: &'a dyn Snapshot,
        start_height: u64,
        head: &Head,
    ) -> Result<(Box<dyn Array<Row = u64> + 'a>, bool), HttpError> {
        // A block may add a set, so they are read each time.
        let sets = match self.types.as_slice() {
            [] => None,
            types => msg_sets::few_containing_any(types, snapshot)?,
        };
        let array = match (self.kind, self.account, sets) {
            (Kind::EvmTxs, Some(list), _) => Stored::<AccountEvmTxs>::all(snapshot, list).map(boxed),
            (_, None, Some(sets)) => Union::<SetTxs>::new(snapshot, sets).map(boxed),
            (_, Some((account, role)), Some(sets)) => {
                let owners = sets.into_iter().map(|set| (account, role, set)).collect();
                Union::<AccountSetTxs>::new(snapshot, owners).map(boxed)
            }
            (_, Some(list), None) => {
                let all = Stored::<AccountTxs>::all(snapshot, list).map_err(HttpError::internal)?;
                return Ok((boxed(all), !self.types.is_empty()));
            }
            (_, None, None) => return Ok((boxed(self.kind.all(start_height, head)), !self.types.is_empty())),
        };
        Ok((array.map_err(HttpError::internal)?, false))
    }
}

fn boxed<'a>(array: impl Array<Row = u64> + 'a) -> Box<dyn Array<Row = u64> + 'a> {
    Box::new(array)
}
