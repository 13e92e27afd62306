//! Proposers of blocks: the validator behind a consensus address, looked up while indexing, so that requests never
//! query the node.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chain::record::Proposer;
use chain::{Account, excerpt};
use node::Node;
use node::retry::{self, Backoff};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Minimum time between two requests of the list because of the same address, while the list lacks it.
const REQUEST_INTERVAL: Duration = Duration::from_mins(1);

/// Minimum time between two requests of the list while the node does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Time to wait for the list. Blocks wait meanwhile, but only for the first request that fails: the blocks after it are
/// stored without a name, until the list arrives.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// Addresses that the list lacked when it was requested because of them.
    absent: HashSet<[u8; 20]>,
    requested: Option<Instant>,
    /// True if the last request was answered.
    answered: bool,
}

impl ValidatorList {
    /// Whether a block waits for the list because of its proposer.
    fn is_due(&self, address: &[u8; 20], now: Instant) -> bool {
        let Some(requested) = self.requested else { return true };
        let is_asked = self.absent.contains(address) && now - requested < REQUEST_INTERVAL;
        self.answered && !self.by_address.contains_key(address) && !is_asked
    }

    /// Whether the list is to be requested for blocks that are stored without it.
    fn is_late(&self, now: Instant) -> bool {
        !self.answered && self.requested.is_none_or(|requested| now - requested >= RETRY_INTERVAL)
    }

    fn set(&mut self, validators: Option<Vec<([u8; 20], Proposer)>>, now: Instant) {
        (self.requested, self.answered) = (Some(now), validators.is_some());
        self.by_address.extend(validators.into_iter().flatten());
    }

    /// The validator of an address, or one without a name if the list lacks it; `None` if there is no list.
    fn find(&mut self, prefix: &str, address: &[u8; 20]) -> Option<Proposer> {
        let found = self.by_address.get(address).cloned();
        if found.is_none() && self.answered {
            self.absent.insert(*address);
            return Some(Proposer::unnamed(prefix, address));
        }
        found
    }
}

impl Proposers {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, list: Mutex::default() }
    }

    /// The validator with the consensus address `address`; if the node has none, one without a name. `None` if the node
    /// does not list its validators now.
    pub(crate) async fn proposer(&self, node: &Node, address: &[u8; 20]) -> Option<Proposer> {
        let mut list = self.list.lock().await;
        if list.is_due(address, Instant::now()) {
            let validators = self.validators(node).await;
            if let Err(reason) = &validators {
                tracing::warn!(reason, "blocks are stored without the name of their proposer");
            }
            list.set(validators.ok(), Instant::now());
        }
        list.find(&self.prefix, address)
    }

    /// Like [`of`](Self::of), for a block that is stored without its proposer: requests the list without a delay of other
    /// blocks.
    pub(crate) async fn late(&self, node: &Node, address: &[u8; 20]) -> Option<Proposer> {
        if self.list.lock().await.is_late(Instant::now()) {
            let validators = self.validators(node).await.ok();
            self.list.lock().await.set(validators, Instant::now());
        }
        self.list.lock().await.find(&self.prefix, address)
    }

    /// One without a name.
    pub(crate) fn unnamed(&self, address: &[u8; 20]) -> Proposer {
        Proposer::unnamed(&self.prefix, address)
    }

    /// The node's validators, or the reason why it does not list them in time. A node without the list has none.
    async fn validators(&self, node: &Node) -> Result<Vec<([u8; 20], Proposer)>, String> {
        let Some(rest) = &node.rest else { return Ok(Vec::new()) };
        let request = retry::until(Backoff::default(), "validators", || rest.validators());
        let Ok(validators) = timeout(ANSWER_TIMEOUT, request).await else {
            return Err(format!("no answer within {ANSWER_TIMEOUT:?}"));
        };
        let validators = validators.unwrap_or_else(|error| {
            tracing::warn!(%error, "the node does not list validators: blocks have no names of proposers");
            Vec::new()
        });
        let proposer = |validator: node::Validator| {
            let (moniker, operator_address) = (validator.moniker, validator.operator_address);
            (validator.consensus_address, Proposer { moniker, identity: String::new(), operator_address })
        };
        let validators = validators.into_iter().map(proposer);
        Ok(validators.filter(|(_, proposer)| self.is_valid(proposer)).collect())
    }

    /// Whether the chain can have such a validator: the reply is stored for good.
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
    fn the_list_is_requested_for_each_new_address_once_a_minute_and_no_block_waits_after_a_failure() {
        let (start, mut list) = (Instant::now(), ValidatorList::default());
        let later = |seconds| start + Duration::from_secs(seconds);
        assert!(list.is_due(&[1; 20], start) && list.is_late(start));
        list.set(None, start);
        assert_eq!(list.find("init", &[1; 20]), None);
        assert!(!list.is_due(&[1; 20], later(99)), "only the late request is repeated");
        assert!(!list.is_late(later(1)) && list.is_late(later(2)));
        let named = Proposer { moniker: "a".to_owned(), ..Proposer::default() };
        list.set(Some(vec![([1; 20], named.clone())]), start);
        assert!(!list.is_late(later(99)));
        assert_eq!(list.find("init", &[1; 20]), Some(named.clone()));
        assert!(list.is_due(&[2; 20], start), "a validator that has just joined");
        assert_eq!(list.find("init", &[2; 20]), Some(Proposer::unnamed("init", &[2; 20])));
        assert!(!list.is_due(&[2; 20], later(59)) && list.is_due(&[2; 20], later(60)));
        // An outage later does not take away what is known.
        list.set(None, start);
        assert_eq!((list.find("init", &[1; 20]), list.find("init", &[2; 20])), (Some(named), None));
    }
}
