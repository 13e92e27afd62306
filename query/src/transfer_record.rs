//! The records of movements, from their rows, their blocks and their transactions.

use std::collections::{BTreeMap, BTreeSet};

use chain::movement::{Cause, Token};
use chain::{Account, Timestamp};
use schema::balances;
use schema::block::Blocks;
use schema::ledger::{self, Movements};
use schema::movement::{MovementRow, Place, PlacedMovement};
use schema::records;
use schema::tx::Txs;
use serde::Deserialize;
use store::{Message, Snapshot, Table as _};
use web::http_error::HttpError;
use web::limits::lane;

use crate::indexer::Indexer;
use crate::page_writer::PageWriter;
use crate::record::missing;
use crate::v1::{MovedToken, Transfer, TransferReference};

/// Records that are made at once: what is in memory does not grow with the page.
const AT_ONCE: usize = 128;

/// Appends the records of the movements `numbers`, as many as the page takes.
pub(crate) fn transfers(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    page: &mut PageWriter,
    numbers: &[u64],
) -> Result<(), HttpError> {
    let mut tokens = BTreeMap::new();
    for numbers in numbers.chunks(AT_ONCE) {
        let placed = movements(snapshot, numbers)?;
        let sources = Sources::read(indexer, snapshot, &placed)?;
        for (number, placed) in numbers.iter().zip(&placed) {
            let record = transfer(indexer, snapshot, &sources, &mut tokens, (*number, placed))?;
            if page.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The movements with these numbers, in their order.
pub(crate) fn movements(snapshot: &dyn Snapshot, numbers: &[u64]) -> Result<Vec<PlacedMovement>, HttpError> {
    let firsts: Vec<u64> =
        numbers.iter().map(|number| ledger::row_of(*number)).collect::<BTreeSet<_>>().into_iter().collect();
    let read = store::table::read_many::<Movements>(snapshot, &firsts).map_err(HttpError::internal)?;
    let rows: BTreeMap<u64, Option<MovementRow>> = firsts.into_iter().zip(read).collect();
    let of = |number: &u64| {
        let first = ledger::row_of(*number);
        let row = rows.get(&first).and_then(Option::as_ref);
        let at = usize::try_from(number - first).unwrap_or(usize::MAX);
        row.and_then(|row| row.0.get(at)).cloned().ok_or_else(|| missing(Movements::SPEC, *number))
    };
    numbers.iter().map(of).collect()
}

/// What the movements of a page are part of.
struct Sources {
    /// Time and first transaction of each block.
    blocks: BTreeMap<u64, (i64, u64)>,
    /// Hash and success of each transaction, by its sequence.
    txs: BTreeMap<u64, (String, bool)>,
}

impl Sources {
    fn read(
        indexer: &Indexer,
        snapshot: &dyn Snapshot,
        placed: &[PlacedMovement],
    ) -> Result<Self, HttpError> {
        /// The members of a record that are needed here.
        #[derive(Deserialize)]
        struct Head {
            txhash: String,
            code: u32,
        }
        let heights: Vec<u64> =
            placed.iter().map(|placed| placed.height).collect::<BTreeSet<_>>().into_iter().collect();
        let rows = store::table::read_many::<Blocks>(snapshot, &heights).map_err(HttpError::internal)?;
        let mut blocks = BTreeMap::new();
        for (height, row) in heights.into_iter().zip(rows) {
            let Message(block) = row.ok_or_else(|| missing(Blocks::SPEC, height))?;
            blocks.insert(height, (block.time, block.first_tx));
        }
        let seqs: BTreeSet<u64> = placed.iter().filter_map(|placed| seq(&blocks, placed)).collect();
        let seqs: Vec<u64> = seqs.into_iter().collect();
        let (mut heads, mut refused) = (Vec::with_capacity(seqs.len()), None);
        records::each::<Txs>(snapshot, &indexer.codec, &seqs, |record| {
            if refused.is_none() {
                refused = lane::spend(record.len() as u64).err();
                heads.push(serde_json::from_slice::<Head>(record));
            }
        })
        .map_err(HttpError::internal)?;
        refused.map_or(Ok(()), Err)?;
        let mut txs = BTreeMap::new();
        for (seq, head) in seqs.into_iter().zip(heads) {
            let Head { txhash, code } = head.map_err(HttpError::internal)?;
            txs.insert(seq, (txhash, code == 0));
        }
        Ok(Self { blocks, txs })
    }
}

/// The transaction of a movement, by its sequence.
fn seq(blocks: &BTreeMap<u64, (i64, u64)>, placed: &PlacedMovement) -> Option<u64> {
    match placed.place {
        Place::Tx(tx) => Some(blocks.get(&placed.height)?.1 + tx),
        Place::Begin | Place::End => None,
    }
}

fn transfer(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    sources: &Sources,
    tokens: &mut BTreeMap<Token, MovedToken>,
    (number, placed): (u64, &PlacedMovement),
) -> Result<Transfer, HttpError> {
    let PlacedMovement { height, place, index, movement } = placed;
    let token = if let Some(token) = tokens.get(&movement.token) {
        token.clone()
    } else {
        let token = moved_token(indexer, snapshot, &movement.token)?;
        tokens.insert(movement.token.clone(), token.clone());
        token
    };
    let time = sources.blocks.get(height).map_or(0, |(time, _)| *time);
    let tx = seq(&sources.blocks, placed).and_then(|seq| sources.txs.get(&seq));
    let account = |account: &Option<Account>| account.map_or_else(String::new, |it| address(indexer, &it));
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
        token_id: movement.token_id.map_or_else(String::new, |id| id.to_string()),
        from: account(&movement.from),
        to: account(&movement.to),
        amount: movement.amount.to_string(),
        success: tx.is_none_or(|(_, success)| *success),
        r#ref: movement.cause.as_ref().map(reference),
    })
}

/// An account as the chain's own explorers write it.
pub(crate) fn address(indexer: &Indexer, account: &Account) -> String {
    if indexer.is_evm() { account.to_hex() } else { account.to_bech32(indexer.prefix()) }
}

/// The record of a token.
pub(crate) fn moved_token(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    token: &Token,
) -> Result<MovedToken, HttpError> {
    let denom = balances::denom_in_bank(snapshot, token).map_err(HttpError::internal)?;
    let (kind, address) = match token {
        Token::Erc20(contract) => ("erc20", Account::from(*contract).to_hex()),
        Token::Asset(object) => ("fa", Account::from(*object).to_hex()),
        Token::Denom(_) => ("bank", String::new()),
        Token::Cw20(contract) => ("cw20", address(indexer, &(*contract).into())),
        Token::Erc721(contract) => ("erc721", Account::from(*contract).to_hex()),
        Token::Erc1155(contract) => ("erc1155", Account::from(*contract).to_hex()),
    };
    Ok(MovedToken { r#type: kind.to_owned(), denom, address })
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
