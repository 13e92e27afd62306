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
use std::sync::{Arc, Mutex, PoisonError};

use chain::hash::Hash;
use chain::{Timestamp, Vm};
use registry::{ChainKind, Registry};
use store::key::Text;
use store::{Counts, Durability, Order, RocksOptions, RocksStore, Store, Txn, table};
use tokio::sync::{Notify, watch};

use crate::chain_queries::ChainQueries;
use crate::error::{BadHash, Error, Refused, StatusError};
use crate::migrate::migrate;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::poll_tx::poll_tx;
use crate::queue::{Class, Place, Queues};
use crate::record::Record;
use crate::status;
use crate::tables::{Answers, Others, Queue, Records, TABLES, TxKey};
use crate::unseen::{ClientId, Limit, Unseen};

/// Follows registered transactions. Share it in an `Arc`.
pub struct Tracker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: watch::Receiver<Arc<Registry>>,
    pub(crate) options: Options,
    pub(crate) nodes: Nodes,
    pub(crate) queues: Queues,
    unseen: Unseen,
    /// Held from reading a record to writing it, never during a node query.
    writing: Mutex<()>,
    /// At most one polling round runs at a time.
    pub(crate) polling: tokio::sync::Mutex<()>,
    /// Notified when a transaction may be due.
    pub(crate) wake: Notify,
    /// Start time of the last polls.
    pub(crate) latest: AtomicI64,
}

/// The answer to a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// The hash as it is written on its chain.
    pub tx_hash: String,
    /// A page that shows it; empty if none is known.
    pub explorer_link: String,
}

const MIB: usize = 1 << 20;

impl Tracker {
    /// Opens the database in `dir`, or makes one. Everything that was registered goes on being followed.
    ///
    /// The registry may change at any time: what is already known of a transfer stays, names of tokens and pages are
    /// those of the registry when the transfer is polled next.
    pub fn open(
        dir: &Path,
        registry: watch::Receiver<Arc<Registry>>,
        options: Options,
    ) -> Result<Self, Error> {
        // Records are small and mostly asleep: the memory is for those that are awake.
        let rocks = RocksOptions {
            cache_bytes: 32 * MIB,
            write_buffer_bytes: 32 * MIB,
            open_files: 128,
            reserve_bytes: options.reserve_bytes,
        };
        Self::over(Arc::new(RocksStore::open(dir, TABLES, rocks)?), registry, options)
    }

    /// The same over a store that has the tracker's tables.
    pub fn over(
        store: Arc<dyn Store>,
        registry: watch::Receiver<Arc<Registry>>,
        options: Options,
    ) -> Result<Self, Error> {
        migrate(&*store)?;
        let tracker = Self {
            queues: Queues::open(&*store)?,
            store,
            registry,
            nodes: Nodes::new(options.question_timeout, options.concurrency),
            options,
            unseen: Unseen::default(),
            writing: Mutex::default(),
            polling: tokio::sync::Mutex::default(),
            wake: Notify::new(),
            latest: AtomicI64::new(i64::MIN),
        };
        tracker.count_unseen()?;
        Ok(tracker)
    }

    fn count_unseen(&self) -> Result<(), Error> {
        const CHUNK: usize = 4_096;
        let snapshot = self.store.snapshot()?;
        for (chain, _) in self.queues.chains() {
            for class in Class::UNSEEN {
                let prefix = (Text::from(chain.as_str()), class.key());
                let mut rows = table::rows::<Queue>(&*snapshot, &prefix, Order::Asc, CHUNK)?;
                while let Some((last, ())) = rows.last() {
                    self.unseen.found(&chain, rows.len());
                    rows = table::rows_after::<Queue>(&*snapshot, &prefix, last, Order::Asc, CHUNK)?;
                }
            }
        }
        Ok(())
    }

    /// Registers a transaction, whether or not any node has it yet. Again and again it gives the same answer and loses
    /// nothing; one that was abandoned is taken up again. For callers that are trusted: no limit applies.
    pub fn track(&self, chain_id: &str, tx_hash: &str, now: Timestamp) -> Result<Tracked, Refused> {
        self.track_any(chain_id, tx_hash, now, None)
    }

