//! ERC-721: tokens in the logs of contracts.
//!
//! Contracts that are not an ERC-721 can log the same shape (an ERC-20 that indexes its amounts): query the contract
//! before creating a collection for it. ERC-1155 has other events and never matches.

use alloy::primitives::U256;

use super::{NftEvent, TokenRef};
use crate::address::Account;
use crate::comet::Event;
use crate::evm_log::{Transfer, TransferLogs};

const NOBODY: [u8; 20] = [0; 20];

pub(super) fn events<'s>(logs: &'s TransferLogs, event: &'s Event<'_>) -> impl Iterator<Item = NftEvent> {
    logs.tokens(event).filter_map(meaning)
}

fn meaning(log: Transfer) -> Option<NftEvent> {
    let Transfer { contract, from, to, value } = log;
    let (collection, to) = (Account::from(contract), (to != NOBODY).then(|| Account::from(to)));
    let token_id = U256::from_be_bytes(value).to_string();
    let id = |token_id| TokenRef::Id { collection, token_id };
    match (from == NOBODY, to) {
        (true, None) => None,
        (true, owner @ Some(_)) => {
            Some(NftEvent::Mint { collection, token_id: Some(token_id), object: None, owner, uri: None })
        }
        (false, Some(to)) => Some(NftEvent::Transfer { token: id(token_id), to }),
        (false, None) => Some(NftEvent::Burn { token: id(token_id) }),
    }
}
