//! What a user signs so that a planned transfer happens.
//!
//! A plan and addresses go in; for every transaction of the plan come out its messages in the form that wallets sign:
//! amino JSON for Cosmos chains, calldata for EVM chains. Pure: no clock, no IO, and never a key. Must hold: a plan
//! gives transactions that do all of it, in order and once, or the reason why it cannot; nothing that a client sent gets
//! into a message unchecked; JSON and calldata are built from types, never from pieces of text.
//!
//! | module | one job |
//! |---|---|
//! | [`ask`] | what goes in and what comes out |
//! | [`transactions`](fn@transactions) (`txs`) | cuts a plan into transactions and checks that it fits together |
//! | `cosmos`, `bridge`, `transfer`, `layer_zero` | the messages of one transaction |
//! | `amino`, `memo`, `calls`, `bcs` | the forms: amino JSON, memos of packets, EVM calls, arguments of Move |
//! | [`hook`] | the calls that a deposit has the rollup run, and whether a user signed exactly these |
//! | [`address`] | which addresses a plan takes, and reading them |
//! | [`quote`] | what an OFT contract is asked before a transfer |
//! | [`slippage`] | the least that may arrive |
//! | [`wrapper`] | what an ERC20Wrapper is asked about its pairs, and which pairs messages may name |

pub mod address;
mod amino;
pub mod ask;
mod bcs;
mod bridge;
mod calls;
mod cosmos;
mod evm;
pub mod hook;
mod layer_zero;
mod memo;
pub mod quote;
mod refused;
mod signed;
pub mod slippage;
mod transfer;
mod tx_builder;
mod txs;
pub mod wrapper;

pub use ask::{Approval, Ask, Made, Msg, SignedHook, Tx};
pub use hook::{OpHook, OpHookAsk, op_hook};
pub use refused::Refused;
pub use txs::transactions;
