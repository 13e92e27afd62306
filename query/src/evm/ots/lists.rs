//! Lists of contracts and of an account's transfers, as the second generation of Otterscan's methods (`ots2_*`) has them: ascending,
//! from a place on, with the times of their blocks.

use std::collections::BTreeMap;

use chain::movement::Token;
use schema::contracts::ContractTxs;
use schema::keys::AccountKey;
use schema::movement::TokenKey;
use schema::tokens::{self, TOKENS, Tokens, TokensByType};
use serde_json::{Map, Value, json};
use store::{Message, list, table};

use super::super::history::{HeldToken, Standard, TransfersOf, Window};
use super::super::tokens::token;
use super::super::{Error, EvmView};
use super::text;

/// Contracts that are sorted for a request.
const MAX_CONTRACTS: u64 = 10_000;

impl EvmView<'_> {
    /// The number of contracts with tokens of a standard that have moved or have a name. Needs the optional index `tokens`.
    pub fn token_contracts(&self, standard: Standard) -> Result<u64, Error> {
        self.require(&TOKENS, self.first(), self.head())?;
        let (snapshot, of) = (self.view.snapshot(), TokenKey(token(standard, [0; 20])).type_byte());
        let mut len = list::len::<TokensByType>(snapshot, &of)?;
        // Those of blocks that are not shown yet.
        while len > 0 && self.token_at(standard, len - 1)?.is_some_and(|(_, height)| height > self.head()) {
            len -= 1;
        }
        Ok(len)
    }

    /// The token of a standard with this number, and the block where it was first seen.
    fn token_at(&self, standard: Standard, place: u64) -> Result<Option<(TokenKey, u64)>, Error> {
        let (snapshot, of) = (self.view.snapshot(), TokenKey(token(standard, [0; 20])).type_byte());
        let Some(number) = list::get::<TokensByType>(snapshot, &of, place)? else { return Ok(None) };
        let Some(key) = tokens::numbered(snapshot, &[number])?.into_iter().next() else { return Ok(None) };
        let seen = table::read::<Tokens>(snapshot, &key)?;
        Ok(seen.map(|Message(seen)| (key, seen.height)))
    }

    /// `ots2_getERC20List` and its like: `count` of these contracts from the place `start` on, with the block where each was first
    /// seen, and what is known of its name, symbol and decimals.
    pub fn token_contract_list(&self, standard: Standard, start: u64, count: u64) -> Result<Vec<u8>, Error> {
        let end = start.saturating_add(count).min(self.token_contracts(standard)?);
        let mut found = Vec::new();
        for place in start..end {
            let Some((
                TokenKey(Token::Erc20(contract) | Token::Erc721(contract) | Token::Erc1155(contract)),
                height,
            )) = self.token_at(standard, place)?
            else {
                continue;
            };
            let texts = self.token_texts(standard, contract)?;
            let row = json!({ "name": texts.name, "symbol": texts.symbol, "decimals": texts.known_decimals().unwrap_or_default() });
            found.push((height, contract, row));
        }
        self.contract_rows(found)
    }

    /// The contracts that transactions created, in their order, each with its transaction.
    fn created(&self) -> Result<Vec<(u64, [u8; 20])>, Error> {
        let contracts = self.contracts(0, MAX_CONTRACTS + 1)?;
        if contracts.len() as u64 > MAX_CONTRACTS {
            return Err(Error::TooLarge);
        }
        let mut all = Vec::with_capacity(contracts.len());
        for contract in contracts {
            let owner = AccountKey(chain::Account::from(contract));
            let first = list::get::<ContractTxs>(self.view.snapshot(), &owner, 0)?;
            all.extend(first.map(|seq| (seq, contract)));
        }
        all.sort_unstable();
        Ok(all)
    }

    /// The number of contracts that transactions created. Needs the optional index `contracts`.
    pub fn created_contracts(&self) -> Result<u64, Error> {
        Ok(self.created()?.len() as u64)
    }

    /// `ots2_getAllContractsList`: `count` of these contracts from the place `start` on.
    pub fn created_contract_list(&self, start: u64, count: u64) -> Result<Vec<u8>, Error> {
        let mut found = Vec::new();
        for (seq, contract) in page(self.created()?, start, count) {
            found.push((self.height_and_hash(seq)?.0, contract, json!({})));
        }
        self.contract_rows(found)
    }

    fn contract_rows(&self, found: Vec<(u64, [u8; 20], Value)>) -> Result<Vec<u8>, Error> {
        let heights = found.iter().map(|(height, ..)| *height);
        let blocks = self.block_summary(heights)?;
        let row = |(height, contract, mut row): (u64, [u8; 20], Value)| {
            row["blockNumber"] = height.into();
            row["address"] = format!("0x{}", hex::encode(contract)).into();
            row
        };
        let results: Vec<_> = found.into_iter().map(row).collect();
        Ok(text(&json!({ "blocksSummary": blocks, "results": results })))
    }

    /// The times of blocks, by their heights.
    fn block_summary(&self, heights: impl Iterator<Item = u64>) -> Result<Map<String, Value>, Error> {
        let mut blocks = BTreeMap::new();
        for height in heights {
            blocks.insert(height, self.timestamp(height)?.unwrap_or_default());
        }
        let row = |(height, time): (u64, u64)| {
            (height.to_string(), json!({ "blockNumber": height, "timestamp": time }))
        };
        Ok(blocks.into_iter().map(row).collect())
    }

    /// The hashes of the transactions that moved tokens of a standard from or to `account`, each once, with their heights. Needs the
    /// optional index `logs`.
    fn transferring(&self, standard: Standard, account: [u8; 20]) -> Result<Vec<(u64, [u8; 32])>, Error> {
        let of = TransfersOf { standard, account: Some(account), contract: None };
        let window = Window { heights: 0..=u64::MAX, skip: 0, take: u64::MAX, newest_first: false };
        let mut found = Vec::new();
        self.transfers_of(&of, &window, &mut |row| {
            let hash = row.tx.receipt.hash().map_err(web::http_error::HttpError::internal)?;
            if found.last().is_none_or(|(_, last)| *last != hash) {
                found.push((row.tx.height, hash));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The number of transactions that moved tokens of a standard from or to `account`.
    pub fn transferring_txs(&self, standard: Standard, account: [u8; 20]) -> Result<u64, Error> {
        Ok(self.transferring(standard, account)?.len() as u64)
    }

    /// `ots2_getERC20TransferList` and its like: `count` of these transactions from the place `start` on, with their receipts.
    pub fn transferring_list(
        &self,
        standard: Standard,
        account: [u8; 20],
        start: u64,
        count: u64,
    ) -> Result<Vec<u8>, Error> {
        let some: Vec<_> = page(self.transferring(standard, account)?, start, count).collect();
        let mut results = Vec::with_capacity(some.len());
        for (_, hash) in &some {
            let json =
                |found: Option<Vec<u8>>| found.and_then(|json| serde_json::from_slice::<Value>(&json).ok());
            let (tx, receipt) = (json(self.tx(hash)?), json(self.receipt(hash)?));
            results.push(
                json!({ "hash": format!("0x{}", hex::encode(hash)), "transaction": tx, "receipt": receipt }),
            );
        }
        let blocks = self.block_summary(some.iter().map(|(height, _)| *height))?;
        Ok(text(&json!({ "blocksSummary": blocks, "results": results })))
    }

    /// `ots2_getERC20Holdings`: the contracts of the tokens that `account` holds. Needs the rich list.
    pub fn holdings(&self, account: [u8; 20]) -> Result<Vec<u8>, Error> {
        let held = self.tokens_of(account, 0, u64::MAX)?;
        let row = |token: HeldToken| json!({ "address": format!("0x{}", hex::encode(token.contract)) });
        Ok(text(&held.into_iter().map(row).collect()))
    }

    /// `ots2_getAddressAttributes`: the standards of the tokens of a contract. Needs the optional index `tokens`.
    pub fn address_attributes(&self, contract: [u8; 20]) -> Result<Vec<u8>, Error> {
        self.require(&TOKENS, self.first(), self.head())?;
        let mut attributes = Map::new();
        let names =
            [(Standard::Erc20, "erc20"), (Standard::Erc721, "erc721"), (Standard::Erc1155, "erc1155")];
        for (standard, name) in names {
            if table::read::<Tokens>(self.view.snapshot(), &TokenKey(token(standard, contract)))?.is_some() {
                attributes.insert(name.to_owned(), true.into());
            }
        }
        Ok(text(&attributes.into()))
    }
}

/// `count` items from the place `start` on.
fn page<T>(items: Vec<T>, start: u64, count: u64) -> impl Iterator<Item = T> {
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    items.into_iter().skip(place(start)).take(place(count))
}
