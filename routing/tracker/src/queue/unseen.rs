//! Quotas for registered hashes that no node has, by chain and by client.
//!
//! # Invariants
//!
//! * A hash counts from its registration until a node has it or it is deleted.
//! * A client without such hashes is removed, so the limits of the chains bound the table.
//!
//! Clients are identified by a keyed hash of their address; the key is per process. After a restart, older hashes count
//! for their chain and for no client.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use crate::record::{Record, Source};

/// A client id in records.
pub(crate) type ClientId = u64;

/// A limit on hashes that no node has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`crate::Options::unseen_per_client`].
    Client(usize),
    /// [`crate::Options::unseen_per_chain`].
    Chain(usize),
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client(limit) => write!(f, "{limit} from your address"),
            Self::Chain(limit) => write!(f, "{limit} on this chain"),
        }
    }
}

#[derive(Default)]
pub(crate) struct Unseen {
    key: RandomState,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    chains: HashMap<String, usize>,
    clients: HashMap<ClientId, usize>,
}

impl Unseen {
    pub(crate) fn id(&self, client: IpAddr) -> ClientId {
        self.key.hash_one(client)
    }

    pub(crate) fn of_chain(&self, chain: &str) -> usize {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.chains.get(chain).copied().unwrap_or(0)
    }

    pub(crate) fn of_client(&self, client: ClientId) -> usize {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.clients.get(&client).copied().unwrap_or(0)
    }

    /// Counts the hashes of a database that was opened.
    pub(crate) fn found(&self, chain: &str, n: usize) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.chains.entry(chain.to_owned()).or_default() += n;
    }

    /// Updates the counts after a record was replaced by another one.
    pub(crate) fn changed(&self, before: Option<&Record>, after: Option<&Record>) {
        let is_unseen = |record: &&Record| matches!(record.source, Source::Unseen { .. });
        let (before, after) = (before.filter(is_unseen), after.filter(is_unseen));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = before {
            decrement(&mut counts.chains, &record.chain);
            if let Some(client) = record.client {
                decrement(&mut counts.clients, &client);
            }
        }
        if let Some(record) = after {
            *counts.chains.entry(record.chain.clone()).or_default() += 1;
            if let Some(client) = record.client {
                *counts.clients.entry(client).or_default() += 1;
            }
        }
    }
}

fn decrement<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(counts.remove(key)),
    }
}
