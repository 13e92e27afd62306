//! How many requests a server has at once, and how much of it one client may have.
//!
//! What must hold: a connection has one slot at most, and gives it back whatever becomes of the connection; what one
//! client has is counted for as long as it has it, and not longer.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::rate_limit::Client;

/// The slots of a server.
pub(crate) struct ConcurrencyLimit {
    limit: usize,
    taken: AtomicUsize,
    per_client: Arc<PerClientLimit>,
}

/// The slot of one connection, taken or not.
pub(crate) struct RequestPermit {
    slots: Arc<ConcurrencyLimit>,
    taken: AtomicBool,
    share: Mutex<Option<ClientPermit>>,
}

/// Why there is no slot.
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
    /// A slot that is not taken yet.
    pub(crate) fn of(slots: &Arc<ConcurrencyLimit>) -> Self {
        Self { slots: Arc::clone(slots), taken: AtomicBool::new(false), share: Mutex::default() }
    }

    /// Takes it for `client`, if it counts, unless it is taken already. Used by one task only.
    pub(crate) fn take(&self, client: Option<Client>) -> Result<(), Full> {
        if self.taken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let share = match client {
            Some(client) => Some(self.slots.per_client.take(client).ok_or(Full::Client)?),
            None => None,
        };
        let limit = self.slots.limit;
        let one_more = |taken: usize| (taken < limit).then_some(taken + 1);
        let took = self.slots.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        took.map_err(|_| Full::Server)?;
        *self.share.lock().unwrap_or_else(PoisonError::into_inner) = share;
        self.taken.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Gives it back if it is taken.
    pub(crate) fn release(&self) {
        if self.taken.swap(false, Ordering::Relaxed) {
            self.slots.taken.fetch_sub(1, Ordering::Relaxed);
            drop(self.share.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.release();
    }
}

/// How much each client has of something. Who has nothing is not in it, so it is bounded by what there is to have.
pub(crate) struct PerClientLimit {
    limit: usize,
    // Addresses are chosen by others, so the hash has a secret.
    held: Mutex<HashMap<Client, usize, RandomState>>,
}

/// One, of one client; it is given back when dropped.
pub(crate) struct ClientPermit {
    permits: Arc<PerClientLimit>,
    client: Client,
}

impl PerClientLimit {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: Mutex::default() })
    }

    /// One more for `client`; none if it has all that one may have.
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
    fn a_slot_counts_once_and_comes_back_by_itself() {
        let slots = ConcurrencyLimit::new(2, usize::MAX);
        let slot = || RequestPermit::of(&slots);
        let (one, two, three) = (slot(), slot(), slot());
        let taken = |slot: &RequestPermit| slot.take(None).is_ok();
        assert!(taken(&one) && taken(&one) && taken(&two));
        assert_eq!(three.take(None), Err(Full::Server));
        one.release();
        one.release();
        assert!(taken(&three) && !taken(&one));
        drop(two);
        assert!(taken(&one) && !taken(&slot()));
    }

    #[test]
    fn a_client_has_its_share_and_no_more_and_is_forgotten_when_it_has_nothing() {
        let slots = ConcurrencyLimit::new(3, 2);
        let slot = || RequestPermit::of(&slots);
        let [us, them, others] = [1, 2, 3].map(|n| Some(Client::V4(Ipv4Addr::new(192, 0, 2, n))));
        let (one, two, three, four) = (slot(), slot(), slot(), slot());
        assert_eq!([one.take(us), two.take(us), three.take(us)], [Ok(()), Ok(()), Err(Full::Client)]);
        assert_eq!([three.take(them), four.take(others)], [Ok(()), Err(Full::Server)]);
        let known = || slots.per_client.held.lock().unwrap().len();
        assert_eq!(known(), 2, "who was refused has nothing");
        drop(one);
        assert_eq!(four.take(us), Ok(()));
        for slot in [&two, &three, &four] {
            slot.release();
        }
        assert_eq!(known(), 0);
    }
}
