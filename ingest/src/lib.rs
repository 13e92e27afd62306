//! cairn's ingest: node answers in, rows out.
//!
//! ```text
//! node ──▶ source ──▶ derive ──▶ lane ──▶ sink ──▶ index ──▶ one commit
//!          asks and    pure, in    in order  the lane's   rows
//!          asks again  parallel              own row
//! ```
//!
//! | module | one job |
//! |---|---|
//! | `prepare`, `advice` | what must be right before it starts, and what looks wrong |
//! | [`daemon`](Ingest) | starts the lanes and watches over them |
//! | `lane` | one ordered stream of heights with one watermark |
//! | `confirmation`, `chain_linker` | when a height may be committed: blocks against their neighbours |
//! | `commit_verifier` | the validators' signatures |
//! | `fork` | whose history is the chain's, and how far ours goes along with it |
//! | `source` | from the node to a derived height; what is asked again, and when |
//! | [`mod@derive`] | raw answers of a height → what its indexes need; pure |
//! | [`nft`] | what is asked about NFTs, with the block and after it |
//! | `rich` | the lane of ERC-20 holders |
//! | `pruned` | where internal transactions begin on a node that has pruned old state |
//! | `settled` | when an answer about the state of a height is final |
//! | `sink`, `index` | a derived height → rows |
//! | `priority` | gives way to requests |
//! | [`meter`] | what is counted |
//! | [`verify`] | compares a database with the chain, and heals it |
//!
//! What must hold: all rows of a height in a lane, their counts and the lane's height are in one commit; no answer that
//! may be wrong or early is taken for "there was nothing"; one bad transaction never stops the chain.

pub mod config;
pub mod derive;

mod advice;
mod chain_linker;
mod commit_verifier;
mod confirmation;
mod daemon;
mod error;
mod fork;
mod index;
mod ingest;
mod lane;
mod lanes;
mod marks;
pub mod meter;
pub mod nft;
mod prepare;
mod priority;
mod pruned;
mod rich;
mod settled;
mod sink;
mod source;
pub mod verify;

pub use self::config::{Config, Verify};
pub use self::error::Error;
pub use self::ingest::Ingest;
pub use self::marks::{Mark, Marks};
pub use self::prepare::is_there;
pub use self::priority::lower_thread_priority;
