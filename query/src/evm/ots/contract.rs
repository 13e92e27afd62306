//! Contracts and senders.

use chain::Account;
use chain::evm::Log;
use schema::contracts::{CONTRACTS, ContractTxs};
use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::keys::{AccountKey, Role};
use schema::logs::{Content, LogTxs, fingerprint};
use schema::tx::Txs;
use serde::Deserialize;
use serde_json::json;
use store::{Bounds, Key as _, List as _, Order, list};
use web::http_error::HttpError;
use web::limits::lane;

use super::super::tx::{OfBlock, damaged, parse};
use super::super::{Error, EvmView};

impl EvmView<'_> {
    /// `ots_hasCode`, as far as the index can tell: whether `contract` was created up to `height`, or has logged, as contracts of
    /// genesis do, which nothing created. Needs the optional index `contracts`, and `logs` for the latter. A contract that
    /// destroyed itself still counts.
    pub fn was_contract(&self, contract: [u8; 20], height: u64) -> Result<bool, Error> {
        if let Some(seq) = self.creation_seq(contract, false)? {
            return Ok(self.height_and_hash(seq)?.0 <= height);
        }
        self.has_logged(&contract, height)
    }

    /// Whether the first transaction that the index `logs` has of `contract` is one up to `height` with a log of it.
    fn has_logged(&self, contract: &[u8; 20], height: u64) -> Result<bool, Error> {
        let owner = fingerprint(Content::Address(contract));
        let Some(seq) = list::get::<LogTxs>(self.view.snapshot(), &owner, 0)? else { return Ok(false) };
        let record = self.record::<EvmTxs>(seq)?;
        let receipt = parse(seq, &record)?;
        let is_of = |log: &Log<'_>| log.address_bytes().as_ref() == Some(contract);
        Ok(receipt.block_number().is_some_and(|at| at <= height.min(self.head()))
            && receipt.logs.iter().any(is_of))
    }

    /// `ots_getContractCreator`: the transaction that created `contract`, the last one if it destroyed itself in between, with its
    /// creator. Needs the optional index `contracts`. `None` if no transaction created it.
    ///
    /// A Cosmos transaction that a node does not show has its Cosmos hash. The creator is who made the call that created it: a
    /// contract, or the sender; if its calls are not indexed, the sender.
    pub fn contract_creator(&self, contract: [u8; 20]) -> Result<Option<Vec<u8>>, Error> {
        let Some(seq) = self.creation_seq(contract, true)? else { return Ok(None) };
        let (_, cosmos) = self.height_and_hash(seq)?;
        let (hash, mut creator) = (self.evm_hash(&cosmos)?, None);
        if let Some(hash) = &hash
            && let Some(found) = self.find(hash)?
        {
            creator = match self.creator_by_calls(hash, &found, &Account::from(contract).to_hex()) {
                Err(Error::Off(_) | Error::NoCalls { .. }) => None,
                by_calls => by_calls?,
            };
            let sender = parse(0, &found.receipt)?.from.to_string();
            creator = creator.or_else(|| found.tx.summary().is_signed.then_some(sender));
        }
        let creator = match creator {
            Some(creator) => creator,
            None => self.cosmos_sender(seq)?.unwrap_or(Account::ZERO).to_hex(),
        };
        let hash = format!("0x{}", hex::encode(hash.unwrap_or(cosmos)));
        Ok(Some(json!({ "hash": hash, "creator": creator }).to_string().into_bytes()))
    }

    /// `ots_getTransactionBySenderAndNonce`: the hash of the transaction that `sender` signed with `nonce`; the last one, if blocks
    /// have several. `None` if there is none.
    pub fn by_nonce(&self, sender: [u8; 20], nonce: u64) -> Result<Option<[u8; 32]>, Error> {
        let (snapshot, owner) = (self.view.snapshot(), (AccountKey(Account::from(sender)), Role::Signer));
        if sender == [0; 20] {
            // That of Cosmos transactions, which have none.
            return Ok(None);
        }
        // Nonces grow along the list.
        let (mut low, mut high) = (0, list::len::<AccountEvmTxs>(snapshot, &owner)?);
        let mut last = None;
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(seq) = list::get::<AccountEvmTxs>(snapshot, &owner, middle)? else { break };
            let Some((found, hash)) = self.nonce_of(seq)? else {
                // It is above the head.
                high = middle;
                continue;
            };
            if found <= nonce {
                last = Some((found, hash));
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(last.filter(|(found, _)| *found == nonce).map(|(_, hash)| hash))
    }

    /// The nonce and the hash of the transaction `seq`; `None` above the head.
    fn nonce_of(&self, seq: u64) -> Result<Option<(u64, [u8; 32])>, Error> {
        let record = self.record::<EvmTxs>(seq)?;
        let receipt = parse(seq, &record)?;
        let height = receipt.block_number().ok_or_else(|| damaged::<EvmTxs>(seq, &"its block number"))?;
        let Some(block) = self.stored(height)? else { return Ok(None) };
        let hash = receipt.hash().map_err(|error| damaged::<EvmTxs>(seq, &error))?;
        let nonce = self
            .found(&block, &[seq])?
            .first()
            .map(|found| found.tx.summary())
            .filter(|tx| tx.is_signed)
            .map(|tx| tx.nonce);
        Ok(Some((nonce.unwrap_or_default(), hash)))
    }

    /// The first or last transaction that created a contract, up to the head.
    fn creation_seq(&self, contract: [u8; 20], is_last: bool) -> Result<Option<u64>, Error> {
        self.require(&CONTRACTS, self.first(), self.head())?;
        let (snapshot, owner) = (self.view.snapshot(), AccountKey(Account::from(contract)));
        let Some(head) = self.stored(self.head())? else { return Ok(None) };
        let len = list::len::<ContractTxs>(snapshot, &owner)?;
        let shown = list::position::<ContractTxs>(snapshot, &owner, len, head.first_tx + head.txs)?;
        let ordinal = if is_last { shown.checked_sub(1) } else { Some(0).filter(|_| shown > 0) };
        Ok(ordinal.map(|ordinal| list::get::<ContractTxs>(snapshot, &owner, ordinal)).transpose()?.flatten())
    }

    /// The contracts that transactions created, by their addresses: `take` of them behind the first `skip`. Needs the optional index
    /// `contracts`.
    pub fn contracts(&self, skip: u64, take: u64) -> Result<Vec<[u8; 20]>, Error> {
        self.require(&CONTRACTS, self.first(), self.head())?;
        let (mut found, mut start) = (Vec::new(), Vec::new());
        for place in 0..skip.saturating_add(take) {
            let bounds = Bounds { start: &start, end: None };
            let rows = self.view.snapshot().scan(ContractTxs::SPEC, bounds, Order::Asc, 1)?;
            let Some((key, value)) = rows.first() else { break };
            lane::spend((key.len() + value.len()) as u64)?;
            let owner = AccountKey::take(&mut &key[..]);
            let owner = owner
                .ok_or_else(|| Error::Failed(HttpError::internal("a key of `contract_tx` is damaged")))?;
            if place >= skip {
                found.extend(owner.0.as_bytes().first_chunk::<20>());
            }
            // Past the rows of this contract, whose keys end with a number.
            start = owner.to_bytes();
            start.extend_from_slice(&[u8::MAX; 9]);
        }
        Ok(found)
    }

    /// Height and hash of the Cosmos transaction `seq`.
    fn height_and_hash(&self, seq: u64) -> Result<(u64, [u8; 32]), Error> {
        let record = self.record::<Txs>(seq)?;
        let of: OfBlock = serde_json::from_slice(&record).map_err(|error| damaged::<Txs>(seq, &error))?;
        let hash = chain::hash::parse_hash(&of.txhash).ok().flatten();
        Ok((of.height, hash.ok_or_else(|| damaged::<Txs>(seq, &"its hash"))?))
    }

    /// The sender of the first message of the Cosmos transaction `seq`, if it names one.
    pub(in crate::evm) fn cosmos_sender(&self, seq: u64) -> Result<Option<Account>, Error> {
        let record = self.record::<Txs>(seq)?;
        let sent = serde_json::from_slice::<Sent>(&record).ok();
        let message = sent.and_then(|sent| sent.tx.body.messages.into_iter().next());
        let sender = message.and_then(|message| message.sender.or(message.signer));
        Ok(sender.and_then(|sender| Account::from_bech32(&sender, &self.indexer.identity.prefix)))
    }
}

/// The sender in a record.
#[derive(Deserialize)]
struct Sent {
    tx: SentTx,
}

#[derive(Deserialize)]
struct SentTx {
    body: SentBody,
}

#[derive(Deserialize)]
struct SentBody {
    messages: Vec<SentMessage>,
}

#[derive(Deserialize)]
struct SentMessage {
    sender: Option<String>,
    signer: Option<String>,
}
