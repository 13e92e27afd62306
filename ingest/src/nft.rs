//! NFT metadata: questions about the NFTs of a block, and the node's replies.
//!
//! Events contain tokens and owners. Only the node has, at the height of the event, the names and URIs, and whether a
//! contract holds NFTs at all. A definite "no" is a reply. A node that cannot answer yet does not delay the block:
//! the question is stored and asked until there is a reply (`backfill`).

pub(crate) mod backfill;
pub(crate) mod client;
pub(crate) mod plan;
pub(crate) mod range;

use std::collections::HashMap;

use chain::nft::NftEvent;
use chain::record::Proposer;
use chain::{Account, Text};
use schema::nft::{About, Outcome, Place, Question};

use crate::meter;

/// An NFT event of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftAt {
    /// Its ordinal in the block, doubled: from 2.
    pub place: u32,
    /// Index of the transaction; `None` for an event of the block itself.
    pub tx: Option<usize>,
    /// The event.
    pub event: NftEvent,
}

/// The node's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The collection exists.
    Collection {
        /// Its name; empty if it has none.
        name: Text,
        /// Its creator, if the node returns one.
        creator: Option<Account>,
    },
    /// Move: the object is a token.
    Token {
        /// Its collection.
        collection: Account,
        /// Its id.
        token_id: String,
        /// Its URI.
        uri: Text,
    },
    /// The URI.
    Uri(Text),
    /// URIs of tokens of a range.
    Range {
        /// The tokens that were reached, each with its reply.
        tokens: Vec<(String, Reply)>,
        /// The last id that was reached.
        after: String,
        /// True if no token is left.
        done: bool,
    },
    /// The validator that proposed the block.
    Proposer(Proposer),
    /// A definite no: the subject does not exist.
    No,
    /// Undecidable: no token is left to test the contract with.
    Unknown,
}

impl Reply {
    /// The collection's name, and nothing of its creator.
    pub(crate) fn named(name: Text) -> Self {
        Self::Collection { name, creator: None }
    }

    /// What a reply about the URI of a token says of it.
    pub(crate) fn into_uri(self) -> (Outcome, String) {
        match self {
            Self::Uri(Text::Plain(uri)) | Self::Token { uri: Text::Plain(uri), .. } => (Outcome::Known, uri),
            Self::Uri(Text::TooLong) | Self::Token { uri: Text::TooLong, .. } => {
                (Outcome::TooLong, String::new())
            }
            _ => (Outcome::Refused, String::new()),
        }
    }
}

/// Counts a URI that is too long to be stored.
pub(crate) fn count_if_too_long(outcome: Outcome) {
    if outcome == Outcome::TooLong {
        meter::Event::TooLong.count();
    }
}

/// The subject of a question, as a key of [`Replies`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QuestionKey {
    /// A collection.
    Collection(Account),
    /// Move: an object.
    Object(Account),
    /// The URI of a token.
    Uri(Account, String),
}

impl QuestionKey {
    /// The subject of a stored question; `None` if it holds an invalid address, or is not about one subject of NFTs.
    pub fn about(about: &About) -> Option<Self> {
        Some(match about {
            About::Collection(subject) => Self::Collection(Account::from_bytes(&subject.address)?),
            About::Object(subject) => Self::Object(Account::from_bytes(&subject.address)?),
            About::Uri(token) => Self::Uri(Account::from_bytes(&token.collection)?, token.token_id.clone()),
            About::Range(_) | About::Name(_) | About::Proposer(_) => return None,
        })
    }
}

/// The replies for a block's NFTs. Missing ones are asked by the backfill.
pub type Replies = HashMap<QuestionKey, Reply>;

/// A reply from the backfill to a stored question.
#[derive(Clone, Debug)]
pub struct LateReply {
    /// The question's key.
    pub place: Place,
    /// The question.
    pub question: Question,
    /// The reply.
    pub reply: Reply,
}
