//! EVM receipts against the transactions and results that headers cover.
//!
//! No header covers a receipt, but a MiniEVM node derives it from a transaction and its result alone
//! (`minievm:indexer/utils.go`, `indexer/abci.go`), so all three can be compared. There are two kinds:
//!
//! * An **Ethereum transaction** (see [`crate::evm::eth_tx`]) has a receipt whether it succeeded or not. Its hash is
//!   recomputed from the Cosmos transaction that wraps it, which binds `type`, `from`, `to` and `effectiveGasPrice`
//!   too.
//! * Any other transaction that succeeded and logged has a **stand-in**: from the zero address to no recipient at price
//!   0, under the hash of an empty Ethereum transaction whose input is the Cosmos hash. A transaction that failed or
//!   did not log has none.
//!
//! All receipts of a block follow the order of its transactions; position, status, gas, created contract and bloom
//! filter follow from the results. So receipts are derived, and a node's are compared with them member by member; only the
//! EVM's own `blockHash`, and the hashes that tell which transactions have a receipt, come from the node. A node that does
//! not answer for the receipts of a block (minievm cannot read those with a log without topics) is not needed for more.
//! The logs are those of the transaction's `evm` events. The logs of EVM messages are
//! in the result data as well, which the next header covers: those must be among the receipt's, in order. The rest,
//! logs of fees, bank sends and IBC receives, is bound only to the events of `/block_results`, which may come from
//! another endpoint than the receipts; [`Bound`] counts both.
//!
//! `blockHash` is not recomputed, only compared among all receipts.
//!
//! Chains with another EVM than minievm's have other rules, in `ethereum`.

use thiserror::Error;

mod ethereum;
mod logs;
mod members;

pub use self::ethereum::{EthereumBlock, base_fee, derive_ethereum_receipts, unknown_types};

use self::members::{Numbering, Place};
use crate::comet::TxResult;
use crate::evm::data::EvmData;
use crate::evm::eth_form::{EthForm, ethereum_chain_id, stand_in_hash};
use crate::evm::eth_tx;
use crate::evm::{self, Log, Receipt};
use crate::hash::{Hash, parse_hash, to_hex};
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
    /// The result data of a transaction has more or fewer responses than it has Ethereum transactions.
    #[error(
        "block {height}: the result data of {tx} has {responses} responses to {messages} Ethereum transactions: ask \
         another endpoint"
    )]
    Responses {
        /// Height of the block.
        height: u64,
        /// The Cosmos hash.
        tx: String,
        /// The responses.
        responses: usize,
        /// The Ethereum transactions.
        messages: usize,
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

/// Receipts that follow from a block's transactions and results, as [`evm::normalise`] leaves them.
#[derive(Debug)]
pub struct DerivedReceipts<'a> {
    /// The receipts, in order.
    pub receipts: Vec<Receipt<'a>>,
    /// The share that is bound to proven data.
    pub bound: Bound,
    /// Positions of the receipts whose transaction has a wrong signature, and so no sender: `from` is the address that
    /// recovering the key gives, and a node's own is not compared.
    pub unsigned: Vec<usize>,
}

/// The members of a block's receipts that only the node has.
#[derive(Debug, Clone, Copy)]
pub struct NamedReceipts<'n> {
    /// `blockHash`.
    pub block_hash: &'n str,
    /// The Ethereum hashes of the transactions with a receipt, in order.
    pub hashes: &'n [&'n str],
}

/// Derives the receipts of a block.
///
/// `txs` are all transactions of the block in order, decoded and with the results that [`super::check_results`] will
/// prove. Fails if the names are not those of these transactions. Equals all 34,908 receipts of the recorded chains. Of
/// their 31,644 logs 30,911 are in result data: all of `MsgCall` and `MsgCreate`, but not the logs of other Cosmos messages
/// that their contracts sent. 24,729 receipts have logs and have all of them there; 8,084 are of failed transactions and
/// have none.
pub fn derive_receipts<'a>(
    chain: &EvmChain<'_>,
    height: u64,
    txs: impl IntoIterator<Item = Executed<'a>>,
    names: &NamedReceipts<'_>,
) -> Result<DerivedReceipts<'a>, WrongReceipts> {
    let mut derivation = Derivation {
        chain,
        chain_id: ethereum_chain_id(chain.chain_id),
        height,
        block_hash: names.block_hash,
        rest: names.hashes.iter(),
        decimals: 18,
        gas: 0,
        receipts: Vec::with_capacity(names.hashes.len()),
        bound: Bound::default(),
        unsigned: Vec::new(),
    };
    for tx in txs {
        derivation.tx(&tx)?;
    }
    if let Some(extra) = derivation.rest.next() {
        return Err(WrongReceipts::Extra { height, receipt: (*extra).to_owned() });
    }
    let Derivation { mut receipts, bound, unsigned, .. } = derivation;
    evm::normalise(&mut receipts);
    Ok(DerivedReceipts { receipts, bound, unsigned })
}

