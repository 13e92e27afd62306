//! Who proposed a block: the validator whose consensus key made its header, looked up while indexing, so that
//! answering a request never asks the node (`indexing.md` §2).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use chain::record::Proposer;
use node::retry::{self, Backoff};

use super::Tools;

/// An address that no validator has is asked for again after this long, not for each of its blocks.
const ASK_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// The chain's validators by consensus address. A rollup has a few, an L1 some hundreds.
#[derive(Debug)]
pub(crate) struct Proposers {
    prefix: String,
    known: RwLock<Known>,
    /// Held by the one who asks the node.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    by_address: HashMap<[u8; 20], Proposer>,
    asked: Option<Instant>,
}

impl Proposers {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, known: RwLock::default(), asking: tokio::sync::Mutex::default() }
    }

    /// The validator with the consensus address `address`; if the node knows none, one without a name whose operator
    /// is the consensus address itself.
    pub(crate) async fn of(&self, tools: &Tools, address: &[u8; 20]) -> Proposer {
        if let Some(proposer) = self.known(address) {
            return proposer;
        }
        let _one_at_a_time = self.asking.lock().await;
        if let Some(proposer) = self.known(address) {
            return proposer;
        }
        if self.may_ask() {
            self.ask(tools).await;
        }
        self.known(address).unwrap_or_else(|| Proposer {
            moniker: String::new(),
            identity: String::new(),
            operator_address: chain::address::valoper(&self.prefix, address),
        })
    }

    fn known(&self, address: &[u8; 20]) -> Option<Proposer> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).by_address.get(address).cloned()
    }

    fn may_ask(&self) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN_AFTER)
    }

    async fn ask(&self, tools: &Tools) {
        let Some(rest) = &tools.node.rest else { return };
        let asked = retry::until(Backoff::default(), "validators", || rest.validators()).await;
        let validators = asked.unwrap_or_else(|error| {
            tracing::warn!(%error, "the node tells no validators: blocks are stored without a proposer's name");
            Vec::new()
        });
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.asked = Some(Instant::now());
        known.by_address.extend(validators.into_iter().map(|validator| {
            let proposer = Proposer {
                moniker: validator.moniker,
                identity: String::new(),
                operator_address: validator.operator_address,
            };
            (validator.consensus_address, proposer)
        }));
    }
}
