//! The optional index `tokens`: each token that has moved or has a name, and what the node says of it.
//!
//! A token and its first block follow from records. Its metadata is asked of a node after the block is committed, so it is of a later
//! state, of another one each time it is asked: it is not part of the digest, and nothing compares it.

use std::collections::BTreeSet;

use chain::metadata::{Metadata, Said};
use chain::movement::Token;
use store::key::Text;
use store::{Bounds, Key, List as _, Message, Order, Snapshot, Table as _, Txn};

use crate::Error;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::ledger;
use crate::movement::TokenKey;
use crate::nft::Outcome;

/// The index.
pub const TOKENS: Index = Index {
    name: "tokens",
    version: 1,
    tables: &[
        Tokens::SPEC,
        TokenNumbers::SPEC,
        TokensByType::SPEC,
        TokenQuestions::SPEC,
        TokenReplies::SPEC,
        TokenSearch::SPEC,
    ],
    replies: &[TokenQuestions::SPEC, TokenReplies::SPEC, TokenSearch::SPEC],
    input: Input::Records,
    needs_evm: false,
    rows,
};

store::tables! {
    /// Tokens that have moved, or that events have named.
    ///
    /// | token | → [`FirstSeen`] (protobuf)
    pub table Tokens("known_token", 0x76, Point): TokenKey => Message<FirstSeen>;

    /// Tokens by their number.
    ///
    /// | number (8, BE) | → token
    pub table TokenNumbers("token_by_number", 0x77, Scan): u64 => Vec<u8>;

    /// Tokens of a type, in the order of their numbers.
    ///
    /// | type: that of a token (1) | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list TokensByType("token_by_type", 0x68): u8;

    /// Tokens whose metadata the node has not given yet.
    ///
    /// | number (8, BE) | → nothing
    pub table TokenQuestions("token_question", 0x67, Scan): u64 => ();

    /// The node's replies about tokens.
    ///
    /// | token | → [`TokenReply`] (protobuf)
    pub table TokenReplies("token_reply", 0x7e, Point): TokenKey => Message<TokenReply>;

    /// Tokens by the beginning of their denoms and symbols: the first 64 characters in lower case.
    ///
    /// | 0 denom, 1 symbol (1) | text (escaped text) | number (8, BE) | → nothing
    pub table TokenSearch("token_search", 0x7f, Scan): (u8, Text, u64) => ();
}

/// Where a token was first seen.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct FirstSeen {
    /// Its number among the tokens, from 1 in the order in which they were seen.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The block.
    #[prost(uint64, tag = "2")]
    pub height: u64,
}

/// The node's reply about a token. There is no row before.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct TokenReply {
    /// Its name; empty unless it is known.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What is known of the name.
    #[prost(enumeration = "Outcome", tag = "2")]
    pub name_outcome: i32,
    /// Its symbol; empty unless it is known.
    #[prost(string, tag = "3")]
    pub symbol: String,
    /// What is known of the symbol.
    #[prost(enumeration = "Outcome", tag = "4")]
    pub symbol_outcome: i32,
    /// Decimal places of its amounts; 0 unless they are known.
    #[prost(uint32, tag = "5")]
    pub decimals: u32,
    /// What is known of the decimals.
    #[prost(enumeration = "Outcome", tag = "6")]
    pub decimals_outcome: i32,
    /// Its denom in the chain's bank, if it is a contract or an asset and has one.
    #[prost(string, tag = "7")]
    pub denom: String,
    /// The contract declares that it is an ERC-721.
    #[prost(bool, tag = "8")]
    pub is_erc721: bool,
    /// The last block of the state that was asked.
    #[prost(uint64, tag = "9")]
    pub height: u64,
    /// A function of its module computes the balances that the bank shows.
    #[prost(bool, tag = "10")]
    pub is_derived: bool,
}

impl TokenReply {
    fn new(metadata: &Metadata, height: u64) -> Self {
        let (name, symbol) = (&metadata.name, &metadata.symbol);
        let decimals = value(&metadata.decimals).copied().unwrap_or_default();
        Self {
            name: value(name).cloned().unwrap_or_default(),
            name_outcome: outcome(name),
            symbol: value(symbol).cloned().unwrap_or_default(),
            symbol_outcome: outcome(symbol),
            decimals: u32::try_from(decimals).unwrap_or(u32::MAX),
            decimals_outcome: outcome(&metadata.decimals),
            denom: metadata.denom.clone().unwrap_or_default(),
            is_erc721: metadata.is_erc721,
            height,
            is_derived: metadata.is_derived,
        }
    }

