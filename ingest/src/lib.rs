//! cairn's ingest pipeline: node answers in, database rows out.
//!
//! ```text
//! node ──▶ source ──▶ derive ──▶ lane ──▶ sink ──▶ index ──▶ one commit
//!          fetches,   pure, in    in order  the lane's   rows
//!          retries    parallel              own row
//! ```
//!
//! | module | one job |
//! |---|---|
//! | `prepare`, `agreement` | checks before the start: node, database and settings must agree |
//! | [`advice`] | warnings about settings, and features that are off without one |
//! | `ingest` | the state that all lanes share |
//! | `daemon` | starts the lanes, watches them, recovers from their errors |
//! | `lanes`, `lane` | builds each lane; one lane is an ordered stream of heights with one watermark |
//! | `confirmation`, `chain_linker` | when a height may be committed: blocks are checked against their neighbours |
//! | `commit_verifier` | light client: the validators' signatures |
//! | `fork` | fork choice: which history to follow, and the height to rewind to |
//! | `retry` | backoff between requests, and between answers that cannot be used |
//! | `source` | fetches the replies of a height, retries, and derives it |
//! | [`mod@derive`] | raw replies of a height → the input of its indexes; pure |
//! | [`nft`] | NFT metadata: fetched with the block, or backfilled after it |
//! | `rich` | the lane of ERC-20 holders |
//! | `pruned` | first height with call traces on a node that has pruned old state |
//! | `retrace` | blocks that the node could not trace are traced again |
//! | `finality` | finality of a reply about the state of a height |
//! | `sink`, `index` | a derived height → rows |
//! | `optional` | the optional indexes, whose rows follow from stored blocks |
//! | `headers`, `tokens` | what two of them ask a node for |
//! | `priority` | threads of the index yield to threads that serve requests |
//! | `progress` | the height that each lane has reached |
//! | [`meter`] | metrics |
//! | [`verify`] | compares a database with the chain, and repairs it |
//!
//! # Invariants
//! * All rows of a height in a lane, their counts and the lane's watermark are in one commit.
//! * A reply that may be wrong or premature is never stored as an absence.
//! * One malformed transaction never stops the chain.

pub mod advice;
pub mod config;
pub mod derive;

mod agreement;
mod bridge;
mod chain_linker;
mod channels;
mod commit_verifier;
mod confirmation;
mod daemon;
mod error;
mod evm_chain;
mod finality;
mod fork;
mod headers;
mod index;
mod ingest;
mod lane;
mod lanes;
pub mod meter;
pub mod nft;
mod optional;
mod prepare;
mod priority;
mod progress;
mod pruned;
mod retrace;
mod retry;
mod rich;
mod rounds;
mod sink;
mod source;
mod tokens;
pub mod verify;

pub use self::config::{Config, Verify};
pub use self::error::Error;
pub use self::ingest::Ingest;
pub use self::optional::begin_indexes;
pub use self::prepare::is_there;
pub use self::progress::{LaneStop, Progress, ProgressReceivers};
