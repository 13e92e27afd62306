//! The EVM of a chain whose EIP-155 id follows from no other name of it: only its node reports the id.

use std::convert::Infallible;
use std::time::Duration;

use chain::evm::flavour::Flavour;
use node::retry::Backoff;
use schema::meta::{self, EvmChain};
use store::{Durability, Snapshot, Store};

use crate::Error;
use crate::error::causes;
use crate::ingest::Ingest;

/// Pauses between questions for the id.
const PAUSES: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter: true };

impl Ingest {
    /// Asks the node for the EIP-155 id until it replies, and stores the id.
    pub(crate) async fn learn_evm_chain(&self) -> Infallible {
        let flavour = self.workers.rules().flavour;
        if let Some(evm) = self.node.evm.as_ref().filter(|_| flavour.has_ethereum_messages()) {
            let mut attempts = 0;
            loop {
                let noted = match evm.chain_id().await {
                    Ok(chain_id) => note_id(chain_id, &*self.store).map_err(|error| causes(&error)),
                    Err(error) => Err(causes(&error)),
                };
                let Err(error) = noted else { break };
                tracing::debug!(error, "the EIP-155 id of the chain is not known yet");
                tokio::time::sleep(PAUSES.delay(attempts)).await;
                attempts = attempts.saturating_add(1);
            }
        }
        std::future::pending().await
    }
}

/// The EVM of the chain, if it is stored.
pub(crate) fn stored(snapshot: &dyn Snapshot) -> Result<Option<Flavour>, Error> {
    Ok(meta::read::<EvmChain>(snapshot)?.and_then(|chain| chain.flavour.parse().ok()))
}

/// Stores which EVM the chain has.
pub(crate) fn note_flavour(flavour: Flavour, store: &dyn Store) -> Result<(), Error> {
    let known = meta::read::<EvmChain>(&*store.snapshot()?)?.unwrap_or_default();
    note(EvmChain { flavour: flavour.name().to_owned(), ..known.clone() }, &known, store)
}

fn note_id(chain_id: u64, store: &dyn Store) -> Result<(), Error> {
    let known = meta::read::<EvmChain>(&*store.snapshot()?)?.unwrap_or_default();
    if known.chain_id != 0 && known.chain_id != chain_id {
        tracing::warn!(
            stored = known.chain_id,
            chain_id,
            "the node reports another EIP-155 id, which is stored"
        );
    }
    note(EvmChain { chain_id, ..known.clone() }, &known, store)
}

fn note(wanted: EvmChain, known: &EvmChain, store: &dyn Store) -> Result<(), Error> {
    if wanted == *known {
        return Ok(());
    }
    store::commit_rows::<Error>(store, Durability::Synced, |txn| {
        meta::put(txn, &wanted);
        Ok(())
    })
}
