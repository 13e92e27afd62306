//! Builder of the transactions that a user signs to execute a plan.
//!
//! The input is a plan and addresses; the output is the messages of each transaction in the form that wallets sign:
//! amino JSON on Cosmos chains, calldata on EVM chains. Pure: no clock, no IO, no keys.
//!
//! # Invariants
//!
//! * The transactions of a plan execute all of it, in order and once; otherwise the builder returns an error.
//! * Client input is validated before it enters a message.
//! * JSON and calldata are serialized from types, never concatenated from strings.
//!
//! | module | one job |
//! |---|---|
//! | [`request`] | input and output types |
//! | [`transactions`](fn@transactions) | splits a plan into transactions and validates it |
//! | `tx_builder`, `cosmos`, `evm`, `bridge`, `transfer`, `cw20`, `layer_zero`, `swap` | messages of one transaction |
//! | `adapter` | arguments of the adapter that swaps and sends on |
//! | `amino`, `memo`, `calls` | encodings: amino JSON, packet memos, Solidity interfaces |
//! | [`hook`], `signed` | op hooks: the calls that a deposit executes on the rollup, and their verification |
//! | [`address`] | address parsing and the addresses that a plan needs |
//! | [`mod@nft`] | messages that send NFTs |
//! | [`oft_views`] | views of OFT contracts |
//! | [`quote`] | quote calls of OFT contracts |
//! | [`slippage`] | minimum amount out |
//! | [`wrapper`] | queries of the ERC20Wrapper, and the pairs that messages may name |

mod adapter;
pub mod address;
mod amino;
mod bridge;
mod calls;
mod cosmos;
mod cw20;
mod error;
mod evm;
pub mod hook;
mod layer_zero;
mod memo;
pub mod nft;
pub mod oft_views;
pub mod quote;
pub mod request;
mod signed;
pub mod slippage;
mod swap;
mod transactions;
mod transfer;
mod tx_builder;
pub mod wrapper;

pub use error::BuildError;
pub use hook::{OpHook, OpHookRequest, op_hook};
pub use nft::{NftMsg, NftRequest, nft};
pub use request::{Approval, BuildRequest, BuiltTxs, Msg, SignedHook, Tx};
pub use transactions::transactions;
