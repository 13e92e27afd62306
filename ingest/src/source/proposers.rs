//! Who proposed a block: the validator whose consensus key made its header, looked up while indexing, so that
//! answering a request never asks the node (`indexing.md` §2).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use chain::record::Proposer;
use node::Node;
use node::retry::{self, Backoff};
use tokio::time::Instant;

/// An address that no validator has is asked for again after this long, not for each of its blocks.
const ASK_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// The list of validators is waited for this long the first time. Blocks wait meanwhile, and the block of a proposer that
/// is not found then is stored without a name.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// After a list that did not come, the next one is waited for this long, so that an index beside a dead REST server stays
/// at the head.
const SHORT_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

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
    /// Whether the last list that was asked for came.
    answered: bool,
}

impl Known {
    /// How long the list may be waited for, if it is to be asked for.
    fn wait_limit(&self, now: Instant) -> Option<Duration> {
        match self.asked {
            Some(asked) if now - asked < ASK_AGAIN_AFTER => None,
            Some(_) if !self.answered => Some(SHORT_ANSWER_TIMEOUT),
            _ => Some(ANSWER_TIMEOUT),
        }
    }
}

impl Proposers {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, known: RwLock::default(), asking: tokio::sync::Mutex::default() }
    }

    /// The validator with the consensus address `address`; if the node knows none, one without a name whose operator
    /// is the consensus address itself.
    pub(crate) async fn of(&self, node: &Node, address: &[u8; 20]) -> Proposer {
        if let Some(proposer) = self.known(address) {
            return proposer;
        }
        let _one_at_a_time = self.asking.lock().await;
        if let Some(proposer) = self.known(address) {
            return proposer;
        }
        let wait_limit = self.known.read().unwrap_or_else(PoisonError::into_inner).wait_limit(Instant::now());
        if let Some(wait_limit) = wait_limit {
            self.ask(node, wait_limit).await;
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

    async fn ask(&self, node: &Node, wait_limit: Duration) {
        let Some(rest) = &node.rest else { return };
        let asking = retry::until(Backoff::default(), "validators", || rest.validators());
        let validators = match tokio::time::timeout(wait_limit, asking).await {
            Ok(Ok(validators)) => Some(validators),
            Ok(Err(error)) => {
                tracing::warn!(%error, "REST lists no validators: blocks are stored without the name of their proposer");
                None
            }
            Err(_) => {
                tracing::warn!(
                    waited_s = wait_limit.as_secs(),
                    "REST does not answer: blocks are stored without the name of their proposer"
                );
                None
            }
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        (known.asked, known.answered) = (Some(Instant::now()), validators.is_some());
        known.by_address.extend(validators.into_iter().flatten().map(|validator| {
            let proposer = Proposer {
                moniker: validator.moniker,
                identity: String::new(),
                operator_address: validator.operator_address,
            };
            (validator.consensus_address, proposer)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_asked_for_once_a_minute_and_waited_for_less_after_it_did_not_come() {
        let now = Instant::now();
        let known = |asked, answered| Known { asked, answered, ..Known::default() };
        assert_eq!(known(None, false).wait_limit(now), Some(ANSWER_TIMEOUT));
        for (answered, wait_limit) in [(true, ANSWER_TIMEOUT), (false, SHORT_ANSWER_TIMEOUT)] {
            let known = known(Some(now), answered);
            assert_eq!(known.wait_limit(now + ASK_AGAIN_AFTER / 2), None);
            assert_eq!(known.wait_limit(now + ASK_AGAIN_AFTER), Some(wait_limit));
        }
    }
}
