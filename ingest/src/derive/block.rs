//! A block, its results and its receipts → [`Block`].

use std::collections::HashMap;
use std::fmt::Display;

use bytes::Bytes;
use chain::comet::proof::{
    self, Claims, Commitments, EthereumBlock, EvmChain, Executed, NamedReceipts, WrongReceipts,
};
use chain::comet::{self, BlockResponse, ResultsResponse, TxResult};
use chain::evm::erc20::{self, Erc20Event};
use chain::evm::{coin, eth_tx, ethereum_events};
use chain::fee::FeeTotals;
use chain::involved::{self, StoreOwners};
use chain::record::{Proposer, write_tx_record};
use chain::tx::DecodedTx;
use chain::{Account, AccountSet, Timestamp, Vm, evm, hash, signer};
use schema::evm_tx::EvmTxs;
use schema::payload::{Packed, Packer};
use schema::records::Records as _;
use schema::tx::Txs;

use super::{Block, EvmTx, Failure, Part, Rules, Tx, WorkerState};
use crate::finality;
use crate::nft::{NftAt, Replies};
use crate::priority::yield_core;

/// The node's replies about one height.
#[derive(Clone, Copy, Debug)]
pub struct BlockResponses<'a> {
    /// The requested height.
    pub height: u64,
    /// `result` of `/block`.
    pub block: &'a [u8],
    /// `result` of `/block_results`.
    pub results: &'a [u8],
    /// The reply about its EVM transactions, if it was requested.
    pub evm: Option<EvmResponse<'a>>,
}

