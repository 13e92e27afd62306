//! The tracker: registers transactions, answers from its own database, and looks at what is due.
//!
//! Must hold: one commit per look brings record, answer and index together, so that a process that is killed at any
//! moment goes on where it was; after a loss of power at most what was learnt or registered since the last round of
//! looks is gone; an answer is one point read; nothing per transaction is kept in memory.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chain::hash::Hash;
use chain::{Timestamp, Vm};
use futures_util::{StreamExt as _, stream};
use registry::{ChainKind, Registry};
use store::key::{All, Text};
use store::{Counts, Durability, Order, RocksOptions, RocksStore, Store as _, Txn, table};
use tokio::sync::{Notify, watch};

use crate::ask::Asker;
use crate::error::{BadHash, Error, Refused, StatusError};
use crate::look::look;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::record::{Record, moment};
use crate::status;
use crate::tables::{Answers, Due, DueKey, Others, Records, TABLES, TxKey};

/// Follows registered transactions. Share it in an `Arc`.
pub struct Tracker {
    store: RocksStore,
    registry: watch::Receiver<Arc<Registry>>,
    options: Options,
    nodes: Nodes,
    /// Held from reading a record to writing it, never while anyone is asked.
    writing: Mutex<()>,
    /// Only one look at everything at a time.
    polling: tokio::sync::Mutex<()>,
    registered: Notify,
}

/// The answer to a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// The hash as it is written on its chain.
    pub tx_hash: String,
    /// A page that shows it; empty if none is known.
    pub explorer_link: String,
}

/// What looking at everything that was due came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polled {
    /// Transactions that were looked at.
    pub polled: usize,
    /// Those whose answer is another one now.
    pub changed: usize,
    /// When the next one is due.
    pub next_due: Option<Timestamp>,
}

/// Rows of the index of due looks that are read at once.
const CHUNK: usize = 256;
const MIB: usize = 1 << 20;

