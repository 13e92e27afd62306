//! What every handler works on: the store, and what is fixed about the database in it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use chain::Vm;
use schema::meta::{BlockLane, CallLane, Disabled, Identity, RichLane};
use schema::payload::Codec;
use schema::{Error, meta};
use store::{Snapshot, Store};
use web::refusal::Refusal;

use crate::collection_search::CollectionNames;

/// How an absent cursor is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyCursor {
    /// `null`, as both deployed servers do; explorers loop for ever on anything else.
    #[default]
    Null,
    /// `""`, the wording of the published interface.
    String,
}

/// What `/status` says about the program.
#[derive(Clone, Debug)]
pub struct Build {
    /// Version of the program.
    pub version: String,
    /// Commit it was built from, `unknown` if it was not built from one.
    pub commit: String,
}

/// The indexer that the API shows.
pub struct Indexer {
    store: Arc<dyn Store>,
    pub(crate) identity: Identity,
    pub(crate) codec: Codec,
    pub(crate) build: Build,
    pub(crate) empty_cursor: EmptyCursor,
    names: RwLock<CollectionNames>,
}

impl Indexer {
    /// The indexer of the database in `store`. An error if there is none yet, or one of another format.
    pub fn open(store: Arc<dyn Store>, build: Build, empty_cursor: EmptyCursor) -> Result<Self, Error> {
        let identity = schema::open::existing(&*store)?;
        let codec = Codec::load(&*store.snapshot()?)?;
        Ok(Self { store, identity, codec, build, empty_cursor, names: RwLock::default() })
    }

    /// Whether the chain has EVM transactions.
    pub fn is_evm(&self) -> bool {
        self.identity.vm == Vm::Evm.name()
    }

    /// Whether tokens are objects, with an address of their own.
    pub(crate) fn is_move(&self) -> bool {
        self.identity.vm == Vm::Move.name()
    }

    /// The one view of the store that answers a request.
    pub(crate) fn view(&self) -> Result<View<'_>, Refusal> {
        Ok(View { snapshot: self.store.snapshot().map_err(Refusal::internal)? })
    }

    /// A view of the store with the names of exactly that view.
    pub(crate) fn view_with_names(
        &self,
    ) -> Result<(View<'_>, RwLockReadGuard<'_, CollectionNames>), Refusal> {
        // A thread that panicked while it wrote has left names that say that they are not whole.
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let view = self.view()?;
        if names.is_current(view.snapshot()).map_err(Refusal::internal)? {
            return Ok((view, names));
        }
        drop((names, view));
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        // Taken under the lock, so that no other thread can have applied later changes.
        let view = self.view()?;
        names.update(view.snapshot()).map_err(Refusal::internal)?;
        Ok((view, RwLockWriteGuard::downgrade(names)))
    }

    /// Refuses on a chain without an EVM.
    pub(crate) fn evm_only(&self) -> Result<(), Refusal> {
        if self.is_evm() {
            return Ok(());
        }
        Err(Refusal::not_found("evm routes are not available on this chain"))
    }
}

/// A snapshot, for the length of one request.
pub(crate) struct View<'a> {
    pub(crate) snapshot: Box<dyn Snapshot + 'a>,
}

impl View<'_> {
    pub(crate) fn snapshot(&self) -> &dyn Snapshot {
        &*self.snapshot
    }

    /// How far the block lane has come; all zero before its first block.
    pub(crate) fn blocks(&self) -> Result<BlockLane, Refusal> {
        Ok(meta::read(self.snapshot()).map_err(Refusal::internal)?.unwrap_or_default())
    }

    /// How far the rich list has come.
    pub(crate) fn rich(&self) -> Result<RichLane, Refusal> {
        Ok(meta::read(self.snapshot()).map_err(Refusal::internal)?.unwrap_or_default())
    }

    /// Why there is no rich list, if the process that writes the database keeps none.
    pub(crate) fn no_rich_list(&self) -> Result<Option<String>, Refusal> {
        let disabled: Disabled = meta::read(self.snapshot()).map_err(Refusal::internal)?.unwrap_or_default();
        Ok(Some(disabled.rich_list).filter(|reason| !reason.is_empty()))
    }

    /// How far the internal-transaction lane has come.
    pub(crate) fn calls(&self) -> Result<CallLane, Refusal> {
        Ok(meta::read(self.snapshot()).map_err(Refusal::internal)?.unwrap_or_default())
    }
}
