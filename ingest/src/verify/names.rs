//! Names of collections, URIs of tokens, and rejected contracts, compared with the chain's state.
//!
//! A name or URI is that of the height at which the collection or token became known, so it is queried at the height of
//! its log entry. The log is corrected; the tables are a fold of it.

use std::collections::HashMap;

use chain::{Account, Vm};
use schema::audit::{Ground, Remedy, Report};
use schema::keys::Owner;
use schema::nft::{About, Change, Entry, Log, NftLog, Refused, Subject, TokenKey};
use store::{Bounds, Key as _, Message, Table as _, Value as _};

use super::chain::Chain;
use super::sample::is_chosen;
use super::state::some;
use crate::Error;
use crate::nft::Reply;
use crate::nft::plan::{final_owners, subject};

/// Compares about `n` collections and tokens, `n` more of those without a name or URI, and `n` rejected contracts.
pub(super) async fn compare(
    chain: &Chain,
    ground: &Ground<'_>,
    n: u64,
    report: &mut Report,
) -> Result<(), Error> {
    let (mut all, mut empty) = (0, 0);
    each(ground, |_, _, entry| {
        let value = stored_value(entry);
        all += u64::from(value.is_some());
        empty += u64::from(value.is_some_and(str::is_empty));
    })?;
    let (mut place, mut empty_place, mut chosen) = (0, 0, Vec::new());
    each(ground, |height, log, entry| {
        let Some(value) = stored_value(entry) else { return };
        let mut is_sampled = is_chosen(place, all, n);
        place += 1;
        if value.is_empty() {
            is_sampled |= is_chosen(empty_place, empty, n);
            empty_place += 1;
        }
        if is_sampled && let Some(about) = about(log, entry, chain.vm) {
            chosen.push((height, entry.place, about));
        }
    })?;
    for of_height in chosen.chunk_by(|(a, ..), (b, ..)| a == b) {
        height(chain, ground, of_height, report).await?;
    }
    refused(chain, ground, n, report).await
}

/// Each entry of the log, with its height and row. Rows that do not decode are found elsewhere.
fn each(ground: &Ground<'_>, mut look: impl FnMut(u64, &Log, &Entry)) -> Result<(), Error> {
    store::for_each_row(ground.snapshot, NftLog::SPEC, Bounds::all(), |key, value| {
        if let Ok((height, Message(log))) = store::table::decode_row::<NftLog>(key, value) {
            log.entries.iter().for_each(|entry| look(height, &log, entry));
        }
        Ok::<(), Error>(())
    })
}

/// The name or URI in an entry, where no question about it is open.
fn stored_value(entry: &Entry) -> Option<&str> {
    match entry.change.as_ref()? {
        Change::Collection(new) => Some(&new.collection.name),
        Change::Mint(mint) if mint.question == 0 => Some(&mint.uri),
        _ => None,
    }
}

/// The question behind the entry; none if an event supplied the value.
fn about(log: &Log, entry: &Entry, vm: Vm) -> Option<About> {
    match entry.change.as_ref()? {
        Change::Collection(new) => {
            Some(About::Collection(subject(Account::from_bytes(&new.address)?, &owners(log))))
        }
        // Events of other VMs may contain URIs; those are derived again with their height.
        Change::Mint(mint) if vm == Vm::Evm || mint.uri.is_empty() => {
            let (collection, token_id) = (mint.token.collection.clone(), mint.token.token_id.clone());
            Some(About::Uri(TokenKey { collection, token_id, object: mint.object.clone() }))
        }
        _ => None,
    }
}

/// The owner of each token at the end of the block; `None` if it is burnt.
fn owners(log: &Log) -> HashMap<(Account, String), Option<Account>> {
    let owner = |entry: &Entry| match entry.change.as_ref()? {
        Change::Mint(mint) => Some((mint.token.clone(), Account::from_bytes(&mint.owner))),
        Change::Transfer(transfer) => Some((transfer.token.clone(), Account::from_bytes(&transfer.owner))),
        Change::Burn(token) => Some((token.clone(), None)),
        _ => None,
    };
    let owners = log.entries.iter().filter_map(owner);
    owners
        .filter_map(|(token, owner)| Some(((Account::from_bytes(&token.collection)?, token.token_id), owner)))
        .collect()
}

/// Compares entries of one height, each with its place and its question.
async fn height(
    chain: &Chain,
    ground: &Ground<'_>,
    entries: &[(u64, u32, About)],
    report: &mut Report,
) -> Result<(), Error> {
    let Some((height, ..)) = entries.first().cloned() else { return Ok(()) };
    let abouts: Vec<About> = entries.iter().map(|(.., about)| about.clone()).collect();
    let replies = chain.ask(height, &abouts).await?;
    let Some(Message(mut log)) = store::table::read::<NftLog>(ground.snapshot, &height)? else {
        return Ok(());
    };
    for ((_, place, about), reply) in entries.iter().zip(replies) {
        let expected = match (about, reply) {
            (About::Collection(_), Some(Reply::Collection { name, .. })) => name,
            (About::Uri(_), Some(Reply::Uri(uri))) => uri,
            (About::Uri(_), Some(Reply::No)) => String::new(),
            _ => {
                report.unchecked("names and URIs of NFTs", 1);
                continue;
            }
        };
        report.checked("names and URIs of NFTs", 1);
        let Some(entry) = log.entries.iter_mut().find(|entry| entry.place == *place) else { continue };
        let stored = match &mut entry.change {
            Some(Change::Collection(new)) => &mut new.collection.name,
            Some(Change::Mint(mint)) => &mut mint.uri,
            _ => continue,
        };
        if *stored == expected {
            continue;
        }
        let old = std::mem::replace(stored, expected.clone());
        let mut row = Vec::new();
        // Includes earlier corrections of this height: the last write of a key wins.
        Message(log.clone()).encode(&mut row);
        let (kind, words) = match about {
            About::Uri(token) => {
                ("URI unlike the chain's", format!("`{expected}` of token {}", token.token_id))
            }
            _ => ("name unlike the chain's", format!("`{expected}`")),
        };
        let at = (NftLog::SPEC, &height.to_bytes()[..], Some(old.as_bytes()));
        report.row(kind, at, words, Remedy::Row(Some(row)));
        report.plan.nfts = true;
    }
    Ok(())
}

/// Contracts that count as no collection, and objects that count as no token.
async fn refused(chain: &Chain, ground: &Ground<'_>, n: u64, report: &mut Report) -> Result<(), Error> {
    for (Owner(account), height) in some::<Refused>(ground.snapshot, n)? {
        let Some(derived) = chain.derive(height, false).await? else {
            report.unchecked("refused contracts", 1);
            continue;
        };
        let mut abouts = vec![About::Collection(subject(account, &final_owners(&derived.block.nfts)))];
        if chain.vm == Vm::Move {
            let address = account.as_bytes().to_vec();
            abouts.push(About::Object(Subject { address, ..Subject::default() }));
        }
        let replies: Option<Vec<Reply>> = chain.ask(height, &abouts).await?.into_iter().collect();
        let Some(replies) = replies else {
            report.unchecked("refused contracts", 1);
            continue;
        };
        report.checked("refused contracts", 1);
        if replies.iter().any(|reply| matches!(reply, Reply::Collection { .. } | Reply::Token { .. })) {
            let (key, stored) = (Owner(account).to_bytes(), height.to_be_bytes());
            let row = (Refused::SPEC, key.as_slice(), Some(&stored[..]));
            report.row("refused and yet a collection", row, "nothing", Remedy::Index(height));
        }
    }
    Ok(())
}
