//! The records of tokens, with the node's replies about them.

use chain::movement::Token;
use schema::movement::TokenKey;
use schema::nft::Outcome;
use schema::tokens::{self, FirstSeen, TokenReply, Tokens};
use store::{Message, Snapshot, Table as _};
use web::http_error::HttpError;
use web::limits::lane;

use crate::indexer::Indexer;
use crate::page_writer::PageWriter;
use crate::record::missing;
use crate::transfer_record::moved_token;
use crate::v1::LedgerToken;

/// Tokens whose rows are read at once.
const AT_ONCE: usize = 128;

/// Bytes of work for a token: its rows.
const WORK: u64 = 512;

/// The record of a token.
pub(crate) fn token(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    token: &Token,
    first: FirstSeen,
) -> Result<LedgerToken, HttpError> {
    let reply = tokens::reply(snapshot, token).map_err(HttpError::internal)?;
    let (moved, reply) = (moved_token(&indexer.identity, snapshot, token)?, reply.as_ref());
    let state = |outcome: fn(&TokenReply) -> Outcome| {
        let state = match reply.map_or(Outcome::Open, outcome) {
            Outcome::Known => "known",
            Outcome::Open => "open",
            Outcome::Refused => "none",
            Outcome::TooLong => "too_long",
        };
        state.to_owned()
    };
    let name_state = state(TokenReply::name_outcome);
    let name = reply.filter(|_| name_state == "known").map(|reply| reply.name.clone());
    let is_nft = matches!(token, Token::Erc20(_)) && reply.is_some_and(|reply| reply.is_erc721);
    Ok(LedgerToken {
        kind: if is_nft { "erc721".to_owned() } else { moved.r#type.clone() },
        r#type: moved.r#type,
        denom: moved.denom,
        address: moved.address,
        name,
        symbol: moved.symbol,
        decimals: moved.decimals,
        verified: moved.verified,
        first_height: first.height,
        name_state,
        symbol_state: state(TokenReply::symbol_outcome),
        decimals_state: state(TokenReply::decimals_outcome),
    })
}

/// Appends the records of the tokens `numbers`, as many as the page takes.
pub(crate) fn tokens(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    page: &mut PageWriter,
    numbers: &[u64],
) -> Result<(), HttpError> {
    for numbers in numbers.chunks(AT_ONCE) {
        lane::spend(numbers.len() as u64 * WORK)?;
        let keys: Vec<TokenKey> = tokens::numbered(snapshot, numbers).map_err(HttpError::internal)?;
        let firsts = store::table::read_many::<Tokens>(snapshot, &keys).map_err(HttpError::internal)?;
        for ((number, key), first) in numbers.iter().zip(&keys).zip(firsts) {
            let Message(first) = first.ok_or_else(|| missing(Tokens::SPEC, *number))?;
            let record = token(indexer, snapshot, &key.0, first)?;
            if page.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}
