//! The records of tokens, with the node's replies about them.

use chain::movement::Token;
use schema::known_token::KnownToken;
use schema::nft::Outcome;
use schema::tokens::{self, FirstSeen, TokenReply};
use store::Snapshot;
use web::http_error::HttpError;

use crate::indexer::Indexer;
use crate::transfer_record::{is_derived, moved_token};
use crate::v1::LedgerToken;

/// What of a token depends on the block.
pub(crate) struct AtBlock {
    /// The block.
    pub(crate) height: u64,
    /// Accounts with a balance; `None` if they are not known.
    pub(crate) holders: Option<u64>,
    /// Movements up to the block; `None` if they are not indexed.
    pub(crate) transfers: Option<u64>,
}

/// The record of a token.
pub(crate) fn token(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    (token, first): (&Token, FirstSeen),
    at: &AtBlock,
) -> Result<LedgerToken, HttpError> {
    let reply = tokens::reply(snapshot, token).map_err(HttpError::internal)?;
    let reply = reply.as_ref();
    let moved = moved_token(&indexer.identity, snapshot, token, reply)?;
    let known = KnownToken::of(snapshot, token).map_err(HttpError::internal)?;
    let supply = known.supply(snapshot, token, at.height).map_err(HttpError::internal)?;
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
        supply: supply.amount.map(|amount| amount.to_string()),
        supply_checked_height: supply.checked,
        holders: at.holders,
        transfers: at.transfers,
        complete_from: known.complete_from,
        drifting: known.is_drifting,
        silent: known.is_silent,
        derived: is_derived(token, reply),
    })
}
