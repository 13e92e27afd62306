//! Renewals: queries for the URIs of a range of tokens, after an event of their contract about the range.
//!
//! A renewal belongs to a place in the log, so its tokens are those that exist there, and its answers are from the state
//! of that height, whenever the node gives them. A contract can emit such an event for all tokens in every block;
//! therefore a renewal of n tokens delays the contract's next one by n / `TOKENS_A_BLOCK` blocks.
//!
//! # Invariants
//!
//! * The rows are a function of the chain: whether a renewal is done is in [`Questions`] alone.
//! * A contract has at most one renewal at a later height, with the union of the ranges that wait for it.

use chain::U256;
use store::{Message, Order, Snapshot, Txn};

use super::{About, Place, Question, Questions, RangeCursor, Renewals, Token, TokenName, Tokens};
use crate::Error;
use crate::keys::AccountKey;

/// Tokens of a contract that are queried for each block, in the long run.
const TOKENS_A_BLOCK: u64 = 16;

/// Renewals of a contract that are searched for one that covers a token, the newest first.
const SEARCHED: usize = 64;

/// The tokens of a renewal.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Renewal {
    /// The first and the last id, 32 bytes each; empty for all tokens.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub range: Vec<u8>,
    /// The height from which the contract's next renewal may be.
    #[prost(uint64, tag = "2")]
    pub next: u64,
}

/// A range in its stored form.
pub fn encode_range(first: U256, last: U256) -> Vec<u8> {
    [first.to_be_bytes::<32>(), last.to_be_bytes()].concat()
}

/// A range from its stored form; `None` for all tokens.
pub fn decode_range(range: &[u8]) -> Option<(U256, U256)> {
    let (first, last) = range.split_at_checked(32)?;
    (last.len() == 32).then(|| (U256::from_be_slice(first), U256::from_be_slice(last)))
}

impl Renewal {
    /// Whether the renewal, at `place`, covers the token `id`.
    pub fn covers(&self, place: &Place, id: &str, token: &Token) -> bool {
        let in_range = match decode_range(&self.range) {
            Some((first, last)) => U256::from_str_radix(id, 10).is_ok_and(|id| first <= id && id <= last),
            None => true,
        };
        in_range && token.minted < *place
    }
}

/// Notes that the tokens of `collection` in `range` may have new URIs since the event at `at`.
pub fn request(txn: &mut Txn<'_>, collection: AccountKey, range: Vec<u8>, at: &Place) -> Result<(), Error> {
    let tokens = txn.set_len::<Tokens>(&collection)?;
    let pause = (tokens / TOKENS_A_BLOCK).max(1);
    let newest = store::table::rows::<Renewals>(txn, &collection, Order::Desc, 1)?.pop();
    let (key, row) = match newest {
        Some((key @ (_, height, _), Message(row))) if height > at.height => {
            (key, Renewal { range: union(&row.range, range), ..row })
        }
        Some((_, Message(row))) if row.next > at.height => {
            let height = row.next;
            ((collection, height, u32::MAX), Renewal { range, next: height.saturating_add(pause) })
        }
        _ => {
            let (height, next) = (at.height, at.height.saturating_add(pause));
            ((collection, height, at.ordinal), Renewal { range, next })
        }
    };
    txn.put::<Renewals>(&key, &Message(row));
    let cursor = RangeCursor { collection: collection.0.as_bytes().to_vec(), after: String::new() };
    let question = Question { about: Some(About::Range(cursor)), ..Question::default() };
    txn.put::<Questions>(&place_of(key), &Message(question));
    Ok(())
}

fn union(a: &[u8], b: Vec<u8>) -> Vec<u8> {
    match (decode_range(a), decode_range(&b)) {
        (Some(a), Some(b)) => encode_range(a.0.min(b.0), a.1.max(b.1)),
        _ => Vec::new(),
    }
}

/// The place of a renewal, also of its query.
fn place_of((collection, height, ordinal): (AccountKey, u64, u32)) -> Place {
    Place { height, ordinal, part: hex::encode(collection.0.as_bytes()) }
}

/// The renewal with the pending query `cursor` at `place`.
pub fn of_question(
    snapshot: &dyn Snapshot,
    place: &Place,
    cursor: &RangeCursor,
) -> Result<Option<(AccountKey, Renewal)>, Error> {
    let collection = super::log::account(&cursor.collection)?;
    let key = (collection, place.height, place.ordinal);
    let row = store::table::read::<Renewals>(snapshot, &key)?;
    Ok(row.map(|Message(row)| (collection, row)))
}

/// Whether a renewal before the event at `at` has queried the URI of `token`, or will, since the query at `asked`.
pub fn covers(
    snapshot: &dyn Snapshot,
    name: &TokenName,
    token: &Token,
    asked: &Place,
    at: &Place,
) -> Result<bool, Error> {
    let newer = |place: &Place| (place.height, place.ordinal) >= (asked.height, asked.ordinal);
    Ok(covering(snapshot, name, token, at)?.iter().any(newer))
}

/// The places of renewals before `at` whose query has not reached the token yet.
pub fn unreached(
    snapshot: &dyn Snapshot,
    name: &TokenName,
    token: &Token,
    at: &Place,
) -> Result<Vec<Place>, Error> {
    let mut places = covering(snapshot, name, token, at)?;
    let mut failed = None;
    places.retain(|place| match store::table::read::<Questions>(snapshot, place) {
        Ok(Some(Message(Question { about: Some(About::Range(cursor)), .. }))) => cursor.after < name.token_id,
        Ok(_) => false,
        Err(error) => {
            failed = Some(error);
            false
        }
    });
    failed.map_or(Ok(places), |error| Err(error.into()))
}

/// The places of the newest renewals before `at` that cover a token.
fn covering(
    snapshot: &dyn Snapshot,
    name: &TokenName,
    token: &Token,
    at: &Place,
) -> Result<Vec<Place>, Error> {
    let collection = super::log::account(&name.collection)?;
    let rows = store::table::rows::<Renewals>(snapshot, &collection, Order::Desc, SEARCHED)?;
    let covering = rows.into_iter().filter_map(|(key, Message(row))| {
        let place = place_of(key);
        (place < *at && row.covers(&place, &name.token_id, token)).then_some(place)
    });
    Ok(covering.collect())
}
