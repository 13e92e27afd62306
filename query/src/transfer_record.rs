//! The records of movements, from their rows, their blocks and their transactions.

use std::collections::{BTreeMap, BTreeSet};

use chain::movement::{Cause, Token, denom_of_contract};
use chain::record::hash_and_code;
use chain::{Account, Timestamp};
use schema::balances;
use schema::block::Blocks;
use schema::ledger::{self, Movements};
use schema::meta::Identity;
use schema::movement::{MovementRow, Place, PlacedMovement};
use schema::nft::Outcome;
use schema::payload::Codec;
use schema::records;
use schema::tokens::{self, TokenReply};
use schema::tx::Txs;
use store::{Message, Snapshot, Table as _};
use web::http_error::HttpError;
use web::limits::lane;

use crate::names::address;
use crate::page_writer::{More, PageWriter};
use crate::record::missing;
use crate::v1::{MovedToken, Transfer, TransferReference};

/// Records that are made at once: what is in memory does not grow with the page.
const AT_ONCE: usize = 128;

/// What the records of movements are made with, besides their rows.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    identity: &'a Identity,
    codec: &'a Codec,
    snapshot: &'a dyn Snapshot,
}

impl<'a> Records<'a> {
    /// The records of a snapshot.
    pub(crate) fn new(identity: &'a Identity, codec: &'a Codec, snapshot: &'a dyn Snapshot) -> Self {
        Self { identity, codec, snapshot }
    }

