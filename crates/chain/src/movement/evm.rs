//! Movements in the logs of contracts.

use alloy::primitives::{Address, U256};
use memchr::memmem::Finder;

use super::bank::coins;
use super::{Group, Movement, Placed, Reader, Token};
use crate::comet::Event;
use crate::evm::Log;
use crate::evm::ethereum_events;
use crate::evm::log::{bytes, logs};
use crate::evm::transfer::{self, Standard, Transfer};

/// Tokens of one batch transfer that are read: a longer one is skipped.
const MAX_BATCH: usize = 1024;

/// Finds movements in logs. Nearly every log passes through, so texts are searched before they are parsed.
pub(super) struct Logs(Vec<Finder<'static>>);

impl Logs {
    pub(super) fn new() -> Self {
        // The event of ERC-721 is that of ERC-20.
        let events = [Standard::Erc20, Standard::Erc1155].map(Standard::events).concat();
        Self(events.iter().map(|event| Finder::new(hex::encode(event).as_bytes()).into_owned()).collect())
    }

    /// True if there is a log of a movement or a new denom.
    pub(super) fn may_move(&self, record: &[u8]) -> bool {
        self.has_topic(record)
            || ethereum_events::is_in(record)
            || memchr::memmem::find(record, CREATED.as_bytes()).is_some()
    }

    fn has_topic(&self, text: &[u8]) -> bool {
        self.0.iter().any(|topic| topic.find(text).is_some())
    }

    /// Adds the movements in the logs of `events`.
    pub(super) fn read(&self, events: &[Event<'_>], out: &mut Vec<Placed>) {
        for (at, event) in events.iter().enumerate().filter(|(_, event)| event.kind == "evm") {
            let group = Group::of(event);
            for text in logs(event).filter(|text| self.has_topic(text.as_bytes())) {
                if let Ok(log) = serde_json::from_str::<Log<'_>>(text) {
                    read_log(&log, at, group, out);
                }
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

fn read_log(log: &Log<'_>, at: usize, group: Group, out: &mut Vec<Placed>) {
    let (Some(contract), Some((standard, transfers))) = (log.address_bytes(), transfer::read(log)) else {
        return;
    };
    if transfers.len() > MAX_BATCH {
        return;
    }
    for Transfer { from, to, id, amount } in transfers {
        let token = match standard {
            Standard::Erc20 => Token::Erc20(contract),
            Standard::Erc721 => Token::Erc721(contract),
            Standard::Erc1155 => Token::Erc1155(contract),
        };
        // What the zero address gives is made, and what it receives is destroyed.
        let sides = [from, to].map(|side| (side != [0; 20]).then(|| side.into()));
        let mut placed = Placed::new(at, group, token, sides, amount.unwrap_or(U256::ONE));
        placed.movement.token_id = id.map(|id| id.to_string());
        out.push(placed);
    }
}
