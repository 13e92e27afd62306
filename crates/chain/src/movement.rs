//! Movements: which account gave how much of which token to which other one, in the events of a block.
//!
//! | vm | source |
//! |---|---|
//! | evm | `Transfer`, `TransferSingle` and `TransferBatch` logs of contracts; every bank denom is a contract there |
//! | move | withdrawals, deposits, mints and burns of `0x1::fungible_asset`; every bank denom is an asset there |
//! | wasm, none | `coin_spent` and `coin_received` of the bank; actions of cw20 contracts |
//!
//! # Invariants
//!
//! * A movement takes its amount from one account and gives it to the other; nothing else changes a balance. So a balance is
//!   what it was before, less what was given, plus what was received.
//! * One source counts for each machine, because others repeat it, or can be false: a contract may answer the bank of a
//!   minievm without moving anything.
//! * A token is identified by what emitted its events, so a contract can invent movements of its own token only. Event types
//!   and keys must match exactly: a failed callback leaves its events under other types.
//! * Malformed events are skipped, because contracts choose their values.

mod bank;
mod cause;
mod classify;
mod cw20;
mod evm;
mod fungible_asset;
mod kind;
mod modules;
mod pairing;
mod source;
mod zero_address;

use alloy::primitives::U256;

pub(crate) use self::bank::coins as bank_coins;
pub use self::cause::Cause;
pub use self::evm::denom_of_contract;
pub use self::fungible_asset::{metadata_of_denom, primary_store};
pub use self::kind::Kind;
pub use self::modules::module_account;
pub use self::source::Source;

use crate::address::Account;
use crate::comet::Event;
use crate::nft::{self, NftEvent};
use crate::vm::Vm;

/// A token, by what emits its events.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Token {
    /// An ERC-20 contract; on a minievm every bank denom is one.
    Erc20([u8; 20]),
    /// The metadata object of a fungible asset of Move; on such a chain every bank denom is one.
    Asset([u8; 32]),
    /// A bank denom.
    Denom(String),
    /// A CW20 contract.
    Cw20([u8; 32]),
    /// An ERC-721 contract.
    Erc721([u8; 20]),
    /// An ERC-1155 contract.
    Erc1155([u8; 20]),
    /// The object of a collection of Move's NFTs.
    Collection([u8; 32]),
    /// A cw721 contract.
    Cw721([u8; 32]),
}

/// A change of balances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movement {
    /// The message of the transaction; `None` before and after its messages, and outside of transactions.
    pub message: Option<u32>,
    /// What is moved.
    pub token: Token,
    /// Which one of the contract's tokens, for NFTs and ERC-1155; decimal on EVM chains.
    pub token_id: Option<String>,
    /// The account that gave it; `None` if it did not exist before.
    pub from: Option<Account>,
    /// The account that received it; `None` if it exists no more. What is sent to the zero address of an EVM chain exists on
    /// unless its contract destroys it; the log of both is the same, and the message decides.
    pub to: Option<Account>,
    /// The amount in base units; may be 0.
    pub amount: U256,
    /// What for.
    pub kind: Kind,
    /// The packet or the bridge's message that caused it, or that it caused.
    pub cause: Option<Cause>,
}

/// What is found in events.
#[derive(Debug, Default)]
pub struct Found {
    /// The movements, in order.
    pub movements: Vec<Movement>,
    /// Bank denoms of contracts and of Move's assets.
    pub denoms: Vec<(Token, String)>,
    /// What happened to Move's NFTs and to those of cw721, each with the message that it is of: whose they were before is in
    /// earlier events, and only an index of them knows it.
    pub nfts: Vec<(Option<u32>, NftEvent)>,
    /// CW20 contracts that are new here, if the movements have all of their first balances.
    pub whole: Vec<Token>,
}

/// Finds movements in the events of a chain.
pub struct Reader<'a> {
    vm: Vm,
    prefix: &'a str,
    logs: evm::Logs,
}

