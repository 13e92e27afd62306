//! The domain types against recorded chains and hand-made edge cases.
//!
//! One program, because linking each file as its own takes longer than running it.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it says")]

mod addresses;
mod comet_answers;
mod erc20_events;
mod ethereum_receipts;
mod evm_answers;
mod goldens;
mod header_proofs;
mod involved_accounts;
mod light_client;
mod movements;
mod nft_class_names;
mod nft_events;
mod nft_invalid_events;
mod receipt_proofs;
mod recorded;
mod recordings;
mod records;
mod signed_txs;
