//! EVM receipts against the transactions and results that headers cover.
//!
//! No header covers a receipt, but a MiniEVM node derives it from a transaction and its result alone
//! (`minievm:indexer/utils.go`, `indexer/abci.go`), so all three can be compared. There are two kinds:
//!
//! * An **Ethereum transaction** (see [`crate::eth_tx`]) has a receipt whether it succeeded or not. Its hash is
//!   recomputed from the Cosmos transaction that wraps it, which binds `type`, `from`, `to` and `effectiveGasPrice`
//!   too.
//! * Any other transaction that succeeded and logged has a **stand-in**: from the zero address to no recipient at price
//!   0, under the hash of an empty Ethereum transaction whose input is the Cosmos hash. A transaction that failed or
//!   did not log has none.
//!
//! All receipts of a block follow the order of its transactions; position, status, gas, created contract and bloom
//! filter follow from the results. The logs are those of the transaction's `evm` events. The logs of EVM messages are
//! in the result data as well, which the next header covers: those must be among the receipt's, in order. The rest,
//! logs of fees, bank sends and IBC receives, is bound only to the events of `/block_results`, which may come from
//! another endpoint than the receipts; [`Bound`] counts both.
//!
//! The EVM's own `blockHash` is not recomputed, only compared among all receipts; `logIndex` counts within the
//! transaction or within the block, depending on the version.

use thiserror::Error;

mod fields;
mod logs;

use self::fields::{Expected, Place};
use crate::comet::TxResult;
use crate::eth_form::{EthForm, ethereum_chain_id, stand_in_hash};
use crate::eth_tx;
use crate::evm::{Log, Receipt};
use crate::evm_data::EvmData;
use crate::hash::{Hash, to_hex};
use crate::tx::DecodedTx;

/// The parameters of a chain that its receipts depend on.
#[derive(Debug, Clone, Copy)]
pub struct EvmChain<'a> {
    /// The Cosmos chain id.
    pub chain_id: &'a str,
    /// Prefix of account addresses.
    pub prefix: &'a str,
    /// The token in which fees are paid. If it is unknown, a failed transaction with a fee may lack a receipt.
    pub fee_denom: Option<&'a str>,
}

/// A transaction of the block with its result.
#[derive(Debug, Clone, Copy)]
pub struct Executed<'a> {
    /// Its Cosmos hash.
    pub hash: Hash,
    /// The transaction; `None` if the bytes are not one.
    pub tx: Option<&'a DecodedTx>,
    /// The result.
    pub result: &'a TxResult<'a>,
}

/// The share of a block's receipts that is bound to proven data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bound {
    /// Receipts, each of which belongs to its transaction.
    pub receipts: usize,
    /// Logs of all receipts.
    pub logs: usize,
    /// Logs in result data, which the next header proves.
    pub proven_logs: usize,
    /// Receipts whose logs are all in result data.
    pub proven_receipts: usize,
}

/// Receipts do not belong to the block's transactions.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrongReceipts {
    /// A transaction must have a receipt, and the next receipt belongs to another transaction.
    #[error(
        "block {height}: transaction {tx} has no receipt at its place, there is {found}: ask another endpoint"
    )]
    Missing {
        /// Height of the block.
        height: u64,
        /// The Cosmos hash.
        tx: String,
        /// Hash of the receipt in its place, or `none`.
        found: String,
    },
    /// No transaction of the block has this receipt, at least not in this position.
    #[error("block {height}: receipt {receipt} belongs to no transaction there: ask another endpoint")]
    Extra {
        /// Height of the block.
        height: u64,
        /// Its hash.
        receipt: String,
    },
    /// A member differs from the value that follows from the transaction and its result.
    #[error(
        "block {height}: {member} of receipt {receipt} is {actual:?}, of its transaction follows \
         {expected:?}: ask another endpoint"
    )]
    Member {
        /// Height of the block.
        height: u64,
        /// Hash of the receipt.
        receipt: String,
        /// The member.
        member: &'static str,
        /// Its value.
        actual: String,
        /// The value that follows from the transaction.
        expected: String,
    },
    /// A log of the result data is not among the events.
    #[error(
        "block {height}: log {log} in the result data of transaction {tx} is not in its events: ask another endpoint"
    )]
    Data {
        /// Height of the block.
        height: u64,
        /// The Cosmos hash.
        tx: String,
        /// The position of the log in the data, from 0.
        log: usize,
    },
    /// A log in an event cannot be decoded.
    #[error(
        "block {height}: a log in the events of transaction {tx} is none ({error}): ask another endpoint"
    )]
    Event {
        /// Height of the block.
        height: u64,
        /// The Cosmos hash.
        tx: String,
        /// The error.
        error: String,
    },
}

