//! Concurrency limits: permits for requests of the whole server, and for requests or connections of one client.
//!
//! # Invariants
//! * A connection holds at most one request permit and releases it however the connection ends.
//! * A client's permit is counted exactly as long as it is held.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::rate_limit::Client;

/// The request permits of a server.
pub(crate) struct ConcurrencyLimit {
    limit: usize,
    taken: AtomicUsize,
    per_client: Arc<PerClientLimit>,
}

/// The request permit of one connection, held or not.
pub(crate) struct RequestPermit {
    server: Arc<ConcurrencyLimit>,
    taken: AtomicBool,
    client_permit: Mutex<Option<ClientPermit>>,
}

/// The limit that is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Server,
    Client,
}

impl ConcurrencyLimit {
    pub(crate) fn new(limit: usize, per_client: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicUsize::new(0), per_client: PerClientLimit::new(per_client) })
    }
}

impl RequestPermit {
    /// A permit that is not held yet.
    pub(crate) fn of(server: &Arc<ConcurrencyLimit>) -> Self {
        Self { server: Arc::clone(server), taken: AtomicBool::new(false), client_permit: Mutex::default() }
    }

    /// Acquires the permit, counted for `client` if there is one. No-op if it is held already. Used by one task only.
    pub(crate) fn take(&self, client: Option<Client>) -> Result<(), Full> {
        if self.taken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let client_permit = match client {
            Some(client) => Some(self.server.per_client.take(client).ok_or(Full::Client)?),
            None => None,
        };
        let limit = self.server.limit;
        let one_more = |taken: usize| (taken < limit).then_some(taken + 1);
        let took = self.server.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        took.map_err(|_| Full::Server)?;
        *self.client_permit.lock().unwrap_or_else(PoisonError::into_inner) = client_permit;
        self.taken.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Releases the permit if it is held.
    pub(crate) fn release(&self) {
        if self.taken.swap(false, Ordering::Relaxed) {
            self.server.taken.fetch_sub(1, Ordering::Relaxed);
            drop(self.client_permit.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.release();
    }
}

/// Permits in use per client. Clients with none are removed, so the map is never larger than the number of permits.
pub(crate) struct PerClientLimit {
    limit: usize,
    // A keyed hash, because clients choose their addresses.
    held: Mutex<HashMap<Client, usize, RandomState>>,
}

/// One permit of one client, released on drop.
pub(crate) struct ClientPermit {
    permits: Arc<PerClientLimit>,
    client: Client,
}

impl PerClientLimit {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: Mutex::default() })
    }

    /// One more permit for `client`; `None` if it is at its limit.
    pub(crate) fn take(self: &Arc<Self>, client: Client) -> Option<ClientPermit> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let has = held.get(&client).copied().unwrap_or(0);
        if has >= self.limit {
            return None;
        }
        held.insert(client, has + 1);
        Some(ClientPermit { permits: Arc::clone(self), client })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut held = self.permits.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get_mut(&self.client) {
            Some(has) if *has > 1 => *has -= 1,
            _ => drop(held.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_permit_counts_once_and_is_released_on_drop() {
        let server = ConcurrencyLimit::new(2, usize::MAX);
        let permit = || RequestPermit::of(&server);
        let (one, two, three) = (permit(), permit(), permit());
        let taken = |permit: &RequestPermit| permit.take(None).is_ok();
        assert!(taken(&one) && taken(&one) && taken(&two));
        assert_eq!(three.take(None), Err(Full::Server));
        one.release();
        one.release();
        assert!(taken(&three) && !taken(&one));
        drop(two);
        assert!(taken(&one) && !taken(&permit()));
    }

    #[test]
    fn a_client_gets_its_permits_and_no_more_and_is_removed_without_any() {
        let server = ConcurrencyLimit::new(3, 2);
        let permit = || RequestPermit::of(&server);
        let [us, them, others] = [1, 2, 3].map(|n| Some(Client::V4(Ipv4Addr::new(192, 0, 2, n))));
        let (one, two, three, four) = (permit(), permit(), permit(), permit());
        assert_eq!([one.take(us), two.take(us), three.take(us)], [Ok(()), Ok(()), Err(Full::Client)]);
        assert_eq!([three.take(them), four.take(others)], [Ok(()), Err(Full::Server)]);
        let known = || server.per_client.held.lock().unwrap().len();
        assert_eq!(known(), 2, "a refused client holds no permit");
        drop(one);
        assert_eq!(four.take(us), Ok(()));
        for permit in [&two, &three, &four] {
            permit.release();
        }
        assert_eq!(known(), 0);
    }
}