impl<'a> Reader<'a> {
    /// For a chain with this prefix of account addresses.
    pub fn new(vm: Vm, prefix: &'a str) -> Self {
        Self { vm, prefix, logs: evm::Logs::new() }
    }

    /// False if the JSON of a transaction has no movement: a search is faster than parsing.
    pub fn may_move(&self, record: &[u8]) -> bool {
        self.vm != Vm::Evm || self.logs.may_move(record)
    }

    /// True if [`Self::read`] needs the messages of the transaction with this JSON.
    pub fn needs_messages(&self, record: &[u8]) -> bool {
        match self.vm {
            Vm::Wasm => true,
            Vm::Evm => zero_address::is_in(record),
            Vm::Move | Vm::None => false,
        }
    }

    /// The movements in all events of a transaction, or of a block before or after its transactions, in order, and the names
    /// of their tokens that the events tell.
    pub fn read(&self, source: Source<'_>, events: &[Event<'_>]) -> Found {
        let (mut placed, mut whole) = (Vec::new(), Vec::new());
        match self.vm {
            Vm::Evm => {
                self.logs.read(events, &mut placed);
                zero_address::name_receiver(self, source, events, &mut placed);
            }
            Vm::Move => fungible_asset::read(events, &mut placed),
            Vm::Wasm => {
                bank::read(self.prefix, events, &mut placed);
                whole = cw20::read(self.prefix, source, events, &mut placed);
            }
            Vm::None => bank::read(self.prefix, events, &mut placed),
        }
        // Stable: movements of one event stay in its order.
        placed.sort_by_key(|placed| placed.at);
        classify::classify(self, source, events, &mut placed);
        let of_message = |(at, event)| (events.get(at).and_then(|event| Group::of(event).message), event);
        let nfts = nft::moves(self.vm, self.prefix, events).into_iter().map(of_message).collect();
        let denoms = match self.vm {
            Vm::Evm => evm::denoms(self, events, &placed),
            Vm::Move => fungible_asset::denoms(events),
            Vm::Wasm | Vm::None => Vec::new(),
        };
        Found { movements: placed.into_iter().map(|placed| placed.movement).collect(), denoms, nfts, whole }
    }

    /// The account with this address, in any spelling. On a minievm an account of 32 bytes has the balances of its last 20.
    pub fn account(&self, text: &str) -> Option<Account> {
        Account::parse(text, self.prefix).map(|account| holder(self.vm, account))
    }
}

/// The account that has the balances of `account`.
pub fn holder(vm: Vm, account: Account) -> Account {
    let short = account.as_bytes().last_chunk::<20>().filter(|_| vm == Vm::Evm);
    short.map_or(account, |short| (*short).into())
}

/// A movement with its place among the events.
struct Placed {
    /// The event that completes it.
    at: usize,
    group: Group,
    movement: Movement,
}

impl Placed {
    fn new(at: usize, group: Group, token: Token, [from, to]: [Option<Account>; 2], amount: U256) -> Self {
        let (message, kind) = (group.message, Kind::Transfer);
        Self {
            at,
            group,
            movement: Movement { message, token, token_id: None, from, to, amount, kind, cause: None },
        }
    }
}

/// The message that an event belongs to, and the message within that one if it executes others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub(crate) message: Option<u32>,
    pub(crate) inner: Option<u32>,
}

impl Group {
    /// Only the last attributes count: the chain adds them behind those that contracts choose.
    pub(crate) fn of(event: &Event<'_>) -> Self {
        let mut last = event.attributes.iter().rev().peekable();
        let mut number = |key: &str| last.next_if(|attribute| attribute.key == key)?.value.parse().ok();
        let message = number("msg_index");
        Self { message, inner: message.and_then(|_| number("authz_msg_index")) }
    }
}

/// Decimal digits.
fn amount(text: &str) -> Option<U256> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| U256::from_str_radix(text, 10).ok()).flatten()
}