/// Checks that a block has exactly the receipts that [`derive_receipts`] derives, and returns these.
pub fn check_receipts<'a>(
    chain: &EvmChain<'_>,
    height: u64,
    txs: impl IntoIterator<Item = Executed<'a>>,
    receipts: &[Receipt<'_>],
) -> Result<DerivedReceipts<'a>, WrongReceipts> {
    let hashes: Vec<&str> = receipts.iter().map(|receipt| &*receipt.transaction_hash).collect();
    let block_hash = receipts.first().map_or("", |first| &*first.block_hash);
    let mut derived = derive_receipts(chain, height, txs, &NamedReceipts { block_hash, hashes: &hashes })?;
    for place in &derived.unsigned {
        let mut from = receipts[*place].from.to_string();
        from.make_ascii_lowercase();
        derived.receipts[*place].from = from.into();
    }
    let mut numbering = Numbering::from_receipts(receipts);
    for (receipt, expected) in receipts.iter().zip(&derived.receipts) {
        numbering.compare(receipt, expected).map_err(|wrong| WrongReceipts::Member {
            height,
            receipt: receipt.transaction_hash.to_string(),
            member: wrong.member,
            actual: wrong.actual,
            expected: wrong.expected,
        })?;
    }
    Ok(derived)
}

struct Derivation<'c, 'n, 'a> {
    chain: &'c EvmChain<'c>,
    chain_id: u64,
    height: u64,
    block_hash: &'n str,
    rest: std::slice::Iter<'n, &'n str>,
    /// Decimals of the fee token, from the previous receipt.
    decimals: u8,
    /// Gas used by the receipts so far.
    gas: u64,
    receipts: Vec<Receipt<'a>>,
    bound: Bound,
    unsigned: Vec<usize>,
}

impl<'a> Derivation<'_, '_, 'a> {
    fn tx(&mut self, executed: &Executed<'a>) -> Result<(), WrongReceipts> {
        let succeeded = executed.result.code == 0;
        let form = executed.tx.and_then(|tx| EthForm::from_tx(tx, self.chain.prefix));
        if !succeeded && form.is_none() {
            return Ok(());
        }
        let logs = if succeeded { self.logs(executed)? } else { Vec::new() };
        let hash = self.rest.as_slice().first().and_then(|text| parse_hash(text).ok().flatten());
        if let (Some(form), Some(hash)) = (&form, &hash)
            && form.has_hash(self.chain_id, hash, &mut self.decimals)
        {
            let sender = self.sender(form, executed.result);
            self.receipt(executed, hash, (Some(form), sender), logs);
            return Ok(());
        }
        // A node that reindexed shows an Ethereum transaction of an old version as a stand-in, but never a current one.
        let stand_in = stand_in_hash(&executed.hash);
        if form.is_none() && !logs.is_empty() && hash == Some(stand_in) {
            self.receipt(executed, &stand_in, (None, [0; 20]), logs);
            return Ok(());
        }
        let must = match (&form, executed.tx) {
            (Some(_), Some(tx)) => eth_tx::is_eth_tx(tx, self.chain.prefix, succeeded, self.chain.fee_denom),
            _ => !logs.is_empty(),
        };
        if must { Err(self.missing(executed)) } else { Ok(()) }
    }

    /// The signer; of a wrong signature, which has none, the address that a node recovers from it.
    fn sender(&mut self, form: &EthForm, result: &TxResult<'_>) -> [u8; 20] {
        if result.code != UNAUTHORIZED || result.codespace != SDK {
            return form.sender;
        }
        self.unsigned.push(self.receipts.len());
        form.recovered(self.chain_id, self.decimals).unwrap_or_default()
    }

    /// The logs in the events, which must contain those of the data.
    fn logs(&mut self, executed: &Executed<'a>) -> Result<Vec<Log<'a>>, WrongReceipts> {
        let (height, tx) = (self.height, || to_hex(&executed.hash));
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
        executed: &Executed<'a>,
        hash: &Hash,
        form: (Option<&EthForm>, [u8; 20]),
        logs: Vec<Log<'a>>,
    ) {
        self.rest.next();
        self.bound.receipts += 1;
        self.bound.logs += logs.len();
        let (index, gas_before) = (self.receipts.len() as u64 + 1, self.gas);
        let place = Place { height: self.height, block_hash: self.block_hash, index, gas_before };
        self.receipts.push(members::derived(&place, hash, form, executed.result, logs));
        self.gas = gas_before.wrapping_add(executed.result.gas_used.cast_unsigned());
    }

    fn missing(&self, executed: &Executed<'_>) -> WrongReceipts {
        let found = self.rest.as_slice().first();
        let found = found.map_or_else(|| "none".to_owned(), |hash| (*hash).to_owned());
        WrongReceipts::Missing { height: self.height, tx: to_hex(&executed.hash), found }
    }
}

/// The SDK's code for a wrong signature, `ErrUnauthorized` of its `types/errors`. In the codespaces of modules the same
/// number means something else: in minievm's `x/evm`, a failed creation.
const UNAUTHORIZED: u32 = 4;
const SDK: &str = "sdk";
