//! Accounts under which a Cosmos transaction is listed.
//!
//! The rule is the deployed server's, case by case, and its responses are the test: accounts are found by
//! the *shape* of values, not by names of attributes. So hashes, small numbers in indexed topics and amounts in hex
//! become "accounts" too, on purpose.

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::address::{Account, AccountSet};
use crate::comet::Event;
use crate::serde_lenient::{JsonText, list};
use crate::vm::Vm;

/// Maximum digits of an address in hex.
const MAX_DIGITS: usize = 64;
/// Leading zero digits of a topic that holds a 20-byte address.
const TOPIC_PREFIX: &str = "0x000000000000000000000000";
/// Characters after `<prefix>1` in the bech32 of 20 and of 32 bytes, checksum included.
const BECH32_CHARS: [usize; 2] = [38, 58];

/// Owners of Move's fungible stores, by store: the result of [`primary_stores`], for this block and, if the caller
/// keeps them, for earlier ones. Empty on other chains.
pub type StoreOwners = FxHashMap<Account, Account>;

/// Adds every account under which the transaction is listed: those of its events in order, then the signers.
///
/// `prefix` is that of account addresses. Hex is parsed only if the `vm` writes addresses in hex. Only events of the
/// transaction itself may be passed, never those of the block.
pub fn accounts(
    events: &[Event<'_>],
    prefix: &str,
    vm: Vm,
    owners: &StoreOwners,
    signers: &[Account],
    out: &mut AccountSet,
) {
    for event in events {
        for (at, attribute) in event.attributes.iter().enumerate() {
            let value = attribute.value.as_ref();
            match (event.kind.as_ref(), attribute.key.as_ref()) {
                ("move", "data") if vm.writes_hex() => {
                    add_literals(value, out);
                    if at > 0 && is_asset_tag(&event.attributes[at - 1]) {
                        out.extend(store_of(value).and_then(|store| owners.get(&store).copied()));
                    }
                }
                ("evm", "log") if vm.writes_hex() => add_log(value, prefix, out),
                ("call", "ret") => {}
                _ => add_parts(value, prefix, vm, out),
            }
        }
    }
    out.extend(signers.iter().copied());
}

/// The fungible stores that these events create, each with its owner: `(store, owner)`.
///
/// To be called with all events of a block, those of the block itself included, before [`accounts`].
pub fn primary_stores<'e>(
    events: impl IntoIterator<Item = &'e Event<'e>>,
) -> impl Iterator<Item = (Account, Account)> {
    events.into_iter().filter(|event| event.kind == "move").filter_map(|event| {
        let tag = event.value("type_tag")?;
        if tag != "0x1::primary_fungible_store::PrimaryStoreCreatedEvent" {
            return None;
        }
        let data: StoreData<'_> = serde_json::from_str(event.value("data")?).ok()?;
        Some((Account::from_hex_literal(&data.store_addr)?, Account::from_hex_literal(&data.owner_addr)?))
    })
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct StoreData<'a> {
    store_addr: JsonText<'a>,
    owner_addr: JsonText<'a>,
}

/// An EVM log as in an `evm` event.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Log<'a> {
    address: JsonText<'a>,
    #[serde(deserialize_with = "list")]
    topics: Vec<JsonText<'a>>,
}

/// Case A: every `0x` followed by digits, anywhere; of a longer run the first 64 digits.
fn add_literals(value: &str, out: &mut AccountSet) {
    let mut rest = value;
    let marker = Finder::new("0x");
    while let Some(at) = marker.find(rest.as_bytes()) {
        let digits = rest[at + 2..].bytes().take(MAX_DIGITS).take_while(u8::is_ascii_hexdigit).count();
        let end = at + 2 + digits;
        if digits > 0 {
            out.extend(Account::from_hex_literal(&rest[at..end]));
        }
        rest = &rest[end..];
    }
}

/// Case B: the contract that logged, and each topic after the first that can be an address. A value that is not a log
/// adds no account.
fn add_log(value: &str, prefix: &str, out: &mut AccountSet) {
    // A failure is ignored, because a contract may choose the value of an event that the module did not write.
    let Ok(log) = serde_json::from_str::<Log<'_>>(value) else { return };
    out.extend(Account::parse(&log.address, prefix));
    out.extend(log.topics.iter().skip(1).filter_map(|topic| topic_account(topic)));
}

/// True if a log's topic counts as an address: it begins with 24 zeros. By this rule small numbers count as well.
pub(crate) fn is_address_topic(topic: &str) -> bool {
    topic.starts_with(TOPIC_PREFIX)
}

/// The account in a log's topic.
pub(crate) fn topic_account(topic: &str) -> Option<Account> {
    is_address_topic(topic).then(|| Account::from_hex_literal(topic)).flatten()
}

/// Case D: the parts of a comma list that are an address as a whole.
fn add_parts(value: &str, prefix: &str, vm: Vm, out: &mut AccountSet) {
    for part in value.split(',') {
        if let Some(digits) = part.strip_prefix("0x") {
            if vm.writes_hex() && (1..=MAX_DIGITS).contains(&digits.len()) {
                out.extend(Account::from_hex_literal(part));
            }
        } else if let Some(rest) = part.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('1'))
            && BECH32_CHARS.contains(&rest.len())
        {
            out.extend(Account::from_bech32(part, prefix));
        }
    }
}

fn is_asset_tag(attribute: &crate::comet::Attribute<'_>) -> bool {
    attribute.key == "type_tag" && attribute.value.starts_with("0x1::fungible_asset")
}

fn store_of(value: &str) -> Option<Account> {
    let data: StoreData<'_> = serde_json::from_str(value).ok()?;
    Account::from_hex_literal(&data.store_addr)
}