/// A reply that a block's EVM transactions are derived from.
#[derive(Clone, Copy, Debug)]
pub enum EvmResponse<'a> {
    /// `result` of `eth_getBlockReceipts`; checked against the transactions if answers are verified.
    Receipts(&'a [u8]),
    /// The same, not checked.
    Unchecked(&'a [u8]),
    /// `result` of `eth_getBlockByNumber`: the receipts are derived from the transactions and their results.
    Block(&'a [u8]),
}

/// A transaction that the loaded descriptors do not cover.
#[derive(Clone, Debug)]
pub struct Unrendered {
    /// Its position in the block.
    pub index: usize,
    /// Its bytes.
    pub raw: Vec<u8>,
    /// The error.
    pub reason: String,
    /// True if newer descriptors may cover it.
    pub curable: bool,
}

/// Renderings by the node, by position in the block; `None` if the node cannot render the transaction either.
pub type Rendered = HashMap<usize, Option<Bytes>>;

/// Whether the header of `next` confirms these results of `block`; `None` if it is not the next header.
pub fn confirms(next: &[u8], block: &[u8], results: &[u8]) -> Option<bool> {
    let (next, block) = (comet::parse_block(next).ok()?, comet::parse_block(block).ok()?);
    if next.header.last_block_hash != Some(block.hash) || proof::check_header(&next).is_err() {
        return None;
    }
    let claims = Claims::from_results(&comet::parse_results(results).ok()?).ok()?;
    Some(proof::check_results(&claims, &next).is_ok())
}

/// Derives a block. `rendered` holds the node's renderings of the transactions that an earlier attempt returned in
/// [`Failure::Unrendered`].
pub fn block(
    answers: &BlockResponses<'_>,
    rendered: &Rendered,
    rules: &Rules,
    worker: &mut WorkerState,
) -> Result<Block, Failure> {
    let block = comet::parse_block(answers.block).map_err(Failure::ask_again)?;
    if block.header.height != answers.height {
        return Err(Failure::ask_again(format!("the node answered with block {}", block.header.height)));
    }
    let raw = block.raw_txs().map_err(Failure::ask_again)?;
    let invalid = |part| move |error: &dyn Display| Failure::Invalid(part, error.to_string());
    if rules.verified {
        proof::check_header(&block).map_err(|error| invalid(Part::Block)(&error))?;
        proof::check_txs(&block, &raw).map_err(|error| invalid(Part::Block)(&error))?;
    }
    let mut results = comet::parse_results(answers.results).map_err(Failure::ask_again)?;
    comet::check_pair(&block, &results).map_err(Failure::ask_again)?;

    let mut cosmos = CosmosTxs::new(&block, &results, rendered, rules);
    let has_ethereum = rules.vm == Vm::Evm && rules.flavour.has_ethereum_messages();
    cosmos.keeps_decoded =
        rules.verified || has_ethereum || matches!(answers.evm, Some(EvmResponse::Block(_)));
    for (index, (raw, result)) in raw.iter().zip(&results.txs_results).enumerate() {
        cosmos.add(index, raw, result, worker)?;
        yield_core();
    }
    if !cosmos.unrendered.is_empty() {
        return Err(Failure::Unrendered(cosmos.unrendered));
    }
    let receipts = match &answers.evm {
        _ if has_ethereum => cosmos.ethereum_receipts(&block, &results)?,
        Some(answer) => cosmos.receipts(answer, &block.header.chain_id, &results.txs_results)?,
        None => Vec::new(),
    };
    let (evm_txs, evm_tx_records) =
        evm_txs(&receipts, worker).map_err(|error| invalid(Part::Receipts)(&error))?;
    drop(receipts);
    let claims = rules.verified.then(|| Claims::from_results(&results));
    let mut unknown_types = 0;
    if has_ethereum {
        unknown_types = proof::unknown_types(cosmos.decoded.iter().flatten());
        ethereum_events::add_evm_events(&cosmos.decoded, &mut results);
    }
    Ok(Block {
        height: block.header.height,
        hash: block.hash,
        parent: block.header.last_block_hash,
        claims: claims.transpose().map_err(|error| invalid(Part::Results)(&error))?,
        about_previous: Commitments::from_block(&block),
        answer: None,
        origins: None,
        chain_id: block.header.chain_id,
        time: block.header.time,
        gas_used: results.txs_results.iter().map(|result| i128::from(result.gas_used)).sum(),
        gas_wanted: results.txs_results.iter().map(|result| i128::from(result.gas_wanted)).sum(),
        fees: cosmos.fees.into_sorted(),
        proposer_address: block.header.proposer_address,
        proposer: Proposer::default(),
        proposer_is_open: false,
        events: block_events(&results)?,
        txs: cosmos.txs,
        tx_records: cosmos.records.finish(&mut worker.tx),
        evm_txs,
        evm_tx_records,
        unknown_types,
        nfts: nfts(&results, rules),
        answers: Replies::new(),
        probe: finality::probe(&results, &raw, &rules.prefix),
        erc20: erc20_events(&results, rules),
    })
}

/// What changes balances of the rich list.
pub(crate) fn erc20_events(results: &ResultsResponse<'_>, rules: &Rules) -> Vec<Erc20Event> {
    if rules.vm != Vm::Evm {
        return Vec::new();
    }
    let mut events =
        if rules.flavour.denoms_are_contracts() { Vec::new() } else { coin::events(results, &rules.prefix) };
    events.extend(erc20::events(results));
    events
}

/// The row of [`schema::block::BlockEvents`].
fn block_events(results: &ResultsResponse<'_>) -> Result<Vec<u8>, Failure> {
    match &results.finalize_block_events[..] {
        [] => Ok(Vec::new()),
        events => serde_json::to_vec(events).map_err(Failure::ask_again),
    }
}

/// Event ordinals are even, from 2: the uneven one before an event is reserved for the collection that it reveals.
fn nfts(results: &ResultsResponse<'_>, rules: &Rules) -> Vec<NftAt> {
    let events = chain::nft::events(rules.vm, &rules.prefix, results);
    let places = (2..).step_by(2);
    places.zip(events).map(|(place, (tx, event))| NftAt { place, tx, event }).collect()
}

/// Bytes of a record that is not copied: few have as many.
const LARGE_RECORD: usize = 4 << 20;

/// Accumulates the Cosmos transactions of a block.
struct CosmosTxs<'a> {
    height: u64,
    time: Timestamp,
    rendered: &'a Rendered,
    rules: &'a Rules,
    owners: StoreOwners,
    txs: Vec<Tx>,
    records: Packer,
    unrendered: Vec<Unrendered>,
    fees: FeeTotals,
    /// Transactions that must have a receipt: a lower bound.
    eth_txs: usize,
    /// True if receipts are verified or derived.
    keeps_decoded: bool,
    /// Every transaction, if they are kept; `None` for bytes that do not decode.
    decoded: Vec<Option<DecodedTx>>,
}

impl<'a> CosmosTxs<'a> {
    fn new(
        block: &BlockResponse<'_>,
        results: &ResultsResponse<'_>,
        rendered: &'a Rendered,
        rules: &'a Rules,
    ) -> Self {
        let of_txs = results.txs_results.iter().flat_map(|result| &result.events);
        let owners = involved::primary_stores(of_txs.chain(&results.finalize_block_events)).collect();
        Self {
            height: block.header.height,
            time: block.header.time,
            rendered,
            rules,
            owners,
            txs: Vec::with_capacity(block.txs.len()),
            records: Packer::new(Txs::MAX_RECORDS),
            unrendered: Vec::new(),
            fees: FeeTotals::new(),
            eth_txs: 0,
            keeps_decoded: false,
            decoded: Vec::new(),
        }
    }

    fn add(
        &mut self,
        index: usize,
        raw: &[u8],
        result: &TxResult<'_>,
        worker: &mut WorkerState,
    ) -> Result<(), Failure> {
        let decoded = DecodedTx::decode(raw);
        worker.body.clear();
        if let Err(unrendered) = self.render(index, raw, decoded.is_ok(), &mut worker.body) {
            self.unrendered.push(unrendered);
            return Ok(());
        }
        let hash = hash::tx_hash(raw);
        worker.record.clear();
        write_tx_record(&mut worker.record, &hash, self.height, result, &worker.body, self.time)
            .map_err(|error| Failure::ask_again(format!("data of transaction {index}: {error}")))?;

        let (mut signers, mut types) = (Vec::new(), Vec::new());
        if let Ok(tx) = decoded {
            signers = self.signers(&tx, result, worker);
            self.fees.add(&tx.fee);
            self.eth_txs += usize::from(eth_tx::is_eth_tx(&tx, &self.rules.prefix, result.code == 0, None));
            types.clone_from(&tx.message_types);
            if self.keeps_decoded {
                self.decoded.push(Some(tx));
            }
        } else if self.keeps_decoded {
            self.decoded.push(None);
        }
        let mut accounts = AccountSet::default();
        let Rules { vm, prefix, .. } = self.rules;
        involved::accounts(&result.events, prefix, *vm, &self.owners, &signers, &mut accounts);
        if worker.record.len() > LARGE_RECORD {
            self.records.push_large(std::mem::take(&mut worker.record), &mut worker.tx);
        } else {
            self.records.push(&worker.record, &mut worker.tx);
        }
        self.txs.push(Tx { hash, involved: accounts.into_iter().collect(), signers, types });
        Ok(())
    }

    /// The transactions with their results, in order.
    fn executed<'r>(&'r self, results: &'r [TxResult<'r>]) -> impl Iterator<Item = Executed<'r>> {
        let txs = self.txs.iter().zip(&self.decoded).zip(results);
        txs.map(|((tx, decoded), result)| Executed { hash: tx.hash, tx: decoded.as_ref(), result })
    }

    /// The receipts of the Ethereum transactions in the block's messages.
    fn ethereum_receipts<'r>(
        &'r self,
        block: &BlockResponse<'_>,
        results: &'r ResultsResponse<'r>,
    ) -> Result<Vec<evm::Receipt<'r>>, Failure> {
        let base_fee = proof::base_fee(results);
        let of = EthereumBlock { height: self.height, hash: block.hash, base_fee };
        proof::derive_ethereum_receipts(&of, self.executed(&results.txs_results)).map_err(Failure::ask_again)
    }

    /// The receipts of the block, in the form in which they are stored.
    fn receipts<'r>(
        &'r self,
        answer: &EvmResponse<'r>,
        chain_id: &str,
        results: &'r [TxResult<'r>],
    ) -> Result<Vec<evm::Receipt<'r>>, Failure> {
        let chain = EvmChain { chain_id, prefix: &self.rules.prefix, fee_denom: None };
        let wrong = |error: WrongReceipts| Failure::Invalid(Part::Receipts, error.to_string());
        match answer {
            EvmResponse::Block(text) => {
                let block = evm::parse_block(text, self.height).map_err(Failure::ask_again)?;
                let hashes: Vec<&str> = block.transactions.iter().map(AsRef::as_ref).collect();
                let names = NamedReceipts { block_hash: &block.hash, hashes: &hashes };
                let derived = proof::derive_receipts(&chain, self.height, self.executed(results), &names);
                derived.map(|derived| derived.receipts).map_err(wrong)
            }
            EvmResponse::Receipts(text) if self.rules.verified => {
                let receipts = receipts(text, self.height, self.eth_txs)?;
                let derived = proof::check_receipts(&chain, self.height, self.executed(results), &receipts);
                derived.map(|derived| derived.receipts).map_err(wrong)
            }
            EvmResponse::Receipts(text) | EvmResponse::Unchecked(text) => {
                let mut receipts = receipts(text, self.height, self.eth_txs)?;
                evm::normalise(&mut receipts);
                Ok(receipts)
            }
        }
    }

    /// Appends the JSON of the `tx` member.
    fn render(&self, index: usize, raw: &[u8], decodes: bool, out: &mut Vec<u8>) -> Result<(), Unrendered> {
        let registry = &self.rules.registry;
        let error = match proto::json::write_tx(registry, raw, out) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match self.rendered.get(&index) {
            Some(Some(by_node)) => splice(by_node, out),
            // No node can render bytes that are not a transaction (an L1's vote data).
            Some(None) => proto::json::write_opaque_tx(registry, raw, out),
            None if !decodes => proto::json::write_opaque_tx(registry, raw, out),
            None => {
                let curable = error.may_be_cured_by_newer_descriptors();
                return Err(Unrendered { index, raw: raw.to_vec(), reason: error.to_string(), curable });
            }
        }
        Ok(())
    }

    fn signers(&self, tx: &DecodedTx, result: &TxResult<'_>, worker: &mut WorkerState) -> Vec<Account> {
        let Rules { prefix, registry, .. } = self.rules;
        let by_message = || {
            let Some(first) = tx.messages.first() else { return Vec::new() };
            let named = proto::json::signers_named_by_message(registry, &first.type_url, &first.value);
            named.iter().filter_map(|name| Account::parse(name, prefix)).collect()
        };
        signer::signers(tx, &result.events, by_message, prefix, &mut worker.keys)
    }
}

