//! NFT events of a block, and answers of metadata queries.
//!
//! # Invariants
//!
//! Events come in strict chain order, block events included, so that replaying them one by one ends where the
//! chain is (indexing §8, T14); they say what happened and not what follows, which needs the index. Event types and
//! keys must be exactly those of the chain: work that a failed IBC callback undid is still printed, renamed
//! (indexing §17). What is malformed is passed over, because contracts choose most of these values.

mod evm;
mod ibc;
pub mod move_vm;
mod name;
pub mod wasm;

pub use name::normalized_name;

use crate::address::Account;
use crate::comet::ResultsAnswer;
use crate::evm_log::TransferLogs;
use crate::order::in_order;
use crate::vm::Vm;

/// Something that a block's events say about NFTs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NftEvent {
    /// Move: a collection object was made.
    Create {
        /// The collection's object.
        collection: Account,
        /// Its creator.
        creator: Account,
        /// Its name, without NULs.
        name: String,
    },
    /// Wasm: a contract named its minter, so it may be a cw721. Said again at every mint of most contracts.
    Instantiate {
        /// The contract.
        collection: Account,
    },
    /// A token came to be.
    Mint {
        /// Its contract or collection object.
        collection: Account,
        /// Its id: decimal on EVM. `None` where the event does not tell: an older Move standard library.
        token_id: Option<String>,
        /// Move: the token's own object.
        object: Option<Account>,
        /// Its first owner. `None` where the event does not tell: a Move object from before this transaction.
        owner: Option<Account>,
        /// Its URI. `None` where the event does not contain it; the chain can be queried for it.
        uri: Option<String>,
    },
    /// A token, or on Move any other object, has a new owner.
    Transfer {
        /// The token.
        token: TokenRef,
        /// Its new owner.
        to: Account,
    },
    /// A token is gone.
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
    /// Tokens came by IBC: collections with the name `local` stand for one that is called `origin` where it is from.
    ClassName {
        /// The name here: the voucher's class.
        local: String,
        /// The name there.
        origin: String,
    },
}

/// How an event names a token.
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

/// What the events of a block say about NFTs, in chain order, each with the index of its transaction; `None` for what
/// the block itself did. `prefix` is that of account addresses. Nothing on a chain without a virtual machine.
pub fn events(vm: Vm, prefix: &str, results: &ResultsAnswer<'_>) -> Vec<(Option<usize>, NftEvent)> {
    let mut found = Vec::new();
    if vm == Vm::None {
        return found;
    }
    let logs = TransferLogs::new();
    let mut moves = move_vm::Joins::default();
    for (tx, event) in in_order(results) {
        match (vm, event.kind.as_ref()) {
            (Vm::Evm, "evm") => found.extend(evm::events(&logs, event).map(|said| (tx, said))),
            (Vm::Move, "move") => moves.read(tx, event, &mut found),
            (Vm::Wasm, "wasm") => found.extend(wasm::events(event, prefix).map(|said| (tx, said))),
            (_, "recv_packet") => {
                let result = tx.and_then(|tx| results.txs_results.get(tx));
                found.extend(
                    result.and_then(|result| ibc::class_name(vm, event, result)).map(|said| (tx, said)),
                );
            }
            _ => {}
        }
    }
    found
}