    /// Passes the movements `numbers` on, with their records, until `take` has enough.
    pub(crate) fn each(
        self,
        numbers: &[u64],
        mut take: impl FnMut(u64, &PlacedMovement, &Transfer) -> More,
    ) -> Result<(), HttpError> {
        let mut tokens = BTreeMap::new();
        for numbers in numbers.chunks(AT_ONCE) {
            let placed = ledger::movements(self.snapshot, numbers).map_err(HttpError::internal)?;
            let sources = self.sources(&placed)?;
            for (number, placed) in numbers.iter().zip(&placed) {
                let record = self.transfer(&sources, &mut tokens, (*number, placed))?;
                if take(*number, placed, &record)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Appends the records of the movements `numbers`, as many as the page takes.
    pub(crate) fn write(self, page: &mut PageWriter, numbers: &[u64]) -> Result<(), HttpError> {
        self.each(numbers, |_, _, record| {
            page.record(&serde_json::to_vec(record).map_err(HttpError::internal)?)
        })
    }
}

/// What the movements of a page are part of.
struct Sources {
    /// Time and first transaction of each block.
    blocks: BTreeMap<u64, (i64, u64)>,
    /// Hash and success of each transaction, by its sequence.
    txs: BTreeMap<u64, (String, bool)>,
}

impl Records<'_> {
    /// A token as the records name it.
    pub(crate) fn token(self, token: &Token) -> Result<MovedToken, HttpError> {
        let reply = tokens::reply(self.snapshot, token).map_err(HttpError::internal)?;
        moved_token(self.identity, self.snapshot, token, reply.as_ref())
    }

    /// The movements of the row that begins with `first`, if there is one.
    pub(crate) fn row(self, first: u64) -> Result<Option<MovementRow>, HttpError> {
        store::table::read::<Movements>(self.snapshot, &first).map_err(HttpError::internal)
    }

    fn sources(self, placed: &[PlacedMovement]) -> Result<Sources, HttpError> {
        let heights: Vec<u64> =
            placed.iter().map(|placed| placed.height).collect::<BTreeSet<_>>().into_iter().collect();
        let rows = store::table::read_many::<Blocks>(self.snapshot, &heights).map_err(HttpError::internal)?;
        let mut blocks = BTreeMap::new();
        for (height, row) in heights.into_iter().zip(rows) {
            let Message(block) = row.ok_or_else(|| missing(Blocks::SPEC, height))?;
            blocks.insert(height, (block.time, block.first_tx));
        }
        let seqs: BTreeSet<u64> = placed.iter().filter_map(|placed| seq(&blocks, placed)).collect();
        let seqs: Vec<u64> = seqs.into_iter().collect();
        let (mut heads, mut refused) = (Vec::with_capacity(seqs.len()), None);
        records::each::<Txs>(self.snapshot, self.codec, &seqs, |record| {
            if refused.is_none() {
                refused = lane::spend(record.len() as u64).err();
                heads.push(hash_and_code(record).map(|(hash, code)| (hash.to_owned(), code == 0)));
            }
        })
        .map_err(HttpError::internal)?;
        refused.map_or(Ok(()), Err)?;
        let mut txs = BTreeMap::new();
        for (seq, head) in seqs.into_iter().zip(heads) {
            let damaged = || {
                HttpError::internal(format!(
                    "table `{}`: the record {seq} begins with no hash and code",
                    Txs::SPEC.name
                ))
            };
            txs.insert(seq, head.ok_or_else(damaged)?);
        }
        Ok(Sources { blocks, txs })
    }

    fn transfer(
        self,
        sources: &Sources,
        tokens: &mut BTreeMap<Token, MovedToken>,
        (number, placed): (u64, &PlacedMovement),
    ) -> Result<Transfer, HttpError> {
        let PlacedMovement { height, place, index, movement } = placed;
        let token = if let Some(token) = tokens.get(&movement.token) {
            token.clone()
        } else {
            let token = self.token(&movement.token)?;
            tokens.insert(movement.token.clone(), token.clone());
            token
        };
        let time = sources.blocks.get(height).map_or(0, |(time, _)| *time);
        let tx = seq(&sources.blocks, placed).and_then(|seq| sources.txs.get(&seq));
        let account =
            |account: &Option<Account>| account.map_or_else(String::new, |it| address(self.identity, &it));
        Ok(Transfer {
            sequence: number,
            height: *height,
            timestamp: Timestamp::from_unix_nanos(time).nanos(),
            txhash: tx.map_or_else(String::new, |(hash, _)| hash.clone()),
            tx_index: match place {
                Place::Tx(tx) => u32::try_from(*tx).ok(),
                Place::Begin | Place::End => None,
            },
            msg_index: movement.message,
            // A block has far fewer.
            index: u32::try_from(*index).unwrap_or(u32::MAX),
            kind: movement.kind.name().to_owned(),
            token: Some(token),
            token_id: movement.token_id.clone().unwrap_or_default(),
            from: account(&movement.from),
            to: account(&movement.to),
            amount: movement.amount.to_string(),
            success: tx.is_none_or(|(_, success)| *success),
            r#ref: movement.cause.as_ref().map(reference),
        })
    }
}

/// The transaction of a movement, by its sequence.
fn seq(blocks: &BTreeMap<u64, (i64, u64)>, placed: &PlacedMovement) -> Option<u64> {
    match placed.place {
        Place::Tx(tx) => Some(blocks.get(&placed.height)?.1 + tx),
        Place::Begin | Place::End => None,
    }
}

/// The record of a token, with what the node has said of it.
pub(crate) fn moved_token(
    identity: &Identity,
    snapshot: &dyn Snapshot,
    token: &Token,
    reply: Option<&TokenReply>,
) -> Result<MovedToken, HttpError> {
    let mut stored = ledger::denom_of(snapshot, token).map_err(HttpError::internal)?;
    if stored.is_none() {
        stored = reply.map(|reply| reply.denom.clone()).filter(|denom| !denom.is_empty());
    }
    if stored.is_none() {
        stored = balances::denom_of(snapshot, token).map_err(HttpError::internal)?;
    }
    let (kind, denom, address) = match token {
        Token::Erc20(contract) => (
            "erc20",
            stored.unwrap_or_else(|| denom_of_contract(contract)),
            Account::from(*contract).to_hex(),
        ),
        Token::Asset(object) => {
            let hex = Account::from(*object).to_hex();
            ("fa", stored.unwrap_or_else(|| format!("move/{}", &hex[2..])), hex)
        }
        Token::Denom(denom) => ("bank", denom.clone(), String::new()),
        Token::Cw20(contract) => ("cw20", String::new(), address(identity, &(*contract).into())),
        Token::Erc721(contract) => ("erc721", String::new(), Account::from(*contract).to_hex()),
        Token::Collection(object) => ("collection", String::new(), Account::from(*object).to_hex()),
        Token::Cw721(contract) => ("cw721", String::new(), address(identity, &(*contract).into())),
        Token::Erc1155(contract) => ("erc1155", String::new(), Account::from(*contract).to_hex()),
    };
    let is_erc721 = reply.is_some_and(|reply| reply.is_erc721);
    let is_named = reply.is_some_and(|reply| reply.name_outcome() == Outcome::Known);
    let (symbol, decimals) =
        reply.map_or((None, None), |reply| (reply.known_symbol(), reply.known_decimals()));
    let verified = match token {
        Token::Denom(_) | Token::Asset(_) | Token::Collection(_) => true,
        Token::Erc20(_) => decimals.is_some() && !is_erc721,
        Token::Cw20(_) => decimals.is_some(),
        Token::Cw721(_) => is_named,
        Token::Erc721(_) => is_erc721,
        Token::Erc1155(_) => false,
    };
    let complete = match token {
        Token::Cw20(_) => Some(ledger::whole_from(snapshot, token).map_err(HttpError::internal)?.is_some()),
        _ => None,
    };
    Ok(MovedToken { r#type: kind.to_owned(), denom, address, symbol, decimals, verified, complete })
}

/// Whether a function computes the balances of `token` that the bank shows; `None` if that is not known.
pub(crate) fn is_derived(token: &Token, reply: Option<&TokenReply>) -> Option<bool> {
    let is_asset = matches!(token, Token::Asset(_));
    if is_asset { reply.map(|reply| reply.is_derived) } else { Some(false) }
}

fn reference(cause: &Cause) -> TransferReference {
    let id = |bridge: &Option<u64>| bridge.map_or_else(String::new, |bridge| bridge.to_string());
    match cause {
        Cause::Packet { port, channel, sequence } => TransferReference {
            r#type: "packet".to_owned(),
            port: port.clone(),
            channel: channel.clone(),
            bridge_id: String::new(),
            sequence: *sequence,
        },
        Cause::Deposit { bridge, sequence } => TransferReference {
            r#type: "deposit".to_owned(),
            bridge_id: id(bridge),
            sequence: *sequence,
            ..TransferReference::default()
        },
        Cause::Withdrawal { bridge, sequence } => TransferReference {
            r#type: "withdrawal".to_owned(),
            bridge_id: id(bridge),
            sequence: *sequence,
            ..TransferReference::default()
        },
    }
}
