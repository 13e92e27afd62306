//! The tracker: registers transactions, serves their status from its database and stores poll results.
//!
//! # Invariants
//!
//! * One commit per poll writes record, response and index together, so a killed process resumes where it was.
//! * A power failure loses at most the results and registrations since the last polling round.
//! * A status request is one point read.
//! * Memory holds nothing per transaction.

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chain::Timestamp;
use chain::hash::Hash;
use registry::Registry;
use store::key::Text;
use store::{Durability, Order, RocksOptions, RocksStore, Store, table};
use tokio::sync::{Notify, watch};

use crate::chains::clients::ChainClients;
use crate::chains::known_chain::{KnownChain, KnownChains};
use crate::chains::limiter::Limiters;
use crate::chains::local_index::LocalIndex;
use crate::chains::queries::ChainQueries;
use crate::error::{Error, Refused, StatusError};
use crate::meter::{self, PollLabel};
use crate::options::Options;
use crate::queue::Queues;
use crate::queue::poll_tx::poll_tx;
use crate::queue::position::{Class, QueuePosition};
use crate::queue::unseen::{ClientId, Limit, Unseen};
use crate::record::Record;
use crate::status;
use crate::tables::{Answers, Others, Queue, Records, TABLES, TxKey, check_format};
use crate::tx_hash::{hash_of, spelled};

/// Follows registered transactions. Share it in an `Arc`.
pub struct Tracker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: watch::Receiver<Arc<Registry>>,
    pub(crate) options: Options,
    pub(crate) clients: ChainClients,
    pub(crate) limiters: Limiters,
    pub(crate) local: OnceLock<Arc<dyn LocalIndex>>,
    pub(crate) queues: Queues,
    unseen: Unseen,
    /// Held from reading a record to writing it, never during a node query.
    writing: Mutex<()>,
    /// At most one polling round runs at a time.
    pub(crate) polling: tokio::sync::Mutex<()>,
    /// Notified when a transaction may be due.
    pub(crate) wake: Notify,
    /// Time when polls were last started.
    pub(crate) latest: AtomicI64,
}

/// Response to a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// The hash in the spelling of its chain.
    pub tx_hash: String,
    /// URL of a page that shows it; empty if none is known.
    pub explorer_link: String,
}

const MIB: usize = 1 << 20;

impl Tracker {
    /// Opens or creates the database in `dir`. Polling of registered transactions resumes.
    ///
    /// The registry may change at any time: existing evidence is kept, and the next poll of a transfer uses the names
    /// and pages of the current registry.
    pub fn open(
        dir: &Path,
        registry: watch::Receiver<Arc<Registry>>,
        options: Options,
    ) -> Result<Self, Error> {
        // Records are small and mostly idle: the memory is for the active ones.
        let rocks = RocksOptions {
            cache_bytes: 32 * MIB,
            write_buffer_bytes: 32 * MIB,
            open_files: 128,
            reserve_bytes: options.reserve_bytes,
            ..RocksOptions::default()
        };
        Self::over(Arc::new(RocksStore::open(dir, TABLES, rocks)?), registry, options)
    }

    /// The same over a store with the tracker's tables.
    pub fn over(
        store: Arc<dyn Store>,
        registry: watch::Receiver<Arc<Registry>>,
        options: Options,
    ) -> Result<Self, Error> {
        check_format(&*store)?;
        let tracker = Self {
            queues: Queues::open(&*store)?,
            store,
            registry,
            clients: ChainClients::new(options.question_timeout),
            limiters: Limiters::new(options.concurrency),
            local: OnceLock::new(),
            options,
            unseen: Unseen::default(),
            writing: Mutex::default(),
            polling: tokio::sync::Mutex::default(),
            wake: Notify::new(),
            latest: AtomicI64::new(i64::MIN),
        };
        tracker.count_rows()?;
        Ok(tracker)
    }

    /// Reads the chains of this index from it. To be called once; later calls have no effect.
    pub fn read_from(&self, index: Arc<dyn LocalIndex>) {
        drop(self.local.set(index));
    }

