//! What the index has, for the calls of one request.

use std::fmt::Display;

use http::StatusCode;
use query::Indexer;
use query::evm::{Error, EvmView, Frames, LogLimits};
use sha3::{Digest as _, Keccak256};
use web::http_error::HttpError;

use crate::Dialect;
use crate::go_json::Block;
use crate::log_query::{Blocks, LogQuery, MAX_ADDRESSES};
use crate::params::Value;
use crate::rpc_error::{DEFAULT, INTERNAL, INVALID_PARAMS, PRUNED, RpcError};

/// Blocks behind the node from which on the index is called syncing.
const SYNCING: u64 = 100;

/// The maximum of contracts of a node, and that of its blocks (`minievm:jsonrpc/config`).
const NODE_ADDRESSES: usize = 100;
const NODE_RANGE: i64 = 1_000_000;

/// What a node computes with in place of a tag.
const NODE_TAG: i64 = -2;

const NULL: &[u8] = b"null";

/// The chain, apart from its index.
pub(crate) struct Chain {
    pub(crate) dialect: Dialect,
    /// Name and version of this program.
    pub(crate) client: String,
    /// The height of the node, if it is known.
    pub(crate) tip: Option<u64>,
    /// Which calls of a transaction are shown.
    pub(crate) frames: Frames,
}

