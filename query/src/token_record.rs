//! The records of tokens: what emits their movements, and what the node said of them.

use chain::Account;
use chain::movement::{Token, denom_of_contract};
use schema::ledger;
use schema::movement::TokenKey;
use schema::nft::Outcome;
use schema::tokens::{self, FirstSeen, TokenReply, Tokens};
use store::{Message, Snapshot, Table as _};
use web::http_error::HttpError;
use web::limits::lane;

use crate::indexer::Indexer;
use crate::page_writer::PageWriter;
use crate::record::missing;
use crate::v1::{LedgerToken, MovedToken};

/// Tokens whose rows are read at once.
const AT_ONCE: usize = 128;

/// Bytes of work for a token: its rows.
const WORK: u64 = 512;

/// An account as the chain's own explorers write it.
pub(crate) fn address(indexer: &Indexer, account: &Account) -> String {
    if indexer.is_evm() { account.to_hex() } else { account.to_bech32(indexer.prefix()) }
}

/// The token of a movement.
pub(crate) fn moved_token(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    token: &Token,
) -> Result<MovedToken, HttpError> {
    let reply = tokens::reply(snapshot, token).map_err(HttpError::internal)?;
    described(indexer, snapshot, token, reply.as_ref())
}

fn described(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    token: &Token,
    reply: Option<&TokenReply>,
) -> Result<MovedToken, HttpError> {
    let stored = ledger::denom_of(snapshot, token).map_err(HttpError::internal)?;
    let stored = stored.or_else(|| reply.map(|reply| reply.denom.clone()).filter(|denom| !denom.is_empty()));
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
        Token::Cw20(contract) => ("cw20", String::new(), address(indexer, &(*contract).into())),
        Token::Erc721(contract) => ("erc721", String::new(), Account::from(*contract).to_hex()),
        Token::Erc1155(contract) => ("erc1155", String::new(), Account::from(*contract).to_hex()),
    };
    let is_known = |outcome: i32| outcome == i32::from(Outcome::Known);
    let symbol = reply.filter(|reply| is_known(reply.symbol_outcome)).map(|reply| reply.symbol.clone());
    let decimals = reply.filter(|reply| is_known(reply.decimals_outcome)).map(|reply| reply.decimals);
    let declares_erc721 = reply.is_some_and(|reply| reply.is_erc721);
    let verified = match token {
        Token::Denom(_) | Token::Asset(_) => true,
        Token::Erc20(_) => decimals.is_some() && !declares_erc721,
        Token::Cw20(_) => decimals.is_some(),
        Token::Erc721(_) => declares_erc721,
        Token::Erc1155(_) => false,
    };
    Ok(MovedToken { r#type: kind.to_owned(), denom, address, symbol, decimals, verified })
}

/// The record of a token.
pub(crate) fn token(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    token: &Token,
    first: FirstSeen,
) -> Result<LedgerToken, HttpError> {
    let reply = tokens::reply(snapshot, token).map_err(HttpError::internal)?;
    let moved = described(indexer, snapshot, token, reply.as_ref())?;
    let reply = reply.as_ref();
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