    /// Counts the transactions that are still polled. A row of an earlier position may be left in the queue; records
    /// that cannot be read are reported by their poll.
    fn count_rows(&self) -> Result<(), Error> {
        const CHUNK: usize = 4_096;
        meter::no_transfers();
        let snapshot = self.store.snapshot()?;
        for (chain, _) in self.queues.chains() {
            for class in Class::POLLED {
                let prefix = (Text::from(chain.as_str()), class.key());
                let mut rows = table::rows::<Queue>(&*snapshot, &prefix, Order::Asc, CHUNK)?;
                while let Some((last, ())) = rows.last() {
                    if Class::UNSEEN.contains(&class) {
                        self.unseen.found(&chain, rows.len());
                    }
                    for ((chain, _, at, hash), ()) in &rows {
                        let record =
                            table::read::<Records>(&*snapshot, &(chain.clone(), *hash)).ok().flatten();
                        let position = QueuePosition { class, at: *at };
                        let current = record.filter(|record| record.position() == position);
                        meter::transfer_changed(None, current.as_ref());
                    }
                    rows = table::rows_after::<Queue>(&*snapshot, &prefix, last, Order::Asc, CHUNK)?;
                }
            }
        }
        Ok(())
    }

    /// The node clients, to be shared with other users of the same chains.
    pub fn clients(&self) -> &ChainClients {
        &self.clients
    }

    /// Registers a transaction, whether or not any node has it yet. Idempotent; an abandoned transaction is resumed.
    /// For trusted callers: no limit applies.
    pub fn track(&self, chain_id: &str, tx_hash: &str, now: Timestamp) -> Result<Tracked, Refused> {
        self.track_any(chain_id, tx_hash, now, None)
    }

    /// The same within the limits on transactions that no node has ([`Options::unseen_per_client`],
    /// [`Options::unseen_per_chain`]). `client` is the requesting client, if known.
    pub fn track_for(
        &self,
        client: Option<IpAddr>,
        chain_id: &str,
        tx_hash: &str,
        now: Timestamp,
    ) -> Result<Tracked, Refused> {
        self.track_any(chain_id, tx_hash, now, Some(Caller(client.map(|client| self.unseen.id(client)))))
    }

    fn track_any(
        &self,
        chain_id: &str,
        tx_hash: &str,
        now: Timestamp,
        caller: Option<Caller>,
    ) -> Result<Tracked, Refused> {
        let registry = Arc::clone(&self.registry.borrow());
        let kept = match registry.chain(chain_id) {
            Some(_) => KnownChains::new(),
            // A transaction that is registered already stays so, whatever the registry lost.
            None => self.kept_chains(chain_id, tx_hash)?,
        };
        let chain = KnownChain::find(&registry, &kept, chain_id).ok_or(Refused::UnknownChain)?;
        let (hash, shown) = spelled(tx_hash, chain.kind(), chain.vm())?;
        let record = self.register(&registry, (chain_id.into(), hash), &shown, now, caller)?;
        let explorer_link = status::explorer_link(&registry, &record.chains, chain_id, &record.hash);
        Ok(Tracked { tx_hash: record.hash, explorer_link })
    }

    /// The chains in the record of a registered transaction.
    fn kept_chains(&self, chain_id: &str, tx_hash: &str) -> Result<KnownChains, Refused> {
        let key = (Text::from(chain_id), hash_of(tx_hash).map_err(|_| Refused::UnknownChain)?);
        let key = match self.read::<Others>(&key)?.map(Hash::try_from) {
            Some(Ok(other)) => (key.0, other),
            _ => key,
        };
        Ok(self.read::<Records>(&key)?.map(|record| record.chains).unwrap_or_default())
    }

    /// The JSON of `GET /v2/tx/status`; none if the hash was never registered.
    pub fn status(&self, chain_id: &str, tx_hash: &str) -> Result<Option<Vec<u8>>, StatusError> {
        let hash = hash_of(tx_hash)?;
        let snapshot = self.store.snapshot().map_err(Error::from)?;
        Ok(table::read::<Answers>(&*snapshot, &(chain_id.into(), hash)).map_err(Error::from)?)
    }

