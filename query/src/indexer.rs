//! The shared state of all handlers: the store and the constants of its database.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use chain::Vm;
use chain::evm::transaction::EthChain;
use schema::index::Index;
use schema::meta::{BlockLane, CallLane, Disabled, EvmChain, Identity, RichLane};
use schema::nft::Questions;
use schema::payload::Codec;
use schema::rich::has_account_tokens;
use schema::{Error, meta};
use store::key::All;
use store::{Order, Snapshot, Store, table};
use web::http_error::HttpError;

use crate::collection_search::{CollectionNames, NamedItem};
use crate::raw_tx::Registries;
use crate::stream::SlowReader;
use crate::stream::feed::Feed;

/// Seconds until a client asks again for what is being listed.
const RETRY_AFTER: u64 = 10;

/// The maximum bytes of a page's records by default.
const PAGE_BYTES: usize = 8 << 20;

/// The JSON form of an absent cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyCursor {
    /// `null`, as both deployed servers do; explorers loop forever on anything else.
    #[default]
    Null,
    /// `""`, as in the published interface.
    String,
}

/// The program's version, for `/status`.
#[derive(Clone, Debug)]
pub struct Build {
    /// Version of the program.
    pub version: String,
    /// Commit that it was built from, or `unknown`.
    pub commit: String,
}

/// The state of the indexer API.
pub struct Indexer {
    store: Arc<dyn Store>,
    pub(crate) identity: Identity,
    /// The EIP-155 id of the chain; 0 until it is known.
    evm_chain_id: AtomicU64,
    pub(crate) codec: Arc<Codec>,
    pub(crate) build: Build,
    pub(crate) empty_cursor: EmptyCursor,
    pub(crate) feed: Arc<Feed>,
    pub(crate) status: LastBody,
    /// Decimals of the fee token that were found last, to be tried first: the values of transactions are in its units.
    pub(crate) fee_decimals: AtomicU8,
    /// The highest head that JSON-RPC has shown.
    pub(crate) evm_head: AtomicU64,
    names: Mutex<CollectionNames>,
    /// The message types that bytes of transactions follow from.
    pub(crate) registries: Registries,
    /// Maximum bytes of the records of a page; a single record may be larger.
    pub(crate) page_bytes: usize,
}

impl Indexer {
    /// Opens the database in `store`. An error if it is empty or has another format.
    pub fn open(store: Arc<dyn Store>, build: Build, empty_cursor: EmptyCursor) -> Result<Self, Error> {
        let identity = schema::open::existing(&*store)?;
        let snapshot = store.snapshot()?;
        let codec = Arc::new(Codec::load(&*snapshot)?);
        drop(snapshot);
        let slow = SlowReader::default();
        let feed =
            Arc::new(Feed::new(Arc::clone(&store), Arc::clone(&codec), identity.clone(), slow, PAGE_BYTES));
        let (status, names, page_bytes) = (LastBody::default(), Mutex::default(), PAGE_BYTES);
        let (fee_decimals, evm_head) = (AtomicU8::new(18), AtomicU64::new(0));
        Ok(Self {
            store,
            identity,
            evm_chain_id: AtomicU64::new(0),
            codec,
            build,
            empty_cursor,
            feed,
            status,
            fee_decimals,
            evm_head,
            names,
            registries: Registries::default(),
            page_bytes,
        })
    }

    /// Sets when a slow reader of a stream is dropped.
    #[must_use]
    pub fn with_slow_reader(self, slow: SlowReader) -> Self {
        let (store, codec) = (Arc::clone(&self.store), Arc::clone(&self.codec));
        let feed = Feed::new(store, codec, self.identity.clone(), slow, self.page_bytes);
        Self { feed: Arc::new(feed), ..self }
    }

    /// Sets the maximum bytes of the records of a page, and of an event of a stream.
    #[must_use]
    pub fn with_page_bytes(self, page_bytes: usize) -> Self {
        let slow = self.feed.slow;
        Self { page_bytes, ..self }.with_slow_reader(slow)
    }

    /// True if the chain has EVM transactions.
    pub fn is_evm(&self) -> bool {
        self.identity.vm == Vm::Evm.name()
    }

    /// The Cosmos id of the chain.
    pub fn chain_id(&self) -> &str {
        &self.identity.chain_id
    }

    /// The EIP-155 id of the chain: that which its node reports, on a minievm that which follows from the Cosmos id. An error 503
    /// until the node has reported it.
    pub fn evm_chain_id(&self) -> Result<u64, HttpError> {
        let known = self.evm_chain_id.load(Ordering::Relaxed);
        if known != 0 {
            return Ok(known);
        }
        let snapshot = self.store.snapshot().map_err(HttpError::internal)?;
        let id = match meta::read::<EvmChain>(&*snapshot).map_err(HttpError::internal)? {
            None => return Ok(EthChain::new(self.chain_id(), self.prefix()).id),
            Some(EvmChain { chain_id: 0, .. }) => {
                return Err(HttpError::unavailable(
                    "the EIP-155 id of this chain is not known yet: its node has not replied to eth_chainId; see \
                     `json_rpc` of the process that indexes",
                ));
            }
            Some(chain) => chain.chain_id,
        };
        self.evm_chain_id.store(id, Ordering::Relaxed);
        Ok(id)
    }

    /// Prefix of the chain's bech32 addresses.
    pub fn prefix(&self) -> &str {
        &self.identity.prefix
    }

    /// True if tokens are objects, with an address of their own.
    pub(crate) fn is_move(&self) -> bool {
        self.identity.vm == Vm::Move.name()
    }