    /// The same within the limits on what no node has seen ([`Options::unseen_per_client`],
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
        let chain = &registry[registry.chain(chain_id).ok_or(Refused::UnknownChain)?];
        let (hash, shown) = spelled(tx_hash, chain.kind, chain.vm)?;
        let record = self.register(&registry, (chain_id.into(), hash), &shown, now, caller)?;
        let explorer_link = status::explorer_link(&registry, chain_id, &record.hash);
        Ok(Tracked { tx_hash: record.hash, explorer_link })
    }

    /// The JSON of `GET /v2/tx/status`; none for what was never registered.
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
            let place = before.as_ref().map(Record::place);
            self.write(&key, place, before.as_ref(), &record, Some(&json))?;
            self.wake.notify_one();
        }
        Ok(record)
    }

    /// Whether one more may be registered that no node has seen; makes room on a full chain if something was abandoned.
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
            self.remove(&(chain.into(), *hash), Place { class: Class::Abandoned, at: *at })?;
        }
        Ok(())
    }

    /// Polls one transaction, which stands at `place` in the queue; says whether its answer is another one now.
    pub(crate) async fn poll_one(
        &self,
        queries: &ChainQueries<'_>,
        key: &TxKey,
        place: Place,
    ) -> Result<bool, Error> {
        let Some(before) = self.read::<Records>(key)? else {
            self.delete(key, place)?;
            return Ok(false);
        };
        let looked = Box::pin(poll_tx(queries, before.clone(), key.1)).await;
        let (mut record, now) = (looked.record, (queries.clock)());
        record.schedule(now, looked.answered, &self.options);
        let json = status::json(&record, queries.registry, now)?;

        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = self.read::<Records>(key)?;
        match &stored {
            // Registered again meanwhile, so it is due again.
            Some(stored) if (stored.generation, stored.since) != (before.generation, before.since) => {
                return Ok(false);
            }
            // Deleted meanwhile, to make room; not if a node has it after all.
            None if record.is_unseen() => return Ok(false),
            _ => {}
        }
        if record.is_expired() {
            self.remove(key, place)?;
            return Ok(true);
        }
        let is_changed = self.read::<Answers>(key)?.is_none_or(|answer| answer != json);
        record.generation += 1;
        self.write(key, Some(place), stored.as_ref(), &record, is_changed.then_some(&json))?;
        Ok(is_changed)
    }

    /// One commit: the record, its place in the queue instead of that where it was found, its answer.
    fn write(
        &self,
        key: &TxKey,
        place: Option<Place>,
        before: Option<&Record>,
        record: &Record,
        answer: Option<&Vec<u8>>,
    ) -> Result<(), Error> {
        let after = record.place();
        self.commit(|txn| {
            txn.put::<Records>(key, record);
            for place in place.into_iter().chain(before.map(Record::place)) {
                txn.delete::<Queue>(&queue_key(key, place));
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
        Ok(())
    }

    /// Deletes a transaction that stands at `place` in the queue.
    pub(crate) fn delete(&self, key: &TxKey, place: Place) -> Result<(), Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.remove(key, place)
    }

    fn remove(&self, key: &TxKey, place: Place) -> Result<(), Error> {
        // The other hash of an unreadable record is unknown.
        let record =
            self.read::<Records>(key).or_else(|e| if e.is_of_one_row() { Ok(None) } else { Err(e) })?;
        // A row that was moved stays behind if its record is written before it is due.
        let is_outdated =
            Class::UNSEEN.contains(&place.class) && record.as_ref().is_some_and(|r| !r.is_unseen());
        if is_outdated {
            return self.commit(|txn| {
                txn.delete::<Queue>(&queue_key(key, place));
                Ok(())
            });
        }
        self.commit(|txn| {
            txn.delete::<Queue>(&queue_key(key, place));
            if let Some(record) = &record {
                txn.delete::<Queue>(&queue_key(key, record.place()));
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
        Ok(())
    }

    /// Moves a row of the queue without reading its record.
    pub(crate) fn reschedule(&self, key: &TxKey, place: Place, at: u64) -> Result<(), Error> {
        let moved = Place { at, ..place };
        self.commit(|txn| {
            txn.delete::<Queue>(&queue_key(key, place));
            txn.put::<Queue>(&queue_key(key, moved), &());
            Ok(())
        })?;
        self.queues.added(&key.0.0, moved);
        Ok(())
    }

    /// There are no lists here, so nothing is pending.
    fn commit(&self, write: impl FnOnce(&mut Txn<'_>) -> Result<(), Error>) -> Result<(), Error> {
        let snapshot = self.store.snapshot()?;
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        write(&mut txn)?;
        let (batch, _) = txn.finish();
        Ok(self.store.commit(batch, Durability::Buffered)?)
    }

    fn read<T: store::Table>(&self, key: &T::Key) -> Result<Option<T::Value>, Error> {
        Ok(table::read::<T>(&*self.store.snapshot()?, key)?)
    }
}

/// Client that registers a transaction; untrusted.
struct Caller(Option<ClientId>);

fn queue_key(key: &TxKey, place: Place) -> crate::tables::QueueKey {
    (key.0.clone(), place.class.key(), place.at, key.1)
}

fn other_key(key: &TxKey, record: &Record) -> Option<TxKey> {
    let hash = hash_of(record.other_hash.as_deref()?).ok()?;
    (hash != key.1).then(|| (Text(key.0.0.clone()), hash))
}

/// 64 digits of hex in any case, with or without `0x`.
fn hash_of(text: &str) -> Result<Hash, BadHash> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mut hash = [0; 32];
    hex::decode_to_slice(digits, &mut hash).map_err(|_| BadHash::new(text))?;
    Ok(hash)
}

/// A hash, and how its chain writes it. A chain with both kinds keeps the one that it was given.
fn spelled(text: &str, kind: ChainKind, vm: Vm) -> Result<(Hash, String), BadHash> {
    let hash = hash_of(text)?;
    let is_evm = kind == ChainKind::Evm || (vm == Vm::Evm && text.starts_with(['0']) && text.len() > 64);
    let shown = if is_evm { format!("0x{}", hex::encode(hash)) } else { hex::encode_upper(hash) };
    Ok((hash, shown))
}
