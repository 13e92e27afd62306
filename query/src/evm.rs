//! The chain as Ethereum's JSON-RPC shows it: blocks, transactions, receipts and logs, as JSON of final bytes.
//!
//! [`crate::Indexer::evm`] takes one snapshot for a request, or for all requests of a batch. Everything is read from stored
//! records; no node is called. Methods return `None` for what does not exist, and [`Error`] for what the
//! index cannot tell.
//!
//! | JSON-RPC | method |
//! |---|---|
//! | `eth_chainId`, `net_version` | [`EvmView::chain_id`], [`EvmView::net_version`] |
//! | `eth_blockNumber` | [`EvmView::head`] |
//! | `eth_getBlockByNumber`, `…ByHash` | [`EvmView::block`], [`EvmView::height_of`] |
//! | `eth_getBlockReceipts` | [`EvmView::receipts`] |
//! | `eth_getBlockTransactionCountByNumber` | [`EvmView::tx_count`] |
//! | `eth_getTransactionByHash`, `…ByBlockNumberAndIndex` | [`EvmView::tx`], [`EvmView::tx_at`] |
//! | `eth_getRawTransactionByHash`, `…ByBlockNumberAndIndex` | [`EvmView::raw_tx`], [`EvmView::raw_tx_at`] |
//! | `eth_getTransactionReceipt` | [`EvmView::receipt`] |
//! | `eth_getLogs` | [`EvmView::logs`] |
//! | `ots_*`, `erigon_getHeaderByNumber` | see `evm::ots` |
//! | `eth_subscribe` | [`Indexer::new_blocks`], [`EvmView::new_head`], [`EvmView::block_logs`] |
//! | `cosmos_cosmosTxHashByTxHash`, `cosmos_txHashByCosmosTxHash` | [`EvmView::cosmos_hash`], [`EvmView::evm_hash`] |

mod block;
pub mod history;
mod logs;
mod merge;
mod ots;
mod plan;
mod subscription;
mod tokens;
mod tx;

use std::sync::atomic::Ordering;

use chain::evm::dialect::Dialect;
use chain::evm::transaction::EthChain;
use schema::block::Block;
use schema::evm_block::BLOCKS;
use schema::index::{Index, State};
use schema::meta::{self, EvmChain};
use web::http_error::HttpError;

use crate::api;
use crate::indexer::{Indexer, View};

pub use self::logs::LogLimits;
pub(crate) use self::logs::describe;
pub use self::ots::{Frames, Side};
pub use self::subscription::NewBlocks;
pub use self::tx::Creation;
pub use schema::tokens::TokenReply;

/// Why a question about the EVM has no reply.
#[derive(Debug)]
pub enum Error {
    /// The optional index is not stored.
    Off(&'static str),
    /// The index has only the blocks `from` to `height`.
    Behind {
        /// Its name.
        index: &'static str,
        /// The first of its blocks.
        from: u64,
        /// The last one; `from - 1` if it has none.
        height: u64,
        /// True if it is being built; false if the process that writes the database does not write it.
        is_written: bool,
    },
    /// The height is below the first one of the database.
    Pruned {
        /// The first height.
        first: u64,
    },
    /// The calls of the block are not indexed: not yet, or never, because the node could not trace it.
    NoCalls {
        /// Its height.
        height: u64,
        /// True if they will be.
        is_late: bool,
    },
    /// More logs than a response may have, or more transactions to search than a request may cost.
    TooMany {
        /// Maximum number of logs.
        limit: u64,
        /// A range of blocks, from that of the request on, which is within the limits; of one block at least.
        retry: (u64, u64),
    },
    /// The logs of one block are more bytes than a response may have.
    TooLarge,
    /// The database is damaged, or the request needs another lane ([`web::limits::lane`]) and is run again.
    Failed(HttpError),
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        Self::Failed(error)
    }
}

impl From<schema::Error> for Error {
    fn from(error: schema::Error) -> Self {
        Self::Failed(HttpError::internal(error))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Failed(HttpError::internal(error))
    }
}

/// Blocks at the head that wait for their headers and are not shown. If more are missing, the headers are being built.
const LAG: u64 = 2;

