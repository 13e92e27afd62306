//! Concurrency limits: permits for requests or event streams of the whole server, and for requests, streams or
//! connections of one client.
//!
//! Under a limit for each client, one gets at most as many permits as are free after it (dynamic thresholds, as in
//! [`crate::bodies`]): there are some for another client however many greedy ones there are.
//!
//! # Invariants
//! * A permit is released when it is dropped, however the request or the connection ends.
//! * A client's permit is counted exactly as long as it is held.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::Limits;
use crate::limits::rate_limit::Client;
use crate::limits::turns::Turns;

/// The permits of a server for requests, or for event streams.
pub(crate) struct ConcurrencyLimit {
    server: Arc<Semaphore>,
    per_client: Arc<PerClientLimit>,
}

/// The permit of one request or stream.
pub(crate) struct RequestPermit {
    _server: OwnedSemaphorePermit,
    client: Option<ClientPermit>,
}

impl RequestPermit {
    /// The client, with its turns.
    pub(crate) fn client(&self) -> Option<(Client, &Arc<Turns>)> {
        self.client.as_ref().map(|permit| (permit.client, &permit.turns))
    }
}

/// The limit that is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Server,
    /// With the number of the client's permits.
    Client(usize),
}

impl ConcurrencyLimit {
    /// The limit of requests.
    pub(crate) fn of_requests(limits: &Limits) -> Self {
        Self::new(limits.requests, limits.requests_per_client, limits)
    }

    /// The limit of event streams.
    pub(crate) fn of_streams(limits: &Limits) -> Self {
        Self::new(limits.streams, limits.streams_per_client, limits)
    }

    fn new(limit: usize, per_client: usize, limits: &Limits) -> Self {
        let server = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self { server, per_client: PerClientLimit::new(per_client, limit, limits) }
    }

    /// A permit for one request, counted for `client` if there is one.
    pub(crate) fn acquire(&self, client: Option<Client>) -> Result<RequestPermit, Full> {
        let server = Arc::clone(&self.server).try_acquire_owned().map_err(|_| Full::Server)?;
        let free = self.server.available_permits();
        let client = client.map(|client| self.per_client.acquire(client, free)).transpose();
        let client = client.map_err(Full::Client)?;
        Ok(RequestPermit { _server: server, client })
    }
}

/// Permits in use per client. Clients with none are removed, so the map is never larger than the number of permits.
pub(crate) struct PerClientLimit {
    limit: usize,
    /// False if one client may have all.
    is_shared: bool,
    limits: Limits,
    // A keyed hash, because clients choose their addresses.
    held: Mutex<HashMap<Client, (usize, Arc<Turns>), RandomState>>,
}

/// One permit of one client, released on drop.
pub(crate) struct ClientPermit {
    permits: Arc<PerClientLimit>,
    client: Client,
    turns: Arc<Turns>,
}

impl PerClientLimit {
    /// At most `limit` of `all` for each client.
    pub(crate) fn new(limit: usize, all: usize, limits: &Limits) -> Arc<Self> {
        Arc::new(Self { limit, is_shared: limit < all, limits: limits.clone(), held: Mutex::default() })
    }

    /// One more permit for `client`, after which `free` are left for others; the number that it has if that is all.
    pub(crate) fn acquire(self: &Arc<Self>, client: Client, free: usize) -> Result<ClientPermit, usize> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.get(&client).map_or(0, |(count, _)| *count);
        // As many as are free after it, or its first.
        if count >= self.limit || (self.is_shared && count > free) {
            return Err(count);
        }
        let (count, turns) = held.entry(client).or_insert_with(|| (0, Turns::new(&self.limits)));
        *count += 1;
        Ok(ClientPermit { permits: Arc::clone(self), client, turns: Arc::clone(turns) })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut held = self.permits.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get_mut(&self.client) {
            Some((count, _)) if *count > 1 => *count -= 1,
            _ => drop(held.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_permit_is_released_on_drop() {
        let server = ConcurrencyLimit::new(2, usize::MAX, &Limits::default());
        let permit = || server.acquire(None);
        let (one, _two) = (permit().unwrap(), permit().unwrap());
        assert_eq!(permit().err(), Some(Full::Server));
        drop(one);
        let _three = permit().unwrap();
        assert_eq!(permit().err(), Some(Full::Server));
    }

    #[test]
    fn a_client_gets_its_permits_and_no_more_and_is_removed_without_any() {
        let server = ConcurrencyLimit::new(3, 2, &Limits::default());
        let [one, two, three] = [1, 2, 3].map(|n| Some(Client::V4(Ipv4Addr::new(192, 0, 2, n))));
        let held = [server.acquire(one).unwrap(), server.acquire(one).unwrap()];
        assert_eq!(server.acquire(one).err(), Some(Full::Client(2)));
        let other = server.acquire(two).unwrap();
        assert_eq!(server.acquire(three).err(), Some(Full::Server));
        let n_clients = || server.per_client.held.lock().unwrap().len();
        assert_eq!(n_clients(), 2, "a rejected client holds no permit");
        drop(held);
        assert_eq!(n_clients(), 1);
        let again = server.acquire(one).unwrap();
        drop((other, again));
        assert_eq!(n_clients(), 0);
    }

    #[test]
    fn greedy_clients_leave_permits_for_another_one() {
        let server = ConcurrencyLimit::new(1024, 128, &Limits::default());
        let client = |n| Some(Client::V4(Ipv4Addr::new(192, 0, 2, n)));
        let mut held = Vec::new();
        for n in 0..8 {
            while let Ok(permit) = server.acquire(client(n)) {
                held.push(permit);
            }
        }
        let polite: Vec<_> = std::iter::from_fn(|| server.acquire(client(8)).ok()).collect();
        assert!(polite.len() >= 32, "{} of others, {} for one more", held.len(), polite.len());
        drop((held, polite));
        let alone: Vec<_> = std::iter::from_fn(|| server.acquire(client(9)).ok()).collect();
        assert_eq!(alone.len(), 128);
    }
}
