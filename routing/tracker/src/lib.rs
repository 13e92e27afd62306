//! Transfer tracker: follows registered transactions over the nodes of their chains, from the first to the last hop.
//!
//! [`Tracker::track`] registers a transaction; [`Tracker::poll_due`] and [`Tracker::run`] poll it whenever it is due;
//! [`Tracker::status`] returns the response of `GET /v2/tx/status`, rendered by the last poll. A hash has no response
//! if it was never registered or is deleted ([`Options::retention`], [`Options::unseen_kept`]). A registered
//! transaction starts in `STATE_SUBMITTED`, because both real clients fail on any other state; if no node has it within
//! the grace time ([`Options::submitted_grace`]), it becomes `STATE_ABANDONED`.
//!
//! # Invariants
//!
//! * A state is a function of the evidence found on chains ([`evidence::hop`]).
//! * Evidence only grows, in any order of discovery ([`evidence::state`]).
//! * A transfer that has ended never changes ([`evidence::transfer`]).
//!
//! | module | one job |
//! |---|---|
//! | [`evidence::hop`] | evidence about one hop of a transfer |
//! | [`evidence::state`] | state machine of one hop |
//! | [`evidence::transfer`] | state of a chain of hops |
//! | [`record`] | a registered transaction and its schedule |
//! | [`evidence::hop_query`] | open queries about a hop |
//! | [`mod@status`] | response of `/v2/tx/status` |
//! | [`ChainClients`] | node clients by chain |
//! | `chain_queries`, `search`, `query_error` | node queries and their results |
//! | `detect`, `continuation`, `event`, `layer_zero`, `swap` | parsing of transactions and events |
//! | [`chains::known_chain`] | what a record keeps of its chains |
//! | `known_acks` | acknowledgements by their hash |
//! | `other_bridges` | steps over bridges that are not tracked |
//! | `asset_location` | chain and denomination of the tokens |
//! | `poll_tx` | one poll of one transaction |
//! | `queue`, `queue_position`, `poll` | due transactions by chain; polling and deletion |
//! | `limiter`, `breaker` | concurrency limit and circuit breaker of a chain |
//! | [`LocalIndex`] | the chains that this process indexes |
//! | `recent_blocks` | the newest blocks of a chain without an index |
//! | `executor_withdrawals` | the withdrawals of a rollup without an index |
//! | `unseen` | quotas for hashes that no node has |
//! | `meter` | metrics |
//! | `tx_hash` | hashes in the spelling of their chains |
//! | `tracker`, `tables` | registration and storage; database tables |
//!
//! # When a transfer is in error
//!
//! `STATE_PENDING_ERROR` is reported only when success is impossible, because a wallet treats it as final: an error
//! acknowledgement was written, or the receiving chain is past a packet's timeout without having received it, and no
//! chain will resend it. A packet in the second state stays `TRANSFER_PENDING` without an error of its own until its
//! timeout is proved to the sending chain. A relayer may never do that, so the transfer may end as `STATE_ABANDONED`.

pub mod chains;
mod error;
pub mod evidence;
mod meter;
pub mod options;
mod queue;
pub mod record;
pub mod status;
mod tables;
mod tracker;
mod tx_hash;

pub use chains::clients::{ChainClients, Clients, NoAddress};
pub use chains::local_index::{BridgeStep, IndexedTx, LocalIndex, PacketStep};
pub use error::{BadHash, Error, Refused, StatusError};
pub use evidence::detect::detect_hops;
pub use meter::describe as describe_metrics;
pub use options::Options;
pub use queue::poll::Polled;
pub use queue::unseen::Limit;
pub use tracker::{Tracked, Tracker};
