//! What is asked about NFTs, and what the node says.
//!
//! Events tell who got what; whether a contract holds NFTs at all, and names and URIs, only the node can tell, at the
//! height of the event. A fixed no is an answer. A node that cannot answer now holds nothing up: the block goes on without,
//! and the question is kept and asked until there is an answer (`backfill`).

pub(crate) mod backfill;
pub(crate) mod client;
pub(crate) mod plan;

use std::collections::HashMap;

use chain::Account;
use chain::nft::NftEvent;
use schema::nft::{About, Question};

/// Something that happened to an NFT in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftAt {
    /// Its place in the block: twice its ordinal, from 2.
    pub place: u32,
    /// Index of the transaction; none for what happened outside of one.
    pub tx: Option<usize>,
    /// What.
    pub event: NftEvent,
}

/// What the node says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// There is a collection.
    Collection {
        /// Its name; empty if it has none.
        name: String,
        /// Who made it, where the node tells.
        creator: Option<Account>,
    },
    /// Move: the object is a token.
    Token {
        /// Of this collection.
        collection: Account,
        /// With this id.
        token_id: String,
        /// And this URI.
        uri: String,
    },
    /// The URI.
    Uri(String),
    /// A fixed no: there is no such thing.
    No,
    /// No token is left by which to tell.
    Unknown,
}

/// What was asked about.
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
    /// The subject of a stored question; `None` if an address in it is none.
    pub fn of(about: &About) -> Option<Self> {
        Some(match about {
            About::Collection(subject) => Self::Collection(Account::from_bytes(&subject.address)?),
            About::Object(subject) => Self::Object(Account::from_bytes(&subject.address)?),
            About::Uri(token) => Self::Uri(Account::from_bytes(&token.collection)?, token.token_id.clone()),
        })
    }
}

/// What the node said about a block's NFTs. What is not among it is to be asked again.
pub type Answers = HashMap<QuestionKey, Reply>;

/// An answer to a question that was kept.
#[derive(Clone, Debug)]
pub struct LateAnswer {
    /// The question's number.
    pub number: u64,
    /// The question.
    pub question: Question,
    /// The answer.
    pub reply: Reply,
}