    fn register(
        &self,
        registry: &Registry,
        key: TxKey,
        shown: &str,
        now: Timestamp,
        caller: Option<Caller>,
    ) -> Result<Record, Refused> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let key = match self.read::<Others>(&key)? {
            Some(other) => (key.0, other.try_into().map_err(|_| Error::Damaged { table: "track_other" })?),
            None => key,
        };
        let time = now.unix_nanos();
        let (mut record, before) = match self.read::<Records>(&key)? {
            Some(record) => (record.clone(), Some(record)),
            None => (Record::new(&key.0.0, shown, time), None),
        };
        if let (None, Some(Caller(client))) = (&before, caller) {
            self.check_limits(&key.0.0, client)?;
            record.client = client;
        }
        let is_revived = before.is_some() && record.revive(time);
        if before.is_none() || is_revived {
            let json = status::json(&record, registry, time).map_err(Error::from)?;
            let position = before.as_ref().map(Record::position);
            self.write(&key, position, before.as_ref(), &record, Some(&json))?;
            self.wake.notify_one();
        }
        Ok(record)
    }

    /// Checks the limits for one more unseen hash; a full chain deletes an abandoned one if there is any.
    fn check_limits(&self, chain: &str, client: Option<ClientId>) -> Result<(), Refused> {
        let Options { unseen_per_client, unseen_per_chain, .. } = self.options;
        if client.is_some_and(|client| self.unseen.of_client(client) >= unseen_per_client) {
            return Err(Refused::TooMany(Limit::Client(unseen_per_client)));
        }
        if self.unseen.of_chain(chain) >= unseen_per_chain {
            let given_up =
                self.queues.due(&*self.store, chain, Class::Abandoned, u64::MAX, 1).map_err(Error::from)?;
            let Some((at, hash)) = given_up.first() else {
                return Err(Refused::TooMany(Limit::Chain(unseen_per_chain)));
            };
            self.remove(&(chain.into(), *hash), QueuePosition { class: Class::Abandoned, at: *at })?;
        }
        Ok(())
    }

    /// Polls one transaction, which is at `position` in the queue; returns true if its response changed.
    pub(crate) async fn poll_one(
        &self,
        queries: &mut ChainQueries<'_>,
        key: &TxKey,
        position: QueuePosition,
    ) -> Result<bool, Error> {
        let Some(before) = self.read::<Records>(key)? else {
            self.delete(key, position)?;
            return Ok(false);
        };
        queries.kept.clone_from(&before.chains);
        let polled = Box::pin(poll_tx(queries, before.clone(), key.1)).await;
        let (mut record, now) = (polled.record, (queries.clock)());
        record.keep_chains(queries.registry);
        record.schedule(now, polled.answered, &self.options);
        let json = status::json(&record, queries.registry, now)?;

        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = self.read::<Records>(key)?;
        match &stored {
            // Registered again meanwhile, so it is due again.
            Some(stored) if (stored.generation, stored.since) != (before.generation, before.since) => {
                return Ok(false);
            }
            // Deleted meanwhile to free a slot; stored again if a node has it after all.
            None if record.is_unseen() => return Ok(false),
            _ => {}
        }
        if record.is_expired() {
            self.remove(key, position)?;
            return Ok(true);
        }
        let is_changed = self.read::<Answers>(key)?.is_none_or(|answer| answer != json);
        match (polled.answered, is_changed) {
            (false, _) => PollLabel::Unanswered,
            (true, true) => PollLabel::Changed,
            (true, false) => PollLabel::Unchanged,
        }
        .count(&key.0.0);
        record.generation += 1;
        self.write(key, Some(position), stored.as_ref(), &record, is_changed.then_some(&json))?;
        Ok(is_changed)
    }

    /// One commit: the record, its new queue position instead of the previous one, its response.
    fn write(
        &self,
        key: &TxKey,
        position: Option<QueuePosition>,
        before: Option<&Record>,
        record: &Record,
        answer: Option<&Vec<u8>>,
    ) -> Result<(), Error> {
        let after = record.position();
        store::commit_rows::<Error>(&*self.store, Durability::Buffered, |txn| {
            txn.put::<Records>(key, record);
            for position in position.into_iter().chain(before.map(Record::position)) {
                txn.delete::<Queue>(&queue_key(key, position));
            }
            txn.put::<Queue>(&queue_key(key, after), &());
            if let Some(answer) = answer {
                txn.put::<Answers>(key, answer);
            }
            if let Some(other) = other_key(key, record)
                && txn.get::<Records>(&other)?.is_none()
            {
                txn.put::<Others>(&other, &key.1.to_vec());
                if let Some(answer) = answer {
                    txn.put::<Answers>(&other, answer);
                }
            }
            Ok(())
        })?;
        self.queues.added(&key.0.0, after);
        self.unseen.changed(before, Some(record));
        meter::transfer_changed(before, Some(record));
        Ok(())
    }

    /// Deletes a transaction at `position` in the queue.
    pub(crate) fn delete(&self, key: &TxKey, position: QueuePosition) -> Result<(), Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.remove(key, position)
    }

    fn remove(&self, key: &TxKey, position: QueuePosition) -> Result<(), Error> {
        // The other hash of an unreadable record is unknown.
        let record =
            self.read::<Records>(key).or_else(|e| if e.is_of_one_row() { Ok(None) } else { Err(e) })?;
        // A moved row is not deleted if its record is written again before the row is due.
        let is_outdated =
            Class::UNSEEN.contains(&position.class) && record.as_ref().is_some_and(|r| !r.is_unseen());
        if is_outdated {
            return store::commit_rows::<Error>(&*self.store, Durability::Buffered, |txn| {
                txn.delete::<Queue>(&queue_key(key, position));
                Ok(())
            });
        }
        store::commit_rows::<Error>(&*self.store, Durability::Buffered, |txn| {
            txn.delete::<Queue>(&queue_key(key, position));
            if let Some(record) = &record {
                txn.delete::<Queue>(&queue_key(key, record.position()));
            }
            txn.delete::<Records>(key);
            txn.delete::<Answers>(key);
            if let Some(other) = record.as_ref().and_then(|record| other_key(key, record))
                && txn.get::<Others>(&other)?.is_some_and(|hash| hash == key.1)
            {
                txn.delete::<Others>(&other);
                txn.delete::<Answers>(&other);
            }
            Ok(())
        })?;
        self.unseen.changed(record.as_ref(), None);
        meter::transfer_changed(record.as_ref(), None);
        Ok(())
    }

    /// Moves a row of the queue without reading its record.
    pub(crate) fn reschedule(&self, key: &TxKey, position: QueuePosition, at: u64) -> Result<(), Error> {
        let moved = QueuePosition { at, ..position };
        store::commit_rows::<Error>(&*self.store, Durability::Buffered, |txn| {
            txn.delete::<Queue>(&queue_key(key, position));
            txn.put::<Queue>(&queue_key(key, moved), &());
            Ok(())
        })?;
        self.queues.added(&key.0.0, moved);
        Ok(())
    }

    fn read<T: store::Table>(&self, key: &T::Key) -> Result<Option<T::Value>, Error> {
        Ok(table::read::<T>(&*self.store.snapshot()?, key)?)
    }
}

/// Client that registers a transaction; untrusted.
struct Caller(Option<ClientId>);

fn queue_key(key: &TxKey, position: QueuePosition) -> crate::tables::QueueKey {
    (key.0.clone(), position.class.key(), position.at, key.1)
}

fn other_key(key: &TxKey, record: &Record) -> Option<TxKey> {
    let hash = hash_of(record.other_hash.as_deref()?).ok()?;
    (hash != key.1).then(|| (Text(key.0.0.clone()), hash))
}
