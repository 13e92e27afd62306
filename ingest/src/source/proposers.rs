//! Proposers of blocks: the validator behind a consensus address, looked up while indexing, so that requests never
//! query the node.

use std::collections::HashMap;
use std::time::Duration;

use chain::record::Proposer;
use chain::{Account, excerpt};
use node::Node;
use node::retry::{self, Backoff};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Minimum time between two requests of the list, also while an address is missing from it.
const REQUEST_INTERVAL: Duration = Duration::from_mins(1);

/// Time to wait for the list. Blocks wait meanwhile; a block whose proposer is not found is stored without a name.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time to wait after a list that did not arrive, so that an index with a dead REST server stays at the head.
const SHORT_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum bytes of a validator's name (`MaxMonikerLength` in `x/staking/types` of the Cosmos SDK has 70).
const MAX_MONIKER: usize = 256;

/// The chain's validators by consensus address. A rollup has a few, an L1 some hundreds.
#[derive(Debug)]
pub(crate) struct Proposers {
    prefix: String,
    /// Locked during a request to the node.
    list: Mutex<ValidatorList>,
}

#[derive(Debug, Default)]
struct ValidatorList {
    by_address: HashMap<[u8; 20], Proposer>,
    requested: Option<Instant>,
    /// True if the last request succeeded.
    answered: bool,
}

impl ValidatorList {
    /// Time to wait for the list, if it is to be requested.
    fn wait_limit(&self, now: Instant) -> Option<Duration> {
        match self.requested {
            Some(requested) if now - requested < REQUEST_INTERVAL => None,
            Some(_) if !self.answered => Some(SHORT_ANSWER_TIMEOUT),
            _ => Some(ANSWER_TIMEOUT),
        }
    }
}

impl Proposers {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, list: Mutex::default() }
    }

    /// The validator with the consensus address `address`; if the node has none, one without a name whose operator is
    /// the consensus address itself.
    pub(crate) async fn of(&self, node: &Node, address: &[u8; 20]) -> Proposer {
        let mut list = self.list.lock().await;
        if !list.by_address.contains_key(address)
            && let Some(wait_limit) = list.wait_limit(Instant::now())
        {
            let validators = validators(node, wait_limit).await;
            (list.requested, list.answered) = (Some(Instant::now()), validators.is_some());
            let valid = validators.into_iter().flatten().filter(|(_, proposer)| self.is_valid(proposer));
            list.by_address.extend(valid);
        }
        list.by_address.get(address).cloned().unwrap_or_else(|| Proposer {
            moniker: String::new(),
            identity: String::new(),
            operator_address: chain::address::valoper(&self.prefix, address),
        })
    }
}

impl Proposers {
    /// Whether the chain can have such a validator: the answer is stored for good.
    fn is_valid(&self, proposer: &Proposer) -> bool {
        let prefix = format!("{}valoper", self.prefix);
        let is_valid = proposer.moniker.len() <= MAX_MONIKER
            && Account::from_bech32(&proposer.operator_address, &prefix).is_some();
        if !is_valid {
            let (operator, moniker) = (excerpt(&proposer.operator_address), excerpt(&proposer.moniker));
            tracing::warn!(operator, moniker, "a validator with an invalid name or address is left out");
        }
        is_valid
    }
}

/// The node's validators; `None` if it does not list them in time.
async fn validators(node: &Node, wait_limit: Duration) -> Option<Vec<([u8; 20], Proposer)>> {
    let rest = node.rest.as_ref()?;
    let request = retry::until(Backoff::default(), "validators", || rest.validators());
    let reason = match timeout(wait_limit, request).await {
        Ok(Ok(validators)) => {
            let proposer = |validator: node::Validator| {
                let (moniker, operator_address) = (validator.moniker, validator.operator_address);
                (validator.consensus_address, Proposer { moniker, identity: String::new(), operator_address })
            };
            return Some(validators.into_iter().map(proposer).collect());
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {wait_limit:?}"),
    };
    tracing::warn!(reason, "blocks are stored without the name of their proposer");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validator_that_the_chain_cannot_have_is_left_out() {
        let proposers = Proposers::new("init".to_owned());
        let valid = |operator: &str, moniker: &str| {
            let (operator_address, moniker) = (operator.to_owned(), moniker.to_owned());
            proposers.is_valid(&Proposer { moniker, identity: String::new(), operator_address })
        };
        let operator = chain::address::valoper("init", &[7; 20]);
        assert!(valid(&operator, "") && valid(&operator, &"a".repeat(MAX_MONIKER)));
        assert!(!valid(&operator, &"a".repeat(MAX_MONIKER + 1)));
        for other in
            [chain::address::valoper("cosmos", &[7; 20]), operator.to_uppercase() + "q", String::new()]
        {
            assert!(!valid(&other, ""), "{other}");
        }
    }

    #[test]
    fn the_list_is_requested_once_a_minute_and_waited_for_less_after_a_timeout() {
        let now = Instant::now();
        let list = |requested, answered| ValidatorList { requested, answered, ..ValidatorList::default() };
        assert_eq!(list(None, false).wait_limit(now), Some(ANSWER_TIMEOUT));
        for (answered, wait_limit) in [(true, ANSWER_TIMEOUT), (false, SHORT_ANSWER_TIMEOUT)] {
            let list = list(Some(now), answered);
            assert_eq!(list.wait_limit(now + REQUEST_INTERVAL / 2), None);
            assert_eq!(list.wait_limit(now + REQUEST_INTERVAL), Some(wait_limit));
        }
    }
}
