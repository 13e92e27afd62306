//! The index in the form of Etherscan's API: `/api` and `/v2/api`, for the tools that speak it.
//!
//! Members, texts and numbers are those of Etherscan (docs.etherscan.io), because clients compare them. What the index has is
//! read from it; what needs the state of the chain goes through Ethereum's JSON-RPC next to it, with what that forwards.
//!
//! # Invariants
//! * A request reads one snapshot.
//! * What is over a bound of work, or not indexed, is an error, never a short list.
//! * No member of a response is made up: what is not known is left empty where Etherscan leaves it empty, and refused otherwise.

pub mod abi;
mod account;
pub mod actions;
mod block;
mod contract;
pub mod contracts;
mod decoded;
mod form;
mod holders;
mod logs;
mod node;
mod outcome;
mod proxy_contract;
pub mod reading;
mod reads;
mod row;
mod server;
mod status;
mod token;
mod verified;

pub use self::contracts::Contracts;
pub use self::decoded::{calls, decoded};
pub use self::server::{ENDPOINTS, Etherscan};
pub use self::verified::Verified;
