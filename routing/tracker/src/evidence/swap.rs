//! Swaps in the events of a message of a Move chain: of its pools, and of an adapter that gives the tokens back if a swap
//! fails. Pure.
//!
//! Events are those of Initia's standard library (`dex`, `stableswap`, `minitswap`) and of `skipapi-move-integration`
//! (`ack_callback`).
//!
//! # Invariants
//!
//! A swap counts only if what it returned went to an account that the message executes for. A pool's own arbitrage is a
//! part of an event here, or a swap of another account.

use node::FoundEvent;
use serde::Deserialize;

use crate::evidence::asset_location::same_contract;
use crate::evidence::event::is_amount;

/// What a message swapped, by the addresses of metadata.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Swapped {
    pub(crate) offered: Tokens,
    /// What came of it, or why the swap failed and the offered tokens came back.
    pub(crate) outcome: Result<Tokens, String>,
    /// Whether a call took the result further on the same chain.
    pub(crate) called: bool,
}

/// An amount of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// 32 bytes in lower-case hex with `0x`.
    pub(crate) metadata: String,
    pub(crate) amount: String,
}

const POOLS: [&str; 3] = ["0x1::dex::SwapEvent", "0x1::stableswap::SwapEvent", "0x1::minitswap::SwapEvent"];
const DEPOSIT: &str = "0x1::fungible_asset::DepositEvent";
const DEPOSIT_OWNER: &str = "0x1::fungible_asset::DepositOwnerEvent";

/// The accounts that a message executes Move calls for: those of its first call that is not the chain's own.
pub(crate) fn accounts(message: &[FoundEvent]) -> Vec<&str> {
    let calls = message.iter().filter(|event| event.kind == "execute" || event.kind == "script");
    // The chain's own calls are signed by 0x1 first.
    let own = |accounts: &Vec<&str>| accounts.first() == Some(&"0x1");
    let mut accounts = calls.filter_map(|event| Some(event.get("sender")?.split(',').collect::<Vec<_>>()));
    accounts.find(|accounts| !own(accounts)).unwrap_or_default()
}

/// The swap of a message: its pools in a row, the last of which counts.
pub(crate) fn swapped(message: &[FoundEvent]) -> Option<Swapped> {
    let accounts = accounts(message);
    let is_own = |owner: &str| accounts.iter().any(|account| same_contract(account, owner));
    if let Some(failed) = failed(message, &is_own) {
        return Some(failed);
    }
    let all: Vec<_> = message.iter().enumerate().filter_map(|(at, event)| Some((at, pool(event)?))).collect();
    let is_of_account = |(at, swap): &(usize, Pool)| goes_to(&message[*at..], &swap.returned, &is_own);
    let last = all.iter().rposition(is_of_account)?;
    let (at, Pool { returned, .. }) = &all[last];
    // A pool pays the next one, or the account does.
    let mut first = &all[last].1;
    for (_, swap) in all[..last].iter().rev() {
        if swap.returned == first.offered {
            first = swap;
        }
    }
    Some(Swapped {
        offered: first.offered.clone(),
        outcome: Ok(returned.clone()),
        called: is_called(message, *at, &is_own),
    })
}

/// A swap that failed inside of a call that gives back what was offered: the sub-message that ended last before the call
/// of `recover` is the swap.
fn failed(message: &[FoundEvent], is_own: &dyn Fn(&str) -> bool) -> Option<Swapped> {
    let is_recover = |event: &FoundEvent| {
        is_call_for(event, is_own)
            && event.get("module_name") == Some("ack_callback")
            && event.get("function_name") == Some("recover")
    };
    let at = message.iter().position(is_recover)?;
    let (before, after) = message.split_at(at);
    let ended = before.iter().rfind(|event| event.kind == "submsg")?;
    if ended.get("success") != Some("false") {
        return None;
    }
    let reason = ended.get("reason").unwrap_or("the swap failed").to_owned();
    let offered = after.iter().find_map(|event| moved::<Deposited>(event, &[DEPOSIT])).and_then(tokens_in)?;
    Some(Swapped { offered, outcome: Err(reason), called: false })
}

/// Whether the first deposit of these tokens is to an account of the message; nothing is not deposited. A chain without
/// events of owners has none that says otherwise.
fn goes_to(events: &[FoundEvent], tokens: &Tokens, is_own: &dyn Fn(&str) -> bool) -> bool {
    if tokens.amount == "0" {
        return true;
    }
    let is_it = |event: &FoundEvent| moved(event, &[DEPOSIT]).and_then(tokens_in).as_ref() == Some(tokens);
    let Some(at) = events.iter().position(is_it) else { return false };
    let owner = events.get(at + 1).and_then(|event| moved::<Owner>(event, &[DEPOSIT_OWNER]));
    owner.is_none_or(|owner| is_own(&owner.owner))
}

/// Whether the account calls another module than the one that swapped for it, after the swap.
fn is_called(message: &[FoundEvent], swap: usize, is_own: &dyn Fn(&str) -> bool) -> bool {
    let module = |event: &FoundEvent| event.get("module_addr").map(str::to_owned);
    let first = message[..swap].iter().find(|event| is_call_for(event, is_own)).and_then(module);
    message[swap..].iter().any(|event| is_call_for(event, is_own) && module(event) != first)
}

fn is_call_for(event: &FoundEvent, is_own: &dyn Fn(&str) -> bool) -> bool {
    // The chain's own calls for an account are signed by 0x1 first.
    let caller = event.get("sender").and_then(|callers| callers.split(',').next());
    event.kind == "execute" && caller.is_some_and(is_own)
}

/// A swap of one pool.
struct Pool {
    offered: Tokens,
    returned: Tokens,
}

fn pool(event: &FoundEvent) -> Option<Pool> {
    #[derive(Deserialize)]
    struct Data {
        offer_coin: String,
        offer_amount: String,
        return_coin: String,
        return_amount: String,
    }
    let data: Data = moved(event, &POOLS)?;
    Some(Pool {
        offered: tokens(&data.offer_coin, data.offer_amount)?,
        returned: tokens(&data.return_coin, data.return_amount)?,
    })
}

#[derive(Deserialize)]
struct Deposited {
    metadata_addr: String,
    amount: String,
}

#[derive(Deserialize)]
struct Owner {
    owner: String,
}

fn tokens_in(deposit: Deposited) -> Option<Tokens> {
    tokens(&deposit.metadata_addr, deposit.amount)
}

fn tokens(address: &str, amount: String) -> Option<Tokens> {
    let digits = address.strip_prefix("0x")?.to_ascii_lowercase();
    let is_address = digits.len() <= 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_address && is_amount(&amount)).then(|| Tokens { metadata: format!("0x{digits:0>64}"), amount })
}

/// The data of a Move event with one of these types. Not every version of the chain repeats them as attributes.
fn moved<T: for<'a> Deserialize<'a>>(event: &FoundEvent, types: &[&str]) -> Option<T> {
    let is_it = event.kind == "move" && event.get("type_tag").is_some_and(|tag| types.contains(&tag));
    is_it.then(|| serde_json::from_str(event.get("data")?).ok()).flatten()
}
