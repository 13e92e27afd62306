//! cw721: tokens in the events of contracts, and the contracts' answers.
//!
//! A contract chooses all attributes of a `wasm` event but `_contract_address`, which the chain writes. Of a repeated
//! key the first value counts, and an owner that is not an address is ignored.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{NftEvent, TokenRef};
use crate::address::Account;
use crate::comet::Event;
use crate::sanitize;

pub(super) fn events(event: &Event<'_>, prefix: &str) -> impl Iterator<Item = NftEvent> {
    let account = |key| event.value(key).and_then(|text| Account::from_bech32(text, prefix));
    let collection = account("_contract_address");
    let has = |key| event.value(key).is_some();
    let made = collection.filter(|_| has("minter") && (has("creator") || has("owner")));
    let done = collection.and_then(|collection| act(event, collection, account));
    made.map(|collection| NftEvent::Instantiate { collection }).into_iter().chain(done)
}

fn act(
    event: &Event<'_>,
    collection: Account,
    account: impl Fn(&'static str) -> Option<Account>,
) -> Option<NftEvent> {
    let action = event.value("action")?;
    // A cw20 mints and burns too; it has amounts in place of ids.
    let token_id = || event.value("token_id").map(ToString::to_string);
    let token = || token_id().map(|token_id| TokenRef::Id { collection, token_id });
    match action.as_ref() {
        "mint" => Some(NftEvent::Mint {
            collection,
            token_id: Some(token_id()?),
            object: None,
            owner: Some(account("owner")?),
            uri: event
                .value("token_uri")
                .filter(|uri| !uri.is_empty())
                .map(|uri| sanitize::without_nuls(uri)),
        }),
        "transfer_nft" | "send_nft" => {
            Some(NftEvent::Transfer { token: token()?, to: account("recipient")? })
        }
        "burn" => Some(NftEvent::Burn { token: token()? }),
        _ => None,
    }
}

/// The name in a contract's answer to `{"contract_info":{}}`.
pub fn contract_name(answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Info {
        name: String,
    }
    sanitize::bounded(&data::<Info>(answer)?.name)
}

/// The instantiator of a contract, in the answer of `/cosmwasm/wasm/v1/contract/{address}`.
pub fn contract_creator(answer: &[u8], prefix: &str) -> Option<Account> {
    #[derive(Deserialize)]
    struct Answer {
        contract_info: Info,
    }
    #[derive(Deserialize)]
    struct Info {
        creator: String,
    }
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    Account::from_bech32(&answer.contract_info.creator, prefix)
}

/// The URI in a contract's answer to `{"nft_info":{"token_id":…}}`; empty if the token has none.
pub fn token_uri(answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Info {
        token_uri: Option<String>,
    }
    sanitize::bounded(&data::<Info>(answer)?.token_uri.unwrap_or_default())
}

/// The owner in a contract's answer to `{"owner_of":{"token_id":…}}`.
pub fn token_owner(answer: &[u8], prefix: &str) -> Option<Account> {
    #[derive(Deserialize)]
    struct Info {
        owner: String,
    }
    Account::from_bech32(&data::<Info>(answer)?.owner, prefix)
}

/// The gateway wraps a contract's answer in a member.
fn data<T: DeserializeOwned>(answer: &[u8]) -> Option<T> {
    #[derive(Deserialize)]
    struct Answer<T> {
        data: T,
    }
    serde_json::from_slice::<Answer<T>>(answer).ok().map(|answer| answer.data)
}