    #[cfg(test)]
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Takes the snapshot for one request.
    pub(crate) fn view(&self) -> Result<View<'_>, HttpError> {
        Ok(View { snapshot: self.store.snapshot().map_err(HttpError::internal)? })
    }

    /// The body that `write` makes of a snapshot, or `last` if the store has not changed since.
    pub(crate) fn body(
        &self,
        last: &LastBody,
        write: impl FnOnce(&View<'_>) -> Result<String, HttpError>,
    ) -> Result<Bytes, HttpError> {
        let version = self.store.version();
        if let Some(body) = version.and_then(|version| last.at(version)) {
            return Ok(body);
        }
        let body = Bytes::from(write(&self.view()?)?);
        // Otherwise the snapshot may be of a later state.
        if let Some(version) = version.filter(|_| self.store.version() == version) {
            last.set(version, body.clone());
        }
        Ok(body)
    }

    /// Takes a snapshot, together with the collections that have `part` in one of their names in exactly that snapshot.
    /// The caller is in the serial lane ([`web::limits::lane::serial`]), so no thread waits for the lock.
    pub(crate) fn collections_named(&self, part: &str) -> Result<(View<'_>, Vec<NamedItem>), HttpError> {
        // A poisoned lock is safe to use: a thread that panicked during an update left the names marked as incomplete.
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken under the lock, so that no other thread can have applied later changes.
        let view = self.view()?;
        names.update(view.snapshot()).map_err(HttpError::internal)?;
        let found = names.containing(part);
        Ok((view, found))
    }

    /// An error 404 on a chain without an EVM.
    pub(crate) fn evm_only(&self) -> Result<(), HttpError> {
        if self.is_evm() {
            return Ok(());
        }
        Err(HttpError::not_found("evm routes are not available on this chain"))
    }
}

/// The body of the last response of an endpoint without parameters, with the version of the store that it is of.
#[derive(Default)]
pub(crate) struct LastBody(RwLock<Option<(u64, Bytes)>>);

impl LastBody {
    fn at(&self, version: u64) -> Option<Bytes> {
        // The lock is held for an assignment only, which does not panic.
        let last = self.0.read().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(of, _)| *of == version).map(|(_, body)| body.clone())
    }

    fn set(&self, version: u64, body: Bytes) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some((version, body));
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

    /// Progress of the block lane; all zero before its first block.
    pub(crate) fn blocks(&self) -> Result<BlockLane, HttpError> {
        Ok(meta::read(self.snapshot()).map_err(HttpError::internal)?.unwrap_or_default())
    }

    /// An error unless `index` has the last block: without it, rows that are missing would seem not to exist.
    pub(crate) fn require(&self, index: &Index) -> Result<(), HttpError> {
        self.require_within(index, 0)
    }

    /// True if `index` has all blocks.
    pub(crate) fn has_all(&self, index: &Index) -> Result<bool, HttpError> {
        let state = index.state(self.snapshot()).map_err(HttpError::internal)?;
        let (last, state) = (self.blocks()?.height, state.filter(|state| state.version == index.version));
        Ok(state.is_some_and(|state| state.height >= last))
    }

    /// As [`Self::require`], of an index that may be `blocks` behind the last block if it is being written.
    pub(crate) fn require_within(&self, index: &Index, blocks: u64) -> Result<(), HttpError> {
        let (name, last) = (index.name, self.blocks()?.height);
        let state = index.state(self.snapshot()).map_err(HttpError::internal)?;
        let Some(state) = state.filter(|state| state.version == index.version) else {
            return Err(HttpError::not_found(format!(
                "the index `{name}` is not stored: set `index = [\"{name}\"]` for the process that indexes"
            )));
        };
        let is_written = || index.is_written(self.snapshot()).map_err(HttpError::internal);
        if state.height >= last || (state.height.saturating_add(blocks) >= last && is_written()?) {
            return Ok(());
        }
        Err(HttpError::unavailable(format!(
            "the index `{name}` has blocks {} to {} of {last}: it is being built, or the process that indexes lacks \
             `index = [\"{name}\"]`",
            state.from, state.height
        )))
    }

    /// Progress of the rich list.
    pub(crate) fn rich(&self) -> Result<RichLane, HttpError> {
        Ok(meta::read(self.snapshot()).map_err(HttpError::internal)?.unwrap_or_default())
    }

    /// The reason why there is no rich list, if the writing process has disabled it.
    pub(crate) fn no_rich_list(&self) -> Result<Option<String>, HttpError> {
        let disabled: Disabled =
            meta::read(self.snapshot()).map_err(HttpError::internal)?.unwrap_or_default();
        Ok(Some(disabled.rich_list).filter(|reason| !reason.is_empty()))
    }

    /// An error while the tokens of accounts are not listed: an earlier version made the database.
    pub(crate) fn require_account_tokens(&self) -> Result<(), HttpError> {
        let has_balances = self.rich()?.height > 0;
        if has_balances && !has_account_tokens(self.snapshot()).map_err(HttpError::internal)? {
            let reason = "the tokens of accounts are not listed yet, because an earlier version made the database: the \
                          process that indexes lists them when it starts with a rich list; try again later";
            return Err(HttpError::unavailable(reason).with_retry_after(RETRY_AFTER));
        }
        Ok(())
    }

    /// The first height with a query about metadata that the node has not answered.
    pub(crate) fn metadata_missing_from(&self) -> Result<Option<u64>, HttpError> {
        let first = table::rows::<Questions>(self.snapshot(), &All, Order::Asc, 1);
        Ok(first.map_err(HttpError::internal)?.first().map(|(place, _)| place.height))
    }

    /// Progress of the internal-transaction lane.
    pub(crate) fn calls(&self) -> Result<CallLane, HttpError> {
        Ok(meta::read(self.snapshot()).map_err(HttpError::internal)?.unwrap_or_default())
    }
}
