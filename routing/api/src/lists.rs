//! Long lists that follow from the registry, serialised and compressed once for each content of the registry.
//!
//! # Invariants
//!
//! * A list is made once, however many clients ask for it at the same time.
//! * The lists that are kept, and those that are still being sent, take at most [`MOST_ALIVE`] bytes, whatever filters
//!   clients name.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use web::http_error::HttpError;
use web::reply::{Prepared, Reply};

use crate::errors;
use crate::heavy::Heavy;

/// Most bytes of lists that are kept: twice the longest of the public registries, with its compressed forms.
const MOST_KEPT: usize = 40 << 20;
/// Most bytes of lists in memory.
const MOST_ALIVE: usize = 80 << 20;

/// The lists of a service.
#[derive(Default)]
pub(crate) struct Lists {
    heavy: Heavy,
    /// The most recently used is the last.
    kept: Mutex<VecDeque<(Key, Prepared)>>,
    alive: Arc<AtomicUsize>,
    /// One list is made at a time.
    making: tokio::sync::Mutex<()>,
}

/// Hash of the registry, and which of its lists.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    registry: String,
    list: String,
}

/// The bytes of a list, counted while they are in memory.
struct Counted {
    bytes: Vec<u8>,
    alive: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Lists {
    /// The limit of heavy requests.
    pub(crate) fn heavy(&self) -> &Heavy {
        &self.heavy
    }

    /// The list `name` of the registry with a hash. The name must state all that the list depends on besides the registry;
    /// `make` serialises it.
    ///
    /// # Errors
    /// That of `make`; 503 if there is no processor or no memory for it.
    pub(crate) async fn get(
        &self,
        registry_hash: &str,
        name: String,
        make: impl FnOnce() -> Result<Vec<u8>, HttpError> + Send + 'static,
    ) -> Result<Reply, HttpError> {
        let key = Key { registry: registry_hash.to_owned(), list: name };
        if let Some(reply) = self.kept(&key) {
            return Ok(reply);
        }
        let _making = self.making.lock().await;
        if let Some(reply) = self.kept(&key) {
            return Ok(reply);
        }
        if !self.has_room() {
            return Err(errors::busy("too many long lists are being sent"));
        }
        let alive = Arc::clone(&self.alive);
        let prepared = self.heavy.run(move || -> Result<Prepared, HttpError> {
            let mut bytes = make()?;
            bytes.shrink_to_fit();
            alive.fetch_add(bytes.len(), Ordering::Relaxed);
            Ok(Prepared::json(Bytes::from_owner(Counted { bytes, alive })))
        });
        let prepared = prepared.await??;
        let reply = Reply::prepared(&prepared);
        self.keep(key, prepared);
        Ok(reply)
    }

    /// A list that is kept.
    fn kept(&self, key: &Key) -> Option<Reply> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(other, _)| other == key)?;
        let entry = kept.remove(at)?;
        let reply = Reply::prepared(&entry.1);
        kept.push_back(entry);
        Some(reply)
    }

    fn keep(&self, key: Key, prepared: Prepared) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of an older registry are not asked for again.
        kept.retain(|(other, _)| other.registry == key.registry);
        kept.push_back((key, prepared));
        while kept.iter().map(|(_, prepared)| prepared.size()).sum::<usize>() > MOST_KEPT {
            kept.pop_front();
        }
    }

    /// Makes room for another list: those that are kept go before one is refused.
    fn has_room(&self) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while self.alive.load(Ordering::Relaxed) > MOST_ALIVE {
            if kept.pop_front().is_none() {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_is_made_once_for_each_registry() {
        let (lists, made) = (Lists::default(), Arc::new(AtomicUsize::new(0)));
        let get = async |hash: &'static str, name: &'static str| {
            let made = Arc::clone(&made);
            let make = move || {
                made.fetch_add(1, Ordering::Relaxed);
                Ok(format!("\"{name} {hash}\"").into_bytes())
            };
            lists.get(hash, name.to_owned(), make).await.unwrap().body
        };
        let many = futures_util::future::join_all((0..20).map(|_| get("one", "x"))).await;
        assert!(many.iter().all(|body| *body == many[0]));
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert_ne!(get("one", "y").await, many[0]);
        assert_ne!(get("two", "x").await, many[0]);
        assert_eq!(made.load(Ordering::Relaxed), 3);
        // The new registry took the place of the old one.
        get("one", "x").await;
        assert_eq!(made.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn distinct_lists_are_bounded_in_memory_while_they_are_kept_and_while_they_are_sent() {
        const SIZE: usize = 9 << 20;
        let lists = Lists::default();
        let list = |number: usize| lists.get("", number.to_string(), move || Ok(vec![0; SIZE + number]));
        for number in 0..20 {
            assert_eq!(list(number).await.unwrap().body.len(), SIZE + number);
            assert!(lists.alive.load(Ordering::Relaxed) <= MOST_KEPT);
        }
        // Clients that do not read their replies.
        let (mut unread, mut refused) = (Vec::new(), 0);
        for number in 20..40 {
            match list(number).await {
                Ok(reply) => unread.push(reply),
                Err(error) => {
                    assert_eq!(error.status(), http::StatusCode::SERVICE_UNAVAILABLE);
                    refused += 1;
                }
            }
            assert!(lists.alive.load(Ordering::Relaxed) <= MOST_ALIVE + SIZE + number);
        }
        assert!(refused > 5 && unread.len() > 5, "{refused} {}", unread.len());
        drop(unread);
        assert!(list(99).await.is_ok());
    }
}
