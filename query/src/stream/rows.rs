//! The rows of a stream: the same arrays as in the JSON lists.

use schema::block::Block;
use schema::evm_tx::AccountEvmTxs;
use schema::keys::{AccountKey, Role};
use schema::ledger::{self, AccountMovements, AccountTokenMovements, Class, LEDGER, TokenMovements};
use schema::movement::{Place, TokenKey};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs};
use store::Snapshot;
use web::http_error::HttpError;

use super::head::Head;
use crate::array::union::Union;
use crate::array::{Array, Run, Stored};
use crate::cursor::Space;
use crate::movement_filter::MovementFilter;
use crate::msg_sets;

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Blocks,
    Txs,
    EvmTxs,
    Transfers,
}

impl Kind {
    /// The name of its events.
    pub(crate) fn event(self) -> &'static str {
        match self {
            Self::Blocks => "block",
            Self::Txs => "tx",
            Self::EvmTxs => "evm_tx",
            Self::Transfers => "transfer",
        }
    }

    /// The space of its rows.
    pub(crate) fn space(self) -> Space {
        match self {
            Self::Blocks => Space::Blocks,
            Self::Txs => Space::Txs,
            Self::EvmTxs => Space::EvmTxs,
            Self::Transfers => Space::Transfers,
        }
    }

    /// All rows of the index with the head `head`.
    pub(crate) fn all(self, start_height: u64, head: &Head) -> Run {
        match self {
            Self::Blocks => Run { first: start_height, len: (head.height + 1).saturating_sub(start_height) },
            Self::Txs => Run { first: 1, len: head.txs },
            Self::EvmTxs => Run { first: 1, len: head.evm_txs },
            Self::Transfers => Run { first: 1, len: head.movements },
        }
    }

    /// True if rows of blocks that are there are to come, as after a rewind, which may take more blocks back of an optional index:
    /// which rows are new is not known then.
    pub(crate) fn is_behind(self, head: &Head) -> bool {
        self == Self::Transfers && head.ledger < head.height
    }

    /// The rows of a block at `height`; its first row is defined even if it has none.
    pub(crate) fn of_block(
        self,
        height: u64,
        block: &Block,
        snapshot: &dyn Snapshot,
    ) -> Result<Run, HttpError> {
        Ok(match self {
            Self::Blocks => Run { first: height, len: 1 },
            Self::Txs => Run { first: block.first_tx, len: block.txs },
            Self::EvmTxs => Run { first: block.first_evm_tx, len: block.evm_txs },
            Self::Transfers => {
                let all =
                    LEDGER.state(snapshot).map_err(HttpError::internal)?.map_or(0, |state| state.numbered);
                let before = |height| {
                    ledger::position(snapshot, all, height, Place::Begin).map_err(HttpError::internal)
                };
                let (start, end) = (before(height)?, before(height + 1)?);
                Run { first: start + 1, len: end - start }
            }
        })
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
    /// Of movements: which ones.
    pub(crate) movements: Movements,
}

/// The movements that a client has chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Movements {
    /// Only those of these classes to an account.
    pub(crate) account: Option<(AccountKey, Vec<Class>)>,
    /// Only those of these tokens.
    pub(crate) tokens: Option<Vec<TokenKey>>,
    /// What each of them is tested for.
    pub(crate) tested: MovementFilter,
}

impl Filter {
    /// The rows of a stream of transactions or blocks.
    pub(crate) fn new(kind: Kind, account: Option<(AccountKey, Role)>, types: Vec<String>) -> Self {
        Self { kind, account, types, movements: Movements::default() }
    }

    /// True if it selects every row.
    pub(crate) fn is_all(&self) -> bool {
        let Movements { account, tokens, .. } = &self.movements;
        self.account.is_none() && account.is_none() && tokens.is_none() && !self.may_test()
    }

    /// True if rows may have to be tested one by one.
    pub(crate) fn may_test(&self) -> bool {
        !self.types.is_empty() || !self.movements.tested.is_none()
    }

    /// The array of its rows in `snapshot`, whose head is `head`; true if it has others too, so that each row is to be
    /// tested.
    pub(crate) fn array<'a>(
        &self,
        snapshot: &'a dyn Snapshot,
        start_height: u64,
        head: &Head,
    ) -> Result<(Box<dyn Array<Row = u64> + 'a>, bool), HttpError> {
        if self.kind == Kind::Transfers {
            return Ok((self.movements.array(snapshot, head)?, !self.movements.tested.is_none()));
        }
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

impl Movements {
    fn array<'a>(
        &self,
        snapshot: &'a dyn Snapshot,
        head: &Head,
    ) -> Result<Box<dyn Array<Row = u64> + 'a>, HttpError> {
        match (&self.account, &self.tokens) {
            (None, None) => return Ok(boxed(Kind::Transfers.all(0, head))),
            (None, Some(tokens)) => Union::<TokenMovements>::new(snapshot, tokens.clone()).map(boxed),
            (Some((account, classes)), None) => {
                let owners = classes.iter().map(|class| (*account, *class)).collect();
                Union::<AccountMovements>::new(snapshot, owners).map(boxed)
            }
            (Some((account, classes)), Some(tokens)) => {
                let of = |token: &TokenKey| {
                    let token = token.clone();
                    classes.iter().map(move |class| (*account, token.clone(), *class)).collect::<Vec<_>>()
                };
                let owners = tokens.iter().flat_map(of).collect();
                Union::<AccountTokenMovements>::new(snapshot, owners).map(boxed)
            }
        }
        .map_err(HttpError::internal)
    }
}

fn boxed<'a>(array: impl Array<Row = u64> + 'a) -> Box<dyn Array<Row = u64> + 'a> {
    Box::new(array)
}
