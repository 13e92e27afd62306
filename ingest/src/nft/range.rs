//! What the backfill asks for a round of questions: one query for each, or one for each next token of a range.

use node::Error as NodeError;
use schema::keys::AccountKey;
use schema::nft::{About, PendingEvents, Place, Question, RangeCursor, TokenKey, Tokens, renewal};
use store::key::Text;
use store::{Message, Order, Snapshot};

use super::Reply;
use crate::Error;

/// Tokens of a range that are asked about together: with the longest URIs 16 MB.
/// Small in tests, to cover the boundaries.
const TOKENS: usize = if cfg!(test) { 2 } else { 64 };

/// Tokens of a collection that are read to find them.
const READ: usize = 64 * TOKENS;

/// The queries for some questions, in the order of the questions.
pub(crate) struct Asked {
    abouts: Vec<About>,
    of: Vec<Queries>,
}

/// The queries for one question.
enum Queries {
    /// Its own.
    One,
    /// Those of these tokens, up to and including `after`.
    Range { tokens: Vec<String>, after: String, done: bool },
    /// None at this time.
    Later,
}

impl Asked {
    /// The queries for questions of one height.
    pub(crate) fn read(snapshot: &dyn Snapshot, questions: &[(Place, Question)]) -> Result<Self, Error> {
        let mut asked = Self { abouts: Vec::new(), of: Vec::new() };
        for (place, question) in questions {
            let queries = match &question.about {
                Some(About::Range(cursor)) => next_tokens(snapshot, place, cursor)?,
                Some(about) => {
                    asked.abouts.push(about.clone());
                    Queries::One
                }
                None => Queries::Later,
            };
            if let (Queries::Range { tokens, .. }, Some(About::Range(cursor))) = (&queries, &question.about) {
                let about = |token_id: &String| {
                    let (collection, token_id) = (cursor.collection.clone(), token_id.clone());
                    About::Uri(TokenKey { collection, token_id, object: Vec::new() })
                };
                asked.abouts.extend(tokens.iter().map(about));
            }
            asked.of.push(queries);
        }
        Ok(asked)
    }

    pub(crate) fn abouts(&self) -> &[About] {
        &self.abouts
    }

    /// The reply to each question, from the node's to the queries; `None` if there was no query for it.
    pub(crate) fn replies(
        self,
        replies: Vec<Result<Reply, NodeError>>,
    ) -> impl Iterator<Item = Result<Option<Reply>, NodeError>> {
        let mut replies = replies.into_iter();
        self.of.into_iter().map(move |queries| match queries {
            Queries::One => replies.next().transpose(),
            Queries::Range { tokens, after, done } => {
                let replies: Vec<_> = replies.by_ref().take(tokens.len()).collect();
                range(tokens, replies, after, done).map(Some)
            }
            Queries::Later => Ok(None),
        })
    }
}

/// The reply about a range, up to the first token that the node has not answered about.
fn range(
    tokens: Vec<String>,
    replies: Vec<Result<Reply, NodeError>>,
    after: String,
    done: bool,
) -> Result<Reply, NodeError> {
    let mut answered: Vec<(String, Reply)> = Vec::new();
    for (token_id, reply) in tokens.into_iter().zip(replies) {
        match (reply, answered.last()) {
            (Ok(reply), _) => answered.push((token_id, reply)),
            (Err(error), None) => return Err(error),
            (Err(_), Some((last, _))) => {
                let after = last.clone();
                return Ok(Reply::Range { tokens: answered, after, done: false });
            }
        }
    }
    Ok(Reply::Range { tokens: answered, after, done })
}

/// The next tokens of a renewal that exist at its place.
fn next_tokens(snapshot: &dyn Snapshot, place: &Place, cursor: &RangeCursor) -> Result<Queries, Error> {
    let Some((collection, renewal)) = renewal::of_question(snapshot, place, cursor)? else {
        return Ok(Queries::Later);
    };
    if has_earlier_events(snapshot, collection, place)? {
        // Some of its tokens are not indexed yet.
        return Ok(Queries::Later);
    }
    let (mut tokens, mut after) = (Vec::new(), (collection, Text(cursor.after.clone())));
    for _ in 0..READ / TOKENS {
        let rows = store::table::rows_after::<Tokens>(snapshot, &collection, &after, Order::Asc, TOKENS)?;
        let done = rows.len() < TOKENS;
        for (key, Message(row)) in rows {
            if renewal.covers(place, &key.1.0, &row) {
                tokens.push(key.1.0.clone());
            }
            after = key;
            if tokens.len() == TOKENS {
                return Ok(Queries::Range { tokens, after: after.1.0, done: false });
            }
        }
        if done {
            return Ok(Queries::Range { tokens, after: after.1.0, done: true });
        }
    }
    Ok(Queries::Range { tokens, after: after.1.0, done: false })
}

fn has_earlier_events(snapshot: &dyn Snapshot, collection: AccountKey, place: &Place) -> Result<bool, Error> {
    let first = store::table::rows::<PendingEvents>(snapshot, &collection, Order::Asc, 1)?;
    Ok(first
        .first()
        .is_some_and(|((_, height, ordinal), _)| (*height, *ordinal) < (place.height, place.ordinal)))
}