    /// Its symbol, if it is known.
    pub fn known_symbol(&self) -> Option<String> {
        (self.symbol_outcome() == Outcome::Known).then(|| self.symbol.clone())
    }

    /// Decimal places of its amounts, if they are known.
    pub fn known_decimals(&self) -> Option<u32> {
        (self.decimals_outcome() == Outcome::Known).then_some(self.decimals)
    }
}

fn value<T>(said: &Said<T>) -> Option<&T> {
    if let Said::Value(value) = said { Some(value) } else { None }
}

fn outcome<T>(said: &Said<T>) -> i32 {
    i32::from(match said {
        Said::Value(_) => Outcome::Known,
        Said::Nothing => Outcome::Refused,
        Said::TooLong => Outcome::TooLong,
    })
}

/// What of a token is searched by; one byte of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facet {
    /// Its denom.
    Denom = 0,
    /// Its symbol.
    Symbol = 1,
}

/// Characters that are searched: a longer beginning tells no tokens apart.
pub const SEARCHED: usize = 64;

fn folded(text: &str) -> Text {
    Text(text.chars().take(SEARCHED).flat_map(char::to_lowercase).collect())
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let (chain, height, mut seen) = (rows.chain(), block.height, BTreeSet::new());
    ledger::find(block, chain, &mut |_, found| {
        let moved = found.movements.into_iter().map(|movement| movement.token);
        let nfts = found.nfts.iter().filter_map(|(_, event)| ledger::named_by(event));
        for token in moved.chain(found.denoms.into_iter().map(|(token, _)| token)).chain(nfts) {
            if !seen.insert(token.clone()) {
                continue;
            }
            let key = TokenKey(token);
            let first = |number| Message(FirstSeen { number, height });
            let Some(number) = rows.number_first::<Tokens>(&key, first)? else { continue };
            rows.put::<TokenNumbers>(&number, &key.to_bytes());
            rows.put::<TokenQuestions>(&number, &());
            rows.push::<TokensByType>(&key.type_byte(), number)?;
            if let Token::Denom(denom) = &key.0 {
                rows.put::<TokenSearch>(&(Facet::Denom as u8, folded(denom), number), &());
            }
        }
        Ok(())
    })
}

/// A token that the node was asked about, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its number.
    pub number: u64,
    /// The token.
    pub token: Token,
    /// What was said.
    pub metadata: Metadata,
    /// The last block of the state that was asked.
    pub height: u64,
}

/// The stored reply with what the node says of the token now in its place; `None` if that is nothing else, or there is no reply yet.
pub fn renewed(snapshot: &dyn Snapshot, described: &Described) -> Result<Option<TokenReply>, Error> {
    let Some(stored) = reply(snapshot, &described.token)? else { return Ok(None) };
    let new = TokenReply::new(&described.metadata, stored.height);
    let mut renewed = stored.clone();
    let is_known = |outcome| outcome == i32::from(Outcome::Known);
    if is_known(new.name_outcome) {
        (renewed.name, renewed.name_outcome) = (new.name, new.name_outcome);
    }
    if is_known(new.symbol_outcome) {
        (renewed.symbol, renewed.symbol_outcome) = (new.symbol, new.symbol_outcome);
    }
    if is_known(new.decimals_outcome) {
        (renewed.decimals, renewed.decimals_outcome) = (new.decimals, new.decimals_outcome);
    }
    if !new.denom.is_empty() {
        renewed.denom = new.denom;
    }
    let is_other = renewed != stored;
    renewed.height = described.height;
    Ok(Some(renewed).filter(|_| is_other))
}

/// Writes the node's reply about a token: the first one, or what it says now. False if the token was removed since, or nothing is new.
pub fn describe(txn: &mut Txn<'_>, described: &Described) -> Result<bool, Error> {
    let (number, key) = (described.number, TokenKey(described.token.clone()));
    if txn.get::<TokenNumbers>(&number)? != Some(key.to_bytes()) {
        return Ok(false);
    }
    let reply = if txn.get::<TokenQuestions>(&number)?.is_some() {
        txn.delete::<TokenQuestions>(&number);
        TokenReply::new(&described.metadata, described.height)
    } else {
        let Some(renewed) = renewed(txn, described)? else { return Ok(false) };
        let before = reply(txn, &key.0)?.unwrap_or_default();
        for (facet, text) in [(Facet::Denom, &before.denom), (Facet::Symbol, &before.symbol)] {
            if !text.is_empty() {
                txn.delete::<TokenSearch>(&(facet as u8, folded(text), number));
            }
        }
        renewed
    };
    for (facet, text) in [(Facet::Denom, &reply.denom), (Facet::Symbol, &reply.symbol)] {
        if !text.is_empty() {
            txn.put::<TokenSearch>(&(facet as u8, folded(text), number), &());
        }
    }
    txn.put::<TokenReplies>(&key, &Message(reply));
    Ok(true)
}