/// The chain in one snapshot.
pub struct EvmView<'a> {
    indexer: &'a Indexer,
    view: View<'a>,
    dialect: Dialect,
    head: u64,
}

impl Indexer {
    /// The chain as JSON-RPC shows it, in the form of `dialect`. An error 404 on a chain without an EVM.
    pub fn evm(&self, dialect: Dialect) -> Result<EvmView<'_>, HttpError> {
        self.evm_only()?;
        let view = self.view()?;
        let head = view.blocks()?.height;
        // A header follows its block after one request to the node: until then the block is not shown, unless more are missing.
        let headers = if BLOCKS.is_written(view.snapshot()).map_err(HttpError::internal)? {
            BLOCKS.state(view.snapshot()).map_err(HttpError::internal)?
        } else {
            None
        };
        let waits = headers
            .map(|state| state.height.min(head))
            .filter(|height| height + LAG >= head && *height > 0)
            .unwrap_or(head);
        // Headers that catch up do not hide a block that was shown: the head falls only with the blocks.
        let shown = self.evm_head.fetch_max(waits, Ordering::Relaxed).max(waits);
        // The deviations of a node are those of minievm.
        let is_fixed = dialect == Dialect::Fixed
            || meta::read::<EvmChain>(view.snapshot()).map_err(HttpError::internal)?.is_some();
        let dialect = if is_fixed { Dialect::Fixed } else { dialect };
        Ok(EvmView { indexer: self, view, dialect, head: shown.min(head) })
    }
}

impl EvmView<'_> {
    /// The form of replies.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The EIP-155 id of the chain.
    pub fn chain_id(&self) -> Result<u64, HttpError> {
        self.indexer.evm_chain_id()
    }

    /// The id of the Cosmos chain.
    pub fn cosmos_chain_id(&self) -> &str {
        &self.indexer.identity.chain_id
    }

    /// The network id: the last part of the Cosmos chain id if it is a number, else 1 (`minievm:jsonrpc/backend/net.go`).
    pub fn net_version(&self) -> &str {
        let last = self.indexer.identity.chain_id.rsplit('-').next().unwrap_or_default();
        let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { last } else { "1" }
    }

    /// The last height that is shown; 0 before the first block.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The first height that the database has or will have.
    pub fn first(&self) -> u64 {
        self.indexer.identity.start_height
    }

    fn chain(&self) -> EthChain<'_> {
        // Where the id may be unknown, transactions have their own.
        let id = self.indexer.evm_chain_id().unwrap_or_default();
        EthChain { id, prefix: &self.indexer.identity.prefix }
    }

    /// The block at `height`; `None` above the head.
    fn stored(&self, height: u64) -> Result<Option<Block>, Error> {
        if height < self.first() {
            return Err(Error::Pruned { first: self.first() });
        }
        if height > self.head {
            return Ok(None);
        }
        Ok(api::block::at(&self.view, height)?)
    }

    /// The blocks that `index` has.
    fn state(&self, index: &Index) -> Result<State, Error> {
        let state = index.state(self.view.snapshot())?.filter(|state| state.version == index.version);
        match state {
            Some(state) => Ok(state),
            // After a rewind beyond its undo log it begins again.
            None if index.is_written(self.view.snapshot())? => {
                let (from, height) = (self.first(), self.first().saturating_sub(1));
                Err(Error::Behind { index: index.name, from, height, is_written: true })
            }
            None => Err(Error::Off(index.name)),
        }
    }

    /// The error of a block that `index` lacks, which has those of `state`.
    fn behind(&self, index: &Index, state: State) -> Result<Error, Error> {
        let is_written = index.is_written(self.view.snapshot())?;
        Ok(Error::Behind { index: index.name, from: state.from, height: state.height, is_written })
    }

    /// An error unless `index` has all blocks `from` to `to`.
    fn require(&self, index: &Index, from: u64, to: u64) -> Result<(), Error> {
        let state = self.state(index)?;
        if state.from <= from && to <= state.height {
            return Ok(());
        }
        Err(self.behind(index, state)?)
    }
}
