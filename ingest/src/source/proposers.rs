//! Proposers of blocks: the validator behind a consensus address, looked up while indexing, so that requests never
//! query the node (`indexing.md` §2).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use chain::record::Proposer;
use node::Node;
use node::retry::{self, Backoff};
use tokio::time::Instant;

/// Minimum time between two requests of the list, also while an address is missing from it.
const ASK_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Time to wait for the list the first time. Blocks wait meanwhile; a block whose proposer is not found is stored
/// without a name.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time to wait after a list that did not arrive, so that an index with a dead REST server stays at the head.
const SHORT_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The chain's validators by consensus address. A rollup has a few, an L1 some hundreds.
#[derive(Debug)]
pub(crate) struct Proposers {
    prefix: String,
    known: RwLock<Known>,
    /// Held during a request to the node.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    by_address: HashMap<[u8; 20], Proposer>,
    asked: Option<Instant>,
    /// Whether the last request succeeded.
    answered: bool,
}

impl Known {
    /// Time to wait for the list, if it is to be requested.
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