/// The index in one snapshot.
pub(crate) struct Reads<'a> {
    pub(crate) view: EvmView<'a>,
    pub(crate) chain: &'a Chain,
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// As it is sent.
    Reply(RpcError),
    /// Of the index.
    Index(Error),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Reply(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

pub(crate) type Outcome = Result<Vec<u8>, Failure>;

impl Failure {
    /// The error of a call of `method`.
    pub(crate) fn into_reply(self, method: &str) -> RpcError {
        let error = match self {
            Self::Reply(error) => return error,
            Self::Index(error) => error,
        };
        match error {
            Error::Off(index) => RpcError::method_missing(method).with_data(needs(index)),
            Error::Behind { index, from, height, is_written } => {
                let reason = if is_written {
                    "it is being built"
                } else {
                    "and the process that indexes does not name it in `index`"
                };
                let message = if height < from {
                    format!("the index `{index}` has no blocks now, {reason}")
                } else {
                    format!("the index `{index}` has blocks {from} to {height} now, {reason}")
                };
                RpcError::new(DEFAULT, message)
            }
            Error::Pruned { first } => RpcError::new(PRUNED, "pruned history unavailable")
                .with_data(format!("the first indexed block is {first}")),
            Error::TooMany { limit, retry: (from, to) } => RpcError::new(
                INVALID_PARAMS,
                format!("query returned more than {limit} results, retry with the range {from}-{to}"),
            )
            .with_data(format!("Try with this block range [{from:#x}, {to:#x}]")),
            Error::NoCalls { height, is_late: true } => {
                RpcError::new(DEFAULT, format!("the calls of block {height} are not indexed yet"))
            }
            Error::NoCalls { height, is_late: false } => RpcError::new(
                DEFAULT,
                format!(
                    "the calls of a transaction of block {height} are not known: the node could not trace it"
                ),
            ),
            Error::TooLarge => RpcError::too_large(),
            Error::Failed(error) => error.into(),
        }
    }
}

impl From<HttpError> for RpcError {
    /// The causes of internal errors go to the log.
    fn from(error: HttpError) -> Self {
        if let Some(detail) = error.detail() {
            tracing::error!(detail, "a call of the EVM interface failed");
        }
        let code = match error.status() {
            StatusCode::INTERNAL_SERVER_ERROR => INTERNAL,
            _ => DEFAULT,
        };
        Self::new(code, error.message())
    }
}

impl<'a> Reads<'a> {
    /// Takes the snapshot. An error 404 on a chain without an EVM.
    pub(crate) fn new(indexer: &'a Indexer, chain: &'a Chain) -> Result<Self, HttpError> {
        Ok(Self { view: indexer.evm(chain.dialect)?, chain })
    }

    pub(crate) fn chain_id(&self) -> Result<Vec<u8>, Error> {
        Ok(quantity(self.view.chain_id()?))
    }

    pub(crate) fn net_version(&self) -> Vec<u8> {
        text(self.view.net_version())
    }

    pub(crate) fn client_version(&self) -> Vec<u8> {
        text(&self.chain.client)
    }

    pub(crate) fn block_number(&self) -> Vec<u8> {
        quantity(self.view.head())
    }

    pub(crate) fn syncing(&self) -> Vec<u8> {
        let (first, head) = (self.view.first(), self.view.head());
        match self.chain.tip.filter(|tip| *tip > head + SYNCING) {
            None => b"false".to_vec(),
            Some(tip) => format!(
                r#"{{"startingBlock":"{first:#x}","currentBlock":"{head:#x}","highestBlock":"{tip:#x}"}}"#
            )
            .into_bytes(),
        }
    }

    pub(crate) fn block(&self, args: &[Value]) -> Outcome {
        let full = matches!(args.get(1), Some(Value::Bool(true)));
        self.of_block(args, |height| self.view.block(height, full))
    }

    pub(crate) fn block_receipts(&self, args: &[Value]) -> Outcome {
        self.of_block(args, |height| self.view.receipts(height))
    }

    pub(crate) fn count(&self, args: &[Value]) -> Outcome {
        self.of_block(args, |height| Ok(self.view.tx_count(height)?.map(quantity)))
    }

    pub(crate) fn transaction(&self, args: &[Value]) -> Outcome {
        or_null(self.view.tx(hash(args)?))
    }

    pub(crate) fn transaction_at(&self, args: &[Value]) -> Outcome {
        let index = index(args)?;
        self.of_block(args, |height| self.view.tx_at(height, index))
    }

    /// Empty bytes if there is no such transaction.
    pub(crate) fn raw(&self, args: &[Value]) -> Outcome {
        Ok(data(&self.view.raw_tx(hash(args)?)?.unwrap_or_default()))
    }

    /// As [`Self::raw`].
    pub(crate) fn raw_at(&self, args: &[Value]) -> Outcome {
        let (index, height) = (index(args)?, self.resolved(block_of(args)?)?);
        let raw = height.map(|height| self.view.raw_tx_at(height, index)).transpose()?.flatten();
        Ok(data(&raw.unwrap_or_default()))
    }

    pub(crate) fn receipt(&self, args: &[Value]) -> Outcome {
        or_null(self.view.receipt(hash(args)?))
    }

    /// Zeros if there is no such transaction.
    pub(crate) fn cosmos_hash(&self, args: &[Value]) -> Outcome {
        Ok(text(&hex::encode(self.view.cosmos_hash(hash(args)?)?.unwrap_or_default())))
    }

    /// Zeros if there is no such transaction.
    pub(crate) fn evm_hash(&self, args: &[Value]) -> Outcome {
        Ok(data(&self.view.evm_hash(hash(args)?)?.unwrap_or_default()))
    }

    pub(crate) fn logs(&self, args: &[Value]) -> Outcome {
        let Some(Value::LogQuery(query)) = args.first() else { return Err(no_argument().into()) };
        let LogQuery { blocks, filter } = &**query;
        let max = match self.view.dialect() {
            Dialect::Fixed => MAX_ADDRESSES,
            Dialect::Node => NODE_ADDRESSES,
        };
        if filter.addresses().len() > max {
            return Err(RpcError::new(DEFAULT, "exceed max addresses").into());
        }
        let heights = match blocks {
            // A node reads no hash as no block, which is its first one.
            Blocks::One(hash) if *hash == [0; 32] && self.view.dialect() == Dialect::Node => (1, 1),
            Blocks::One(hash) => {
                let height = match self.view.height_of(hash) {
                    Err(Error::Off(index)) => {
                        return Err(self.unknown_block_of_logs(hash).with_data(needs(index)).into());
                    }
                    height => height?.ok_or_else(|| self.unknown_block_of_logs(hash))?,
                };
                (height, height)
            }
            Blocks::Range(from, to) => self.range(*from, *to)?,
        };
        Ok(self.view.logs(filter, heights.0..=heights.1, LogLimits::default())?)
    }

    /// The heights of a query, with the checks of a node in its order.
    fn range(&self, from: Block, to: Block) -> Result<(u64, u64), Failure> {
        let refused = |message: String| Failure::from(RpcError::new(DEFAULT, message));
        let signed = |block| match block {
            Block::Number(number) => i64::try_from(number).unwrap_or(i64::MAX),
            Block::Head | Block::Hash(_) => NODE_TAG,
        };
        let (first, last) = (signed(from), signed(to));
        if first > 0 && last > 0 && first > last {
            return Err(refused("invalid block range params".to_owned()));
        }
        if self.view.dialect() == Dialect::Node && last.saturating_sub(first).saturating_add(1) > NODE_RANGE {
            return Err(refused(format!("block range exceeded {NODE_RANGE}")));
        }
        let (first, last) = (self.resolved(from)?, self.resolved(to)?);
        let (Some(first), Some(last)) = (first, last) else {
            return Err(refused("unknown block".to_owned()));
        };
        if first > last {
            return Err(refused(format!("invalid range [{first}, {last}]")));
        }
        Ok((first, last))
    }

    fn unknown_block_of_logs(&self, hash: &[u8; 32]) -> RpcError {
        let message = match self.view.dialect() {
            Dialect::Fixed => "unknown block".to_owned(),
            Dialect::Node => {
                format!("failed to fetch block header by hash 0x{}: {NO_SUCH_HASH}", hex::encode(hash))
            }
        };
        RpcError::new(DEFAULT, message)
    }

    /// The result for the block that the first argument names; `null` if there is none.
    pub(crate) fn of_block(
        &self,
        args: &[Value],
        read: impl FnOnce(u64) -> Result<Option<Vec<u8>>, Error>,
    ) -> Outcome {
        match self.resolved(block_of(args)?)? {
            Some(height) => or_null(read(height)),
            None if self.view.dialect() == Dialect::Node => Err(RpcError::new(INTERNAL, NO_SUCH_HASH).into()),
            None => Ok(NULL.to_vec()),
        }
    }

    /// The height of a block, which may be above the head; `None` for an unknown hash. A node's first block is 1, which is also
    /// that of the number 0.
    pub(crate) fn resolved(&self, block: Block) -> Result<Option<u64>, Error> {
        match block {
            Block::Head => Ok(Some(self.view.head().max(1))),
            Block::Number(number) => Ok(Some(number.max(1))),
            Block::Hash(hash) => self.view.height_of(&hash),
        }
    }
}

fn needs(index: &str) -> String {
    format!("it needs the optional index `{index}`, which is not stored")
}

/// Text of a node for the hash of no block.
const NO_SUCH_HASH: &str = "internal jsonrpc error: failed to get block number by hash";

/// Keccak-256 of bytes.
pub(crate) fn sha3(args: &[Value]) -> Outcome {
    let Some(Value::Bytes(bytes)) = args.first() else { return Err(no_argument().into()) };
    Ok(data(&Keccak256::digest(bytes)))
}

pub(crate) fn or_null(found: Result<Option<Vec<u8>>, Error>) -> Outcome {
    Ok(found?.unwrap_or_else(|| NULL.to_vec()))
}

pub(crate) fn hash(args: &[Value]) -> Result<&[u8; 32], Failure> {
    match args.first() {
        Some(Value::Hash(hash)) => Ok(hash),
        _ => Err(no_argument().into()),
    }
}

pub(crate) fn block_of(args: &[Value]) -> Result<Block, Failure> {
    match args.first() {
        Some(Value::Block(block)) => Ok(*block),
        Some(Value::Hash(hash)) => Ok(Block::Hash(*hash)),
        _ => Err(no_argument().into()),
    }
}

pub(crate) fn index(args: &[Value]) -> Result<u64, Failure> {
    match args.get(1) {
        Some(Value::Index(index)) => Ok(*index),
        _ => Err(no_argument().into()),
    }
}

/// The table of methods names another type of argument than its function reads.
pub(crate) fn no_argument() -> RpcError {
    RpcError::new(INTERNAL, "internal server error")
}

pub(crate) fn quantity(number: u64) -> Vec<u8> {
    text(&format!("{number:#x}"))
}

pub(crate) fn data(bytes: &[u8]) -> Vec<u8> {
    text(&format!("0x{}", hex::encode(bytes)))
}

/// A JSON text without anything to escape.
fn text(text: &(impl Display + ?Sized)) -> Vec<u8> {
    format!("\"{text}\"").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// viem and alloy send a call again after -32603 and -32005, which changes nothing about a limit; ponder, graph-node and hyperindex
    /// read the range from the text.
    #[test]
    fn what_a_request_asks_too_much_of_is_no_error_that_clients_repeat() {
        let written = |error: Error| {
            let mut out = Vec::new();
            Failure::Index(error).into_reply("eth_getLogs").write(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(Error::TooMany { limit: 10_000, retry: (1, 47) }),
            r#"{"code":-32602,"message":"query returned more than 10000 results, retry with the range 1-47","data":"Try with this block range [0x1, 0x2f]"}"#
        );
        assert_eq!(written(Error::TooLarge), r#"{"code":-32003,"message":"response too large"}"#);
        for error in [
            Error::Off("logs"),
            Error::Behind { index: "logs", from: 1, height: 7, is_written: true },
            Error::Behind { index: "logs", from: 1, height: 7, is_written: false },
            Error::Pruned { first: 400 },
            Error::NoCalls { height: 7, is_late: true },
            Error::NoCalls { height: 7, is_late: false },
            Error::Failed(HttpError::bad_request("a parameter")),
        ] {
            let text = written(error);
            assert!(!text.contains("-32603") && !text.contains("-32005"), "{text}");
        }
    }
}
