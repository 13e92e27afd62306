//! A longer chain computed from a recorded one: a recording, extended to any number of transactions.
//!
//! The heights after the recording hold copies of recorded transactions with other accounts, sequences, signatures,
//! contracts and NFTs. Every hash that follows from the content follows from it here too: the hashes of the
//! transactions, `data_hash`, `last_results_hash`, `last_commit_hash`, the headers' hashes, Ethereum's hashes of its
//! transactions, headers, logs and bloom filters, and created NFTs. So an index that verifies hashes accepts the chain.
//!
//! # Invariants
//!
//! - Everything about a transaction or about state is a function of its number or of the height, so any height can be
//!   requested in any order. Memory is independent of the length: the compressed recording, a cache of blocks, and the
//!   accounts that sign, which are bounded.
//! - Hashes of earlier blocks, on which a header depends, are in a temporary file, 96 bytes a height.
//!
//! # Limits
//!
//! Signatures are numbers that verify nothing, the roots in the EVM's headers and the hashes of the application are
//! numbers too, and part sets have no content. Searches by hash, event or account find only what was recorded. The addresses of
//! created contracts and of NFT objects are codes of numbers instead of hashes, and so are those of recipients, which
//! own no keys.
//!
//! | module | contents |
//! |---|---|
//! | `law` | the power law of accounts |
//! | `accounts` | addresses and keys of the law's accounts |
//! | `schedule` | sizes of blocks |
//! | `text`, `values`, `evm_template`, `template` | recorded transactions with slots |
//! | `auth`, `wire`, `eth` | signers, protobuf, Ethereum's hashes |
//! | `recorded`, `evm`, `cosmos` | selection of recorded transactions |
//! | `workload` | the transaction of a number, and sums in closed form |
//! | `frame`, `cache`, `synthesized` | blocks and the chain of their hashes |
//! | `starting_balances`, `state` | answers about state |

mod accounts;
mod auth;
mod cache;
mod cosmos;
mod error;
mod eth;
mod evm;
mod evm_template;
mod frame;
mod law;
mod recorded;
mod schedule;
mod starting_balances;
mod state;
mod synthesized;
mod template;
mod text;
mod values;
mod wire;
mod workload;

pub use error::Error;
pub use schedule::BlockSizes;
pub use synthesized::extend;
