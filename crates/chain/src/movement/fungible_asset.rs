//! Movements of Move's fungible assets.
//!
//! Only the framework at `0x1` can emit the events of its own types, so their values are correct. An event names the store
//! of an asset; the one behind it names the store's owner if the store is the owner's primary one, which is what banks
//! and wallets show. Another store is an account of its own, whichever account owns it.

use alloy::primitives::U256;
use serde::Deserialize;
use sha3::{Digest as _, Sha3_256};

use super::pairing::{Leg, Pairing};
use super::{Group, Placed, Token, amount, bank};
use crate::address::Account;
use crate::comet::Event;
use crate::serde_lenient::JsonText;

/// The members of the events; each has some of them.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Data<'a> {
    store_addr: JsonText<'a>,
    metadata_addr: JsonText<'a>,
    amount: JsonText<'a>,
    owner: JsonText<'a>,
}

/// Adds the movements of `events`.
pub(super) fn read(events: &[Event<'_>], out: &mut Vec<Placed>) {
    let mut pairing = Pairing::default();
    for (at, event) in events.iter().enumerate() {
        let Some(kind) = asset_event(event) else { continue };
        if !matches!(kind, "WithdrawEvent" | "DepositEvent" | "MintEvent" | "BurnEvent") {
            continue;
        }
        let Some((data, metadata, amount)) = data(event) else { continue };
        let of_store = || {
            let behind = events.get(at + 1).filter(|event| Group::of(event) == group_of(events, at));
            account(&data, metadata, kind, behind)
        };
        let leg =
            |account| Leg { at, group: group_of(events, at), token: Token::Asset(metadata), account, amount };
        match kind {
            "WithdrawEvent" => pairing.give(leg(of_store())),
            "MintEvent" => pairing.give(leg(None)),
            "DepositEvent" => pairing.take(leg(of_store()), out),
            _ => pairing.take(leg(None), out),
        }
    }
    pairing.finish(out);
}

fn group_of(events: &[Event<'_>], at: usize) -> Group {
    events.get(at).map(Group::of).unwrap_or_default()
}

/// The assets of the denoms in bank events, which are named by what they are derived from.
pub(super) fn denoms(events: &[Event<'_>]) -> Vec<(Token, String)> {
    let named = |denom: &str| Some((Token::Asset(metadata_of_denom(denom)?), denom.to_owned()));
    bank::denoms(events).filter_map(named).collect()
}

/// The name of an event of the framework's fungible assets.
fn asset_event<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    let [tag, data, ..] = &event.attributes[..] else { return None };
    let is_event = event.kind == "move" && tag.key == "type_tag" && data.key == "data";
    is_event.then(|| tag.value.strip_prefix("0x1::fungible_asset::")).flatten()
}

/// The data of an event, its asset and its amount. A field of a struct may have the name of the attribute, but comes later.
fn data<'e>(event: &'e Event<'_>) -> Option<(Data<'e>, [u8; 32], U256)> {
    let data: Data<'e> = serde_json::from_str(&event.attributes.get(1)?.value).ok()?;
    let (metadata, amount) = (object(&data.metadata_addr)?, amount(&data.amount)?);
    Some((data, metadata, amount))
}

/// The account that the store of an event stands for.
fn account(data: &Data<'_>, metadata: [u8; 32], kind: &str, behind: Option<&Event<'_>>) -> Option<Account> {
    let store = object(&data.store_addr)?;
    let names_owner = |event: &&Event<'_>| match kind {
        "WithdrawEvent" => asset_event(event) == Some("WithdrawOwnerEvent"),
        _ => asset_event(event) == Some("DepositOwnerEvent"),
    };
    let owner = behind.filter(names_owner).and_then(|event| {
        let named: Data<'_> = serde_json::from_str(&event.attributes.get(1)?.value).ok()?;
        Some((Account::from_hex_literal(&named.owner)?, object(&named.owner)?))
    });
    match owner {
        Some((account, owner)) if primary_store(&owner, &metadata) == store => Some(account),
        _ => Some(store.into()),
    }
}

/// The 32 bytes of an address, which Move writes without leading zeros.
fn object(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("0x")?;
    let mut bytes = [0; 32];
    let padded = (1..=64).contains(&digits.len()).then(|| format!("{digits:0>64}"))?;
    hex::decode_to_slice(padded, &mut bytes).ok()?;
    Some(bytes)
}

/// The store in which `owner` has an asset unless it makes another one: the framework's `primary_fungible_store`.
pub fn primary_store(owner: &[u8; 32], metadata: &[u8; 32]) -> [u8; 32] {
    let hash = Sha3_256::new().chain_update(owner).chain_update(metadata).chain_update([0xfc]);
    hash.finalize().into()
}

/// The metadata object of a bank denom: `move/` and its address, or the object that `0x1` names by the denom.
pub fn metadata_of_denom(denom: &str) -> Option<[u8; 32]> {
    if let Some(digits) = denom.strip_prefix("move/") {
        return object(&format!("0x{digits}"));
    }
    let mut framework = [0; 32];
    framework[31] = 1;
    let hash = Sha3_256::new().chain_update(framework).chain_update(denom.as_bytes()).chain_update([0xfe]);
    Some(hash.finalize().into())
}
