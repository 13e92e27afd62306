//! Movements in the logs of contracts.

use alloy::primitives::{Address, B256, U256};
use alloy::sol_types::SolEvent as _;
use memchr::memmem::Finder;

use super::bank::coins;
use super::{Group, Movement, Placed, Reader, Token};
use crate::address::Account;
use crate::comet::Event;
use crate::evm::Log;
use crate::evm::log::{bytes, logs};

mod signatures {
    alloy::sol! {
        event Transfer(address from, address to, uint256 amount);
        event TransferSingle(address operator, address from, address to, uint256 id, uint256 amount);
        event TransferBatch(address operator, address from, address to, uint256[] ids, uint256[] amounts);
    }
}

/// Tokens of one batch transfer that are read: a longer one is skipped.
const MAX_BATCH: usize = 1024;

/// Words of 32 bytes.
const WORD: usize = 32;

/// Finds movements in logs. Nearly every log passes through, so texts are searched before they are parsed.
pub(super) struct Logs([Finder<'static>; 3]);

impl Logs {
    pub(super) fn new() -> Self {
        use signatures::{Transfer, TransferBatch, TransferSingle};
        let kinds = [Transfer::SIGNATURE_HASH, TransferSingle::SIGNATURE_HASH, TransferBatch::SIGNATURE_HASH];
        Self(kinds.map(|kind| Finder::new(hex::encode(kind).as_bytes()).into_owned()))
    }

    /// True if there is a log of a movement or a new denom.
    pub(super) fn may_move(&self, record: &[u8]) -> bool {
        self.has_topic(record) || memchr::memmem::find(record, CREATED.as_bytes()).is_some()
    }

    fn has_topic(&self, text: &[u8]) -> bool {
        self.0.iter().any(|topic| topic.find(text).is_some())
    }

    /// Adds the movements in the logs of `events`.
    pub(super) fn read(&self, events: &[Event<'_>], out: &mut Vec<Placed>) {
        for (at, event) in events.iter().enumerate().filter(|(_, event)| event.kind == "evm") {
            let group = Group::of(event);
            for text in logs(event).filter(|text| self.has_topic(text.as_bytes())) {
                let log = serde_json::from_str::<Log<'_>>(text).ok();
                log.and_then(|log| read_log(&log, at, group, out));
            }
        }
    }
}

/// The event by which a contract is assigned to a bank denom.
const CREATED: &str = "erc20_created";

/// The denoms of contracts: those that the events assign, and those of transfers by the bank that one contract alone has
/// logged. A chain assigns the denoms of its genesis without events.
pub(super) fn denoms(reader: &Reader<'_>, events: &[Event<'_>], placed: &[Placed]) -> Vec<(Token, String)> {
    let mut found = Vec::new();
    for event in events {
        let value = |key: &str| event.value(key).map(|text| &**text);
        match event.kind.as_ref() {
            CREATED => {
                let contract = value("contract").and_then(bytes::<20>).map(Token::Erc20);
                let denom = value("denom").filter(|denom| !denom.is_empty());
                found.extend(contract.zip(denom.map(str::to_owned)));
            }
            "transfer" => {
                let sides =
                    ["sender", "recipient"].map(|key| value(key).and_then(|text| reader.account(text)));
                for (denom, amount) in coins(value("amount").unwrap_or_default()) {
                    let is_same = |placed: &&Placed| {
                        let Movement { from, to, amount: moved, .. } = &placed.movement;
                        placed.group == Group::of(event) && [*from, *to] == sides && *moved == amount
                    };
                    let mut tokens = placed.iter().filter(is_same).map(|placed| &placed.movement.token);
                    if let Some(token) = tokens.next().filter(|_| !denom.starts_with("evm/"))
                        && tokens.all(|other| other == token)
                    {
                        found.push((token.clone(), denom.to_owned()));
                    }
                }
            }
            _ => {}
        }
    }
    found.dedup();
    found
}

/// The denom of a contract that none is assigned to.
pub fn denom_of_contract(contract: &[u8; 20]) -> String {
    let checksummed = Address::from(contract).to_checksum(None);
    format!("evm/{}", checksummed.trim_start_matches("0x"))
}

fn read_log(log: &Log<'_>, at: usize, group: Group, out: &mut Vec<Placed>) -> Option<()> {
    let contract = bytes::<20>(&log.address)?;
    let topics: Vec<[u8; WORD]> = log.topics.iter().map(|topic| bytes(topic)).collect::<Option<_>>()?;
    let data = hex::decode(log.data.strip_prefix("0x").unwrap_or(&log.data)).ok()?;
    let (kind, topics) = topics.split_first()?;
    let mut push = |token: Token, id: Option<U256>, [from, to]: [&[u8; WORD]; 2], amount: U256| {
        let mut placed = Placed::new(at, group, token, [account(from)?, account(to)?], amount);
        placed.movement.token_id = id.map(|id| id.to_string());
        out.push(placed);
        Some(())
    };
    let is = |signature: B256| *kind == signature.0;
    match (topics, &data[..]) {
        ([from, to], amount) if is(signatures::Transfer::SIGNATURE_HASH) && amount.len() == WORD => {
            push(Token::Erc20(contract), None, [from, to], U256::from_be_slice(amount))
        }
        ([from, to, id], []) if is(signatures::Transfer::SIGNATURE_HASH) => {
            push(Token::Erc721(contract), Some(U256::from_be_bytes(*id)), [from, to], U256::ONE)
        }
        ([_, from, to], values)
            if is(signatures::TransferSingle::SIGNATURE_HASH) && values.len() == 2 * WORD =>
        {
            let (id, amount) = values.split_at(WORD);
            let id = Some(U256::from_be_slice(id));
            push(Token::Erc1155(contract), id, [from, to], U256::from_be_slice(amount))
        }
        ([_, from, to], values) if is(signatures::TransferBatch::SIGNATURE_HASH) => {
            let (ids, amounts) = (array(values, 0)?, array(values, 1)?);
            if ids.len() != amounts.len() {
                return None;
            }
            ids.into_iter()
                .zip(amounts)
                .try_for_each(|(id, amount)| push(Token::Erc1155(contract), Some(id), [from, to], amount))
        }
        _ => None,
    }
}

/// The account in a topic, `None` for the zero address: what it gives is made, and what it receives is destroyed.
#[expect(clippy::option_option, reason = "a topic that is no address is not the zero address")]
fn account(topic: &[u8; WORD]) -> Option<Option<Account>> {
    let (zeros, address) = topic.split_first_chunk::<12>()?;
    let address: [u8; 20] = address.try_into().ok()?;
    (*zeros == [0; 12]).then(|| (address != [0; 20]).then(|| address.into()))
}

/// The dynamic array whose offset is the word `place`.
fn array(data: &[u8], place: usize) -> Option<Vec<U256>> {
    let word = |at: usize| Some(U256::from_be_slice(data.get(at..at.checked_add(WORD)?)?));
    let number = |at: usize| usize::try_from(word(at)?).ok();
    let start = number(place * WORD)?;
    let len = number(start).filter(|len| *len <= MAX_BATCH)?;
    (1..=len).map(|item| word(start.checked_add(item * WORD)?)).collect()
}
