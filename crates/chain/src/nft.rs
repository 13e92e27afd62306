//! NFT events of a block, and answers of metadata queries.
//!
//! # Invariants
//!
//! * Events come in strict chain order, block events included, so that replaying them one by one ends in the state of
//!   the chain. Effects on other tokens need the index and are not part of an event.
//! * Event types and keys must be exactly those of the chain: the events of a failed IBC callback remain under renamed
//!   types.
//! * Malformed events are skipped, because contracts choose most of these values.

mod evm;
mod ibc;
pub mod move_vm;
mod name;
pub mod wasm;

pub use evm::{CONSECUTIVE_OF_BLOCK, CONSECUTIVE_OF_LOG};
pub use name::normalized_name;

use alloy::primitives::U256;

use crate::address::Account;
use crate::comet::order::in_order;
use crate::comet::{Event, ResultsResponse};
use crate::vm::Vm;

/// A change of an NFT or a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NftEvent {
    /// Move: a collection object was created.
    Create {
        /// The collection's object.
        collection: Account,
        /// Its creator.
        creator: Account,
        /// Its name, without NULs.
        name: String,
    },
    /// Wasm: a contract reported its minter, so it may be a cw721. Most contracts repeat it at every mint.
    Instantiate {
        /// The contract.
        collection: Account,
    },
    /// A token was minted.
    Mint {
        /// Its contract or collection object.
        collection: Account,
        /// Its id: decimal on EVM. `None` if the event does not contain it: an older Move standard library.
        token_id: Option<String>,
        /// Move: the token's own object.
        object: Option<Account>,
        /// Its first owner. `None` if the events do not contain it: a Move object from before this transaction.
        owner: Option<Account>,
        /// Its URI. `None` if the event does not contain it; the chain can be queried for it.
        uri: Option<String>,
    },
    /// A token, or on Move any other object, has a new owner.
    Transfer {
        /// The token.
        token: TokenRef,
        /// Its new owner.
        to: Account,
    },
    /// A token was burned.
    Burn {
        /// The token.
        token: TokenRef,
    },
    /// Move: a token has a new URI.
    SetUri {
        /// The token's object.
        object: Account,
        /// The URI, without NULs.
        uri: String,
    },
    /// The metadata of tokens or of a collection may have changed: the chain can be queried for it.
    Metadata {
        /// The contract.
        collection: Account,
        /// Its tokens.
        tokens: Updated,
    },
    /// EVM: tokens of a consecutive transfer (ERC-2309) beyond the bounds. A token among them is found when it is
    /// transferred by itself.
    Unread {
        /// The contract.
        collection: Account,
        /// The first of these tokens.
        first: U256,
        /// The last one.
        last: U256,
    },
    /// Tokens arrived by IBC: collections with the name `local` are vouchers of one that is called `origin` on its own
    /// chain.
    ClassName {
        /// The name on this chain: the voucher's class.
        local: String,
        /// The name on the chain of origin.
        origin: String,
    },
}

/// The identification of a token in an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenRef {
    /// EVM and wasm.
    Id {
        /// The contract.
        collection: Account,
        /// The token's id in it.
        token_id: String,
    },
    /// Move: the token's own object.
    Object(Account),
}

/// Tokens whose metadata may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Updated {
    /// One token.
    Token(String),
    /// EVM: the tokens from this id to that one.
    Range(U256, U256),
    /// All tokens of the contract, and its name: its code was replaced.
    All,
    /// No token: the contract's own name.
    Name,
}

/// The NFT events of a block, in chain order, each with the index of its transaction; `None` for events of the block
/// itself. `prefix` is that of account addresses. Nothing on a chain without a virtual machine.
pub fn events(vm: Vm, prefix: &str, results: &ResultsResponse<'_>) -> Vec<(Option<usize>, NftEvent)> {
    let mut found = Vec::new();
    if vm == Vm::None {
        return found;
    }
    let mut logs = evm::Reader::new();
    let mut moves = move_vm::Joins::default();
    for (tx, event) in in_order(results) {
        match (vm, event.kind.as_ref()) {
            (Vm::Evm, "evm") => found.extend(logs.events(event).into_iter().map(|event| (tx, event))),
            (Vm::Move, "move") => moves.read(tx, event, &mut found),
            (Vm::Wasm, "wasm" | "migrate") => {
                found.extend(wasm::events(event, prefix).into_iter().map(|event| (tx, event)));
            }
            (_, "recv_packet") => {
                let result = tx.and_then(|tx| results.txs_results.get(tx));
                found.extend(
                    result.and_then(|result| ibc::class_name(vm, event, result)).map(|event| (tx, event)),
                );
            }
            _ => {}
        }
    }
    found
}

/// The events about mints, owners and burns of tokens in those of a transaction, or of a block, in their order, each with the
/// place of the last one that it is read from. On a Move chain or a wasm chain; the logs of an EVM name both sides themselves.
pub fn moves(vm: Vm, prefix: &str, events: &[Event<'_>]) -> Vec<(usize, NftEvent)> {
    let (mut found, mut places) = (Vec::new(), Vec::new());
    if !matches!(vm, Vm::Move | Vm::Wasm) {
        return Vec::new();
    }
    let mut joins = move_vm::Joins::default();
    for (at, event) in events.iter().enumerate() {
        match (vm, event.kind.as_ref()) {
            (Vm::Move, "move") => joins.read(None, event, &mut found),
            (Vm::Wasm, "wasm") => {
                found.extend(wasm::events(event, prefix).into_iter().map(|event| (None, event)));
            }
            _ => {}
        }
        places.resize(found.len(), at);
    }
    let is_move = |event: &NftEvent| {
        matches!(event, NftEvent::Mint { .. } | NftEvent::Transfer { .. } | NftEvent::Burn { .. })
    };
    places
        .into_iter()
        .zip(found)
        .map(|(at, (_, event))| (at, event))
        .filter(|(_, event)| is_move(event))
        .collect()
}

/// The events of a transaction about mints, owners and burns of the tokens of `collection`, in chain order. Nothing on a
/// Move chain, where the events name objects.
pub fn events_of_collection(
    vm: Vm,
    prefix: &str,
    events: &[Event<'_>],
    collection: Account,
) -> Vec<NftEvent> {
    let mut found = Vec::new();
    let mut logs = evm::Reader::new();
    for event in events {
        match (vm, event.kind.as_ref()) {
            (Vm::Evm, "evm") => found.extend(logs.events(event)),
            (Vm::Wasm, "wasm") => found.extend(wasm::events(event, prefix)),
            _ => {}
        }
    }
    found.retain(|event| match event {
        NftEvent::Mint { collection: of, .. }
        | NftEvent::Transfer { token: TokenRef::Id { collection: of, .. }, .. }
        | NftEvent::Burn { token: TokenRef::Id { collection: of, .. } } => *of == collection,
        _ => false,
    });
    found
}