/// The node's `{"body":…}` with the `@type` with which our own rendering begins.
fn splice(by_node: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"@type":"/cosmos.tx.v1beta1.Tx","#);
    out.extend_from_slice(by_node.trim_ascii().strip_prefix(b"{").unwrap_or(by_node).trim_ascii_start());
}

fn receipts(answer: &[u8], height: u64, expected: usize) -> Result<Vec<evm::Receipt<'_>>, Failure> {
    let failure = |error: evm::Error| match error {
        evm::Error::NotReady => Failure::ask_again(error),
        evm::Error::TooFew { .. } => Failure::ReceiptsMissing(error.to_string()),
        _ => Failure::Invalid(Part::Receipts, error.to_string()),
    };
    let receipts = evm::parse_receipts(answer).map_err(failure)?;
    evm::check_receipts(&receipts, height, expected).map_err(failure)?;
    Ok(receipts)
}

/// The transactions, and their records.
fn evm_txs(
    receipts: &[evm::Receipt<'_>],
    worker: &mut WorkerState,
) -> Result<(Vec<EvmTx>, Vec<Packed>), evm::Error> {
    let mut records = Packer::new(EvmTxs::MAX_RECORDS);
    let evm_tx = |receipt: &evm::Receipt<'_>| -> Result<EvmTx, evm::Error> {
        worker.record.clear();
        evm::write_evm_tx(&mut worker.record, receipt);
        records.push(&worker.record, &mut worker.evm_tx);
        let mut accounts = AccountSet::default();
        receipt.accounts(&mut accounts)?;
        yield_core();
        Ok(EvmTx { hash: receipt.hash()?, involved: accounts.into_iter().collect(), from: receipt.signer()? })
    };
    let txs = receipts.iter().map(evm_tx).collect::<Result<_, _>>()?;
    Ok((txs, records.finish(&mut worker.evm_tx)))
}
