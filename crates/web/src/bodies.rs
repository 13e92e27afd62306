//! The bytes of response bodies that wait to be read.
//!
//! The bytes of one client are at most as many as are free after it (the dynamic thresholds of Choudhury and Hahne,
//! 1998): one client may have half of all, each of two a third, and there is room for another client however greedy the
//! others are.
//!
//! # Invariants
//! * A body is counted until its last slice is dropped, wherever that is: the socket's buffers may hold one.
//! * Small bodies are not counted: the limits of requests and connections bound them. Neither are bodies that others
//!   share, such as cached ones.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::StatusCode;

use crate::http_error::HttpError;
use crate::limits::rate_limit::Client;

/// Bodies up to this size are not counted.
const SMALL: usize = 16 << 10;

/// The bytes of a server.
pub(crate) struct Bodies {
    limit: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    all: usize,
    // A keyed hash, because clients choose their addresses.
    of_client: HashMap<Client, usize, RandomState>,
}

/// Counted bytes of a client, released on drop.
#[derive(Debug)]
pub struct Held {
    bodies: Arc<Bodies>,
    client: Client,
    bytes: usize,
}

impl std::fmt::Debug for Bodies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bodies").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Bodies {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: Mutex::default() })
    }

    /// Counts `bytes` for `client`; `None` if they are few.
    ///
    /// # Errors
    /// 503 if there is no room, 429 if there would be without the client's other bytes.
    pub(crate) fn hold(self: &Arc<Self>, client: Client, bytes: usize) -> Result<Option<Held>, HttpError> {
        if bytes <= SMALL {
            return Ok(None);
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let held = used.of_client.get(&client).copied().unwrap_or(0);
        let free = self.limit.saturating_sub(used.all);
        if held.saturating_add(bytes) > free {
            return Err(no_room(bytes, held, free));
        }
        used.all += bytes;
        used.of_client.insert(client, held + bytes);
        Ok(Some(Held { bodies: Arc::clone(self), client, bytes }))
    }

    /// The body with its bytes counted.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub(crate) fn count(self: &Arc<Self>, client: Client, body: Bytes) -> Result<Bytes, HttpError> {
        if !body.is_unique() {
            return Ok(body);
        }
        Ok(match self.hold(client, body.len())? {
            Some(held) => Counted { body, _held: Arc::new(held) }.into(),
            None => body,
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut used = self.bodies.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.all -= self.bytes;
        if let Entry::Occupied(mut held) = used.of_client.entry(self.client) {
            *held.get_mut() -= self.bytes;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }
}

/// Bytes, counted while a slice of them exists.
pub(crate) struct Counted {
    pub(crate) body: Bytes,
    pub(crate) _held: Arc<Held>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl From<Counted> for Bytes {
    fn from(counted: Counted) -> Self {
        Self::from_owner(counted)
    }
}

fn no_room(bytes: usize, held: usize, free: usize) -> HttpError {
    if held == 0 {
        return HttpError::unavailable(format!(
            "the response has {bytes} bytes, and the responses that others have not read leave {free}; try again"
        ));
    }
    HttpError::new(
        StatusCode::TOO_MANY_REQUESTS,
        format!(
            "the response has {bytes} bytes, and {held} bytes of others to your address wait to be read; an address may \
             have as many as are free, {free} now: read them first, or ask for fewer rows"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const BODY: usize = 1 << 20;

    fn client(n: u8) -> Client {
        Client::V4(Ipv4Addr::new(192, 0, 2, n))
    }

    #[test]
    fn a_greedy_client_gets_half_and_leaves_room_for_others() {
        let bodies = Bodies::new(64 * BODY);
        let mut held = Vec::new();
        let mut greedy = |n| {
            let before = held.len();
            while let Ok(Some(one)) = bodies.hold(client(n), BODY) {
                held.push(one);
            }
            held.len() - before
        };
        assert_eq!(greedy(1), 32);
        assert_eq!(greedy(2), 16);
        assert_eq!(greedy(3), 8);
        let error = bodies.hold(client(1), BODY).unwrap_err();
        assert_eq!(error.status(), StatusCode::TOO_MANY_REQUESTS, "{error}");
        let error = bodies.hold(client(4), 9 * BODY).unwrap_err();
        assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE, "{error}");
        assert!(bodies.hold(client(4), 8 * BODY).is_ok());
        assert!(bodies.hold(client(1), SMALL).unwrap().is_none(), "few bytes are not counted");
        held.clear();
        let used = bodies.used.lock().unwrap();
        assert_eq!((used.all, used.of_client.len()), (0, 0));
    }

    #[test]
    fn a_body_counts_until_its_last_slice_is_dropped() {
        let bodies = Bodies::new(4 * BODY);
        let mut body = bodies.count(client(1), Bytes::from(vec![1; BODY])).unwrap();
        let last = body.split_off(BODY - 1);
        drop(body);
        assert_eq!(bodies.used.lock().unwrap().all, BODY);
        drop(last);
        assert_eq!(bodies.used.lock().unwrap().all, 0);
        let cached = Bytes::from(vec![1; 100 * BODY]);
        assert_eq!(bodies.count(client(1), cached.clone()).unwrap(), cached, "a shared body costs nothing");
    }
}