/// The first open questions after the token `after`: numbers, tokens, and where each was first seen.
pub fn open_questions(snapshot: &dyn Snapshot, after: u64, limit: usize) -> Result<Vec<SeenToken>, Error> {
    let all = &store::key::All;
    let rows = store::table::rows_after::<TokenQuestions>(snapshot, all, &after, Order::Asc, limit)?;
    let numbers: Vec<u64> = rows.into_iter().map(|(number, ())| number).collect();
    let tokens = numbered(snapshot, &numbers)?;
    let firsts = store::table::read_many::<Tokens>(snapshot, &tokens)?;
    let known = tokens.into_iter().zip(firsts);
    Ok(known.filter_map(|(TokenKey(token), first)| Some((token, first?.0))).collect())
}

/// A token, and where it was first seen.
pub type SeenToken = (Token, FirstSeen);

/// Those of the first `limit` tokens after the token `after` that are described, with the number of the last one; `None` behind all.
pub fn described(
    snapshot: &dyn Snapshot,
    after: u64,
    limit: usize,
) -> Result<(Vec<SeenToken>, Option<u64>), Error> {
    let all = &store::key::All;
    let rows = store::table::rows_after::<TokenNumbers>(snapshot, all, &after, Order::Asc, limit)?;
    let numbers: Vec<u64> = rows.into_iter().map(|(number, _)| number).collect();
    let tokens = numbered(snapshot, &numbers)?;
    let firsts = store::table::read_many::<Tokens>(snapshot, &tokens)?;
    let replies = store::table::read_many::<TokenReplies>(snapshot, &tokens)?;
    let known = tokens.into_iter().zip(firsts).zip(replies);
    let some = known.filter_map(|((TokenKey(token), first), reply)| reply.and(Some((token, first?.0))));
    Ok((some.collect(), numbers.last().copied()))
}

/// The tokens with these numbers, in their order.
pub fn numbered(snapshot: &dyn Snapshot, numbers: &[u64]) -> Result<Vec<TokenKey>, Error> {
    let rows = store::table::read_many::<TokenNumbers>(snapshot, numbers)?;
    let token = |(number, row): (&u64, Option<Vec<u8>>)| {
        let token = row.as_deref().and_then(TokenKey::from_bytes);
        token.ok_or_else(|| {
            store::table::corrupt(TokenNumbers::SPEC, &number.to_bytes(), "the row is not a token").into()
        })
    };
    numbers.iter().zip(rows).map(token).collect()
}

/// Numbers of tokens whose denom or symbol begins with `text` in any case, ascending, each once; `None` if there are more than
/// `limit` rows of either.
pub fn search(snapshot: &dyn Snapshot, text: &str, limit: usize) -> Result<Option<Vec<u64>>, Error> {
    let mut found = Vec::new();
    for facet in [Facet::Denom, Facet::Symbol] {
        let mut start = (facet as u8, folded(text)).to_bytes();
        // Without the end of the text, which has two bytes.
        start.truncate(start.len().saturating_sub(2));
        let end = store::prefix_end(&start);
        let bounds = Bounds { start: &start, end: end.as_deref() };
        let rows = snapshot.scan(TokenSearch::SPEC, bounds, Order::Asc, limit + 1)?;
        if rows.len() > limit {
            return Ok(None);
        }
        for (key, value) in rows {
            let ((_, _, number), ()) = store::table::decode_row::<TokenSearch>(&key, &value)?;
            found.push(number);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Some(found))
}

/// The token whose denom, as the node tells it, is exactly `denom`.
pub fn of_denom(snapshot: &dyn Snapshot, denom: &str) -> Result<Option<Token>, Error> {
    let prefix = (Facet::Denom as u8, folded(denom));
    for ((_, _, number), ()) in store::table::rows::<TokenSearch>(snapshot, &prefix, Order::Asc, ALIKE)? {
        for key in numbered(snapshot, &[number])? {
            let reply = reply(snapshot, &key.0)?;
            if reply.is_some_and(|reply| reply.denom == denom) {
                return Ok(Some(key.0));
            }
        }
    }
    Ok(None)
}

/// Denoms that are equal but for the case of their letters, or after the letters that are searched.
const ALIKE: usize = 256;

/// The node's reply about `token`; `None` if it has not answered yet, or the index is not stored.
pub fn reply(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<TokenReply>, Error> {
    let row = store::table::read::<TokenReplies>(snapshot, &TokenKey(token.clone()))?;
    Ok(row.map(|Message(reply)| reply))
}