/// Checks that a block has exactly the receipts that follow from its transactions and their results, with the values
/// that follow.
///
/// `txs` are all transactions of the block in order, decoded and with the results that
/// [`super::check_results`] will prove. Holds for all 34,908 receipts of the recorded chains. Of their 31,644 logs
/// 30,911 are in result data: all of `MsgCall` and `MsgCreate`, but not the logs of other Cosmos messages that their
/// contracts sent. 24,729 receipts have logs and have all of them there; 8,084 are of failed transactions and have
/// none.
pub fn check_receipts<'a>(
    chain: &EvmChain<'_>,
    height: u64,
    txs: impl IntoIterator<Item = Executed<'a>>,
    receipts: &[Receipt<'_>],
) -> Result<Bound, WrongReceipts> {
    let mut check = Check {
        chain,
        chain_id: ethereum_chain_id(chain.chain_id),
        place: Place::before(height, receipts),
        decimals: 18,
        rest: receipts.iter(),
        bound: Bound::default(),
    };
    for tx in txs {
        check.tx(&tx)?;
    }
    match check.rest.next() {
        None => Ok(check.bound),
        Some(extra) => Err(WrongReceipts::Extra { height, receipt: extra.transaction_hash.to_string() }),
    }
}

struct Check<'c, 'r, 'b> {
    chain: &'c EvmChain<'c>,
    chain_id: u64,
    place: Place<'r>,
    /// Decimals of the fee token, from the previous receipt.
    decimals: u8,
    rest: std::slice::Iter<'r, Receipt<'b>>,
    bound: Bound,
}

impl Check<'_, '_, '_> {
    fn tx(&mut self, executed: &Executed<'_>) -> Result<(), WrongReceipts> {
        let succeeded = executed.result.code == 0;
        let form = executed.tx.and_then(|tx| EthForm::of(tx, self.chain.prefix));
        if !succeeded && form.is_none() {
            return Ok(());
        }
        let logs = if succeeded { self.logs(executed)? } else { Vec::new() };
        let next = self.rest.as_slice().first();
        let hash = next.and_then(|receipt| receipt.hash().ok());
        if let (Some(form), Some(hash)) = (&form, &hash)
            && form.has_hash(self.chain_id, hash, &mut self.decimals)
        {
            return self.receipt(executed, Some(form), &logs);
        }
        // A node that reindexed shows an Ethereum transaction of an old version as a stand-in, but never a current one.
        if form.is_none() && !logs.is_empty() && hash == Some(stand_in_hash(&executed.hash)) {
            return self.receipt(executed, None, &logs);
        }
        let must = match (&form, executed.tx) {
            // The ante handler converts every successful transaction of this sign mode, whatever its fee.
            (Some(_), Some(tx)) => succeeded || eth_tx::fee_is_in(tx, self.chain.fee_denom),
            _ => !logs.is_empty(),
        };
        if must {
            return Err(self.missing(executed));
        }
        Ok(())
    }

    /// The logs in the events, which must contain those of the data.
    fn logs<'e>(&mut self, executed: &'e Executed<'_>) -> Result<Vec<Log<'e>>, WrongReceipts> {
        let (height, tx) = (self.place.height, || to_hex(&executed.hash));
        let logs = logs::of_events(&executed.result.events).map_err(|error| WrongReceipts::Event {
            height,
            tx: tx(),
            error: error.to_string(),
        })?;
        // Data that is not base64 was rejected with the results.
        let data = executed.result.data_bytes().unwrap_or_default();
        let data = EvmData::read(&data);
        logs::check_data(&logs, &data.logs).map_err(|log| WrongReceipts::Data { height, tx: tx(), log })?;
        self.bound.proven_logs += data.logs.len();
        self.bound.proven_receipts += usize::from(!logs.is_empty() && data.logs.len() == logs.len());
        Ok(logs)
    }

    fn receipt(
        &mut self,
        executed: &Executed<'_>,
        form: Option<&EthForm>,
        logs: &[Log<'_>],
    ) -> Result<(), WrongReceipts> {
        let Some(receipt) = self.rest.next() else { return Err(self.missing(executed)) };
        let expected = Expected { form, result: executed.result, logs };
        let wrong = self.place.check(receipt, &expected).err();
        if let Some(wrong) = wrong {
            return Err(WrongReceipts::Member {
                height: self.place.height,
                receipt: receipt.transaction_hash.to_string(),
                member: wrong.member,
                actual: wrong.actual,
                expected: wrong.expected,
            });
        }
        self.bound.receipts += 1;
        self.bound.logs += logs.len();
        Ok(())
    }

    fn missing(&self, executed: &Executed<'_>) -> WrongReceipts {
        let found = self.rest.as_slice().first();
        WrongReceipts::Missing {
            height: self.place.height,
            tx: to_hex(&executed.hash),
            found: found.map_or_else(|| "none".to_owned(), |receipt| receipt.transaction_hash.to_string()),
        }
    }
}
