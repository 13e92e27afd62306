//! Queries for a URI that a contract refused, repeated at transfers of the token.
//!
//! A contract may not have the URI yet when it mints a token. The pause between two queries doubles with each refusal, so
//! a contract without URIs costs few. A query that is still open notes the transfers at which it would be repeated, so
//! that the log does not depend on when the node answers.

use schema::nft::fold;
use schema::nft::{
    About, Change, Entry, NewUri, NftLog, Outcome, Place, Question, Questions, Token, TokenKey, TokenName,
    renewal,
};
use store::{Message, Txn};

use crate::Error;

/// Repeats the query for the URI of a token at its transfer at `place`, if the contract has refused it so far; `row` is
/// the token before the transfer.
pub(super) fn ask_again(
    txn: &mut Txn<'_>,
    (place, time): (&Place, i64),
    token: &TokenName,
    row: &Token,
) -> Result<(), Error> {
    let mut open = match &row.open {
        Some(open) => txn.get::<Questions>(open)?.map(|Message(question)| (open, question)),
        None => None,
    };
    let (refusals, last) = match &open {
        // As if the reply were a refusal.
        Some((at, question)) => {
            let before = refusals_before(txn, at)?;
            let later = u32::try_from(question.later.len()).unwrap_or(u32::MAX);
            (before.saturating_add(1).saturating_add(later), question.later.last().unwrap_or(at))
        }
        None if row.outcome() == Outcome::Refused => (row.refusals, &row.uri),
        None => return Ok(()),
    };
    let pause = 1_u64 << refusals.saturating_sub(1).min(40);
    if place.height < last.height.saturating_add(pause) || renewal::covers(txn, token, row, last, place)? {
        return Ok(());
    }
    let place = place.of_token(token);
    match open.take() {
        Some((at, mut question)) => {
            question.later.push(place);
            txn.put::<Questions>(at, &Message(question));
            Ok(())
        }
        None => ask(txn, (&place, time), token, refusals, Vec::new()),
    }
}

/// Stores a query for the URI of a token, and the entry that its reply completes.
pub(super) fn ask(
    txn: &mut Txn<'_>,
    (place, time): (&Place, i64),
    token: &TokenName,
    refusals: u32,
    later: Vec<Place>,
) -> Result<(), Error> {
    let new = NewUri { token: token.clone(), uri: String::new(), outcome: Outcome::Open.into(), refusals };
    fold::record(txn, place, Entry { time, tx: 0, change: Some(Change::Uri(new)) })?;
    let TokenName { collection, token_id } = token.clone();
    let about = About::Uri(TokenKey { collection, token_id, object: Vec::new() });
    txn.put::<Questions>(place, &Message(Question { about: Some(about), later, ..Question::default() }));
    Ok(())
}

/// Repeats a query that the contract has refused so many times in turn, at the next transfer that it noted.
pub(super) fn refused(
    txn: &mut Txn<'_>,
    token: &TokenKey,
    refusals: u32,
    mut later: Vec<Place>,
) -> Result<(), Error> {
    if refusals == 0 || later.is_empty() {
        return Ok(());
    }
    let place = later.remove(0);
    let transfer = Place { part: String::new(), ..place.clone() };
    // A rollback has removed the transfer.
    let Some(Message(entry)) = txn.get::<NftLog>(&transfer)? else { return Ok(()) };
    let token = TokenName { collection: token.collection.clone(), token_id: token.token_id.clone() };
    ask(txn, (&place, entry.time), &token, refusals, later)
}

/// How many queries in turn the contract had refused before the one of the entry at `place`.
fn refusals_before(txn: &Txn<'_>, place: &Place) -> Result<u32, Error> {
    Ok(match txn.get::<NftLog>(place)? {
        Some(Message(Entry { change: Some(Change::Uri(new)), .. })) => new.refusals,
        _ => 0,
    })
}
