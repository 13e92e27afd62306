//! cw721: tokens in the events of contracts, and the contracts' answers.
//!
//! A contract chooses all attributes of a `wasm` event but `_contract_address`, which the chain writes; an owner that is
//! not an address is ignored. One event has all attributes of one execution, so a contract that acts on several tokens
//! repeats the keys: group by group, or, if the chain sorted the attributes by key after a reply, key by key.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{NftEvent, TokenRef, Updated};
use crate::address::Account;
use crate::comet::{Attribute, Event};
use crate::sanitize::{self, Text};

/// The NFT events in an event of type `wasm`, or of type `migrate`, the replacement of a contract's code.
pub(super) fn events(event: &Event<'_>, prefix: &str) -> Vec<NftEvent> {
    let mut found = Vec::new();
    let starts: Vec<usize> = places(&event.attributes, "_contract_address").collect();
    let ends = starts.iter().skip(1).copied().chain([event.attributes.len()]);
    for (start, end) in starts.iter().copied().zip(ends) {
        let attributes = &event.attributes[start..end];
        let Some(collection) = Account::from_bech32(&attributes[0].value, prefix) else { continue };
        if event.kind == "migrate" {
            found.push(NftEvent::Metadata { collection, tokens: Updated::All });
        } else {
            of_contract(collection, attributes, prefix, &mut found);
        }
    }
    found
}

fn of_contract(collection: Account, attributes: &[Attribute<'_>], prefix: &str, found: &mut Vec<NftEvent>) {
    let has = |key| places(attributes, key).next().is_some();
    if has("minter") && (has("creator") || has("owner")) {
        found.push(NftEvent::Instantiate { collection });
    }
    // Of cw721 since 0.19, and of sg721.
    let renames = |it: &Attribute<'_>| it.key == "action" && it.value == "update_collection_info";
    if attributes.iter().any(renames) {
        found.push(NftEvent::Metadata { collection, tokens: Updated::Name });
    }
    let account = |text: &str| Account::from_bech32(text, prefix);
    for group in groups(attributes) {
        found.extend(acts(group).filter_map(|act| act.meaning(collection, account)));
    }
}

/// The positions of a key.
fn places<'e>(attributes: &'e [Attribute<'_>], key: &'static str) -> impl Iterator<Item = usize> + 'e {
    attributes.iter().enumerate().filter(move |(_, it)| it.key == key).map(|(at, _)| at)
}

/// What a contract reports of one token.
struct Act<'e> {
    action: &'e str,
    token_id: &'e str,
    owner: Option<&'e str>,
    recipient: Option<&'e str>,
    uri: Option<&'e str>,
}

impl Act<'_> {
    fn meaning(&self, collection: Account, account: impl Fn(&str) -> Option<Account>) -> Option<NftEvent> {
        let token_id = self.token_id.to_owned();
        match self.action {
            "mint" => Some(NftEvent::Mint {
                collection,
                token_id: Some(token_id),
                object: None,
                owner: Some(account(self.owner?)?),
                uri: self.uri.filter(|uri| !uri.is_empty()).map(sanitize::without_nuls),
            }),
            "transfer_nft" | "send_nft" => Some(NftEvent::Transfer {
                token: TokenRef::Id { collection, token_id },
                to: account(self.recipient?)?,
            }),
            "burn" => Some(NftEvent::Burn { token: TokenRef::Id { collection, token_id } }),
            // `update_nft_info` of cw721 since 0.19, `update_token_metadata`, `update_metadata` and others of its kin.
            update if update.starts_with("update_") => {
                Some(NftEvent::Metadata { collection, tokens: Updated::Token(token_id) })
            }
            _ => None,
        }
    }
}

/// The attributes of each action: one group begins with each `action`, unless all actions come one after the other,
/// because the attributes are sorted.
fn groups<'e, 'a>(attributes: &'e [Attribute<'a>]) -> Vec<&'e [Attribute<'a>]> {
    let actions: Vec<usize> = places(attributes, "action").collect();
    let is_sorted = actions.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    if is_sorted {
        return vec![attributes];
    }
    let ends = actions[1..].iter().copied().chain([attributes.len()]);
    // What precedes the first action belongs to it.
    let starts = [0].into_iter().chain(actions[1..].iter().copied());
    starts.zip(ends).map(|(start, end)| &attributes[start..end]).collect()
}

/// The acts in one group. Each token has an action of its own, or all have the same one.
fn acts<'e>(group: &'e [Attribute<'_>]) -> impl Iterator<Item = Act<'e>> {
    let values = |key| {
        let of_key = group.iter().enumerate().filter(move |(_, it)| it.key == key);
        of_key.map(|(at, it)| (at, it.value.as_ref())).collect::<Vec<(usize, &str)>>()
    };
    // A cw20 mints and burns too; it has amounts in place of ids.
    let (tokens, actions) = (values("token_id"), values("action"));
    let (owners, recipients, uris) = (values("owner"), values("recipient"), values("token_uri"));
    let same =
        actions.first().map(|(_, action)| *action).filter(|first| actions.iter().all(|it| it.1 == *first));
    let own = actions.len() == tokens.len();
    let each: Vec<(usize, usize, &str)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(nth, (at, _))| Some((nth, *at, same.or_else(|| own.then(|| actions[nth].1))?)))
        .collect();
    let minted = each.iter().filter(|(.., action)| *action == "mint").count();
    let moved = each.iter().filter(|(.., action)| is_transfer(action)).count();
    let first = tokens.first().map_or(0, |(at, _)| *at);
    let (mut mints, mut transfers) = (0, 0);
    each.into_iter().map(move |(nth, at, action)| {
        let act = Act {
            action,
            token_id: tokens[nth].1,
            owner: value_of(&owners, (mints, minted), (first, at)),
            recipient: value_of(&recipients, (transfers, moved), (first, at)),
            // The node is asked where it is unknown.
            uri: uris.get(mints).filter(|_| uris.len() == minted || minted == 1).map(|uri| uri.1),
        };
        mints += usize::from(action == "mint");
        transfers += usize::from(is_transfer(action));
        act
    })
}

fn is_transfer(action: &str) -> bool {
    matches!(action, "transfer_nft" | "send_nft")
}

/// The value for the token at position `at`, the `nth` of `all` that need one: its own if there are as many values, the
/// first one for a single token, the only one, or the last one before it. `None` if several values precede the first of
/// several tokens: it is unknown whose they are.
fn value_of<'e>(
    values: &[(usize, &'e str)],
    (nth, all): (usize, usize),
    (first, at): (usize, usize),
) -> Option<&'e str> {
    let value = match values {
        _ if values.len() == all => values.get(nth),
        _ if all == 1 || values.len() == 1 => values.first(),
        [_, (second, _), ..] if *second < first => None,
        _ => values.iter().rev().find(|(of, _)| *of < at),
    };
    value.map(|(_, value)| *value)
}

/// The name in a contract's answer to `{"contract_info":{}}`.
pub fn contract_name(answer: &[u8]) -> Option<Text> {
    #[derive(Deserialize)]
    struct Info {
        name: String,
    }
    Some(sanitize::bounded(&data::<Info>(answer)?.name))
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
pub fn token_uri(answer: &[u8]) -> Option<Text> {
    #[derive(Deserialize)]
    struct Info {
        token_uri: Option<String>,
    }
    Some(sanitize::bounded(&data::<Info>(answer)?.token_uri.unwrap_or_default()))
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