impl Tracker {
    /// Opens the database in `dir`, or makes one. Everything that was registered goes on being followed.
    ///
    /// The registry may change at any time: what is already known of a transfer stays, names of tokens and pages are
    /// those of the registry when the transfer is looked at next.
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
            ..RocksOptions::default()
        };
        Ok(Self {
            store: RocksStore::open(dir, TABLES, rocks)?,
            registry,
            nodes: Nodes::new(options.question_timeout),
            options,
            writing: Mutex::default(),
            polling: tokio::sync::Mutex::default(),
            registered: Notify::new(),
        })
    }

    /// Registers a transaction, whether or not any node has it yet. Again and again it gives the same answer and loses
    /// nothing; one that was given up is taken up again.
    pub fn track(&self, chain_id: &str, tx_hash: &str, now: Timestamp) -> Result<Tracked, Refused> {
        let registry = Arc::clone(&self.registry.borrow());
        let chain = &registry[registry.chain(chain_id).ok_or(Refused::UnknownChain)?];
        let (hash, shown) = spelled(tx_hash, chain.kind, chain.vm)?;
        let record = self.register(&registry, (chain_id.into(), hash), &shown, now)?;
        let explorer_link = status::explorer_link(&registry, chain_id, &record.hash);
        Ok(Tracked { tx_hash: record.hash, explorer_link })
    }

    /// The JSON of `GET /v2/tx/status`; none for what was never registered.
    pub fn status(&self, chain_id: &str, tx_hash: &str) -> Result<Option<Vec<u8>>, StatusError> {
        let hash = hash_of(tx_hash)?;
        let snapshot = self.store.snapshot().map_err(Error::from)?;
        Ok(table::read::<Answers>(&*snapshot, &(chain_id.into(), hash)).map_err(Error::from)?)
    }

    /// Looks once at every transaction that is due at `now`, a bounded number at a time, and stores what is new. Nodes
    /// that do not answer are no error: what depends on them stays as it is and is looked at again.
    pub async fn poll_due(&self, now: Timestamp) -> Result<Polled, Error> {
        let _alone = self.polling.lock().await;
        let registry = Arc::clone(&self.registry.borrow());
        let (mut polled, mut changed, mut last) = (0, 0, None);
        loop {
            // Whatever was looked at is due later than now, so one walk through the index meets everything once.
            let due = self.due(now, last.as_ref())?;
            let Some(end) = due.last() else { break };
            last = Some(end.clone());
            let looks = due.iter().map(|(_, chain, hash)| {
                let key = (chain.clone(), *hash);
                let registry = &registry;
                async move { self.look(registry, &key, now).await }
            });
            let mut looks = stream::iter(looks).buffer_unordered(self.options.concurrency.max(1));
            while let Some(is_changed) = looks.next().await {
                changed += usize::from(is_changed?);
            }
            polled += due.len();
        }
        if polled > 0 {
            self.store.sync()?;
        }
        Ok(Polled { polled, changed, next_due: self.next_due()? })
    }

    /// Looks at what is due, as it becomes due, until `stop` resolves. Ends early only if the database fails.
    pub async fn run(&self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::pin!(stop);
        loop {
            let polled = tokio::select! {
                polled = self.poll_due(clock()) => polled?,
                () = &mut stop => return Ok(()),
            };
            let wait = polled.next_due.map(|due| {
                let nanos = i128::from(due.unix_nanos()) - i128::from(clock().unix_nanos());
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
            });
            tokio::select! {
                () = tokio::time::sleep(wait.unwrap_or(IDLE).min(IDLE)) => {}
                () = self.registered.notified() => {}
                () = &mut stop => return Ok(()),
            }
        }
    }

    fn register(
        &self,
        registry: &Registry,
        key: TxKey,
        shown: &str,
        now: Timestamp,
    ) -> Result<Record, Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.store.snapshot()?;
        let key = match table::read::<Others>(&*snapshot, &key)? {
            Some(other) => (key.0, other.try_into().map_err(|_| Error::Damaged { table: "track_other" })?),
            None => key,
        };
        let time = now.unix_nanos();
        let (mut record, before) = match table::read::<Records>(&*snapshot, &key)? {
            Some(record) => (record.clone(), Some(record)),
            None => (Record::new(&key.0.0, shown, time), None),
        };
        let is_revived = before.is_some() && record.revive(time);
        if before.is_none() || is_revived {
            let json = status::json(&record, registry, time)?;
            self.write(&key, before.as_ref(), &record, Some(&json))?;
            self.registered.notify_one();
        }
        Ok(record)
    }

    /// Looks at one transaction; says whether its answer is another one now.
    async fn look(&self, registry: &Registry, key: &TxKey, now: Timestamp) -> Result<bool, Error> {
        let Some(before) = self.read::<Records>(key)? else { return Ok(false) };
        let now = now.unix_nanos();
        let asker = Asker { registry, nodes: &self.nodes, options: &self.options, now };
        let looked = look(&asker, before.clone(), key.1).await;
        let mut record = looked.record;
        record.schedule(now, looked.answered, &self.options);
        let json = status::json(&record, registry, now)?;

        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Registered again meanwhile: then it is due again, and looked at anew.
        if self.read::<Records>(key)?.is_none_or(|stored| stored.generation != before.generation) {
            return Ok(false);
        }
        let is_changed = self.read::<Answers>(key)?.is_none_or(|answer| answer != json);
        record.generation += 1;
        self.write(key, Some(&before), &record, is_changed.then_some(&json))?;
        Ok(is_changed)
    }

    /// One commit: the record, its place in the index, its answer.
    fn write(
        &self,
        key: &TxKey,
        before: Option<&Record>,
        record: &Record,
        answer: Option<&Vec<u8>>,
    ) -> Result<(), Error> {
        let snapshot = self.store.snapshot()?;
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        txn.put::<Records>(key, record);
        if let Some(due) = before.and_then(|before| before.due) {
            txn.delete::<Due>(&(due, key.0.clone(), key.1));
        }
        if let Some(due) = record.due {
            txn.put::<Due>(&(due, key.0.clone(), key.1), &());
        }
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
        // There are no lists here, so nothing is pending.
        let (batch, _) = txn.finish();
        Ok(self.store.commit(batch, Durability::Buffered)?)
    }

    fn read<T: store::Table>(&self, key: &T::Key) -> Result<Option<T::Value>, Error> {
        Ok(table::read::<T>(&*self.store.snapshot()?, key)?)
    }

    /// The first rows of the index that are due, after this one.
    fn due(&self, now: Timestamp, after: Option<&DueKey>) -> Result<Vec<DueKey>, Error> {
        let now = moment(now.unix_nanos());
        let snapshot = self.store.snapshot()?;
        let rows = match after {
            Some(after) => table::rows_after::<Due>(&*snapshot, &All, after, Order::Asc, CHUNK)?,
            None => table::rows::<Due>(&*snapshot, &All, Order::Asc, CHUNK)?,
        };
        Ok(rows.into_iter().map(|(key, ())| key).take_while(|(at, ..)| *at <= now).collect())
    }

    fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let rows = table::rows::<Due>(&*self.store.snapshot()?, &All, Order::Asc, 1)?;
        let time = |at| Timestamp::from_unix_nanos(i64::try_from(at).unwrap_or(i64::MAX));
        Ok(rows.first().map(|((at, ..), ())| time(*at)))
    }
}

/// The longest sleep with nothing due.
const IDLE: Duration = Duration::from_mins(1);

fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
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
