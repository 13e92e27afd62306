//! The optional indexes of the block lane: written with each block, and from stored blocks while the lane is idle, or while
//! no node is there.
//!
//! # Invariants
//!
//! * Both happen on the lane's own thread, or while it waits, so that the hand-over from one to the other needs no lock.
//! * An index whose records are damaged stops; the lane and the other indexes continue.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chain::packet::End;
use schema::bridge::BRIDGE;
use schema::bridge_output::{self, Applied, L1Replies};
use schema::evm_block::BLOCKS;
use schema::index::{Index, Input, PackedBlock};
use schema::index_writer::{self, Headers, Open, Rest, Writer};
use schema::meta::{self, BlockLane, WrittenIndexes};
use schema::ophost;
use schema::packets::{self, Channel, PACKETS};
use schema::tokens::{self, Described, TOKENS};
use schema::undo::Horizon;
use store::{Batch, Pending, Snapshot, Store, Txn};

use crate::Error;
use crate::bridge::alarm;
use crate::config::Config;
use crate::error::causes;
use crate::ingest::change;

/// Interval between log lines about an index that is being built.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The optional indexes that the lane writes.
#[derive(Default)]
pub(crate) struct OptionalIndexes {
    writers: Vec<Writer>,
    /// True once the index of headers had those of all blocks.
    has_headers: bool,
    /// When the progress of an index that is being built was logged last.
    logged: Option<Instant>,
}

impl OptionalIndexes {
    /// Continues or begins `indexes` in `store`.
    pub(crate) fn new(
        store: &dyn Store,
        indexes: &[&'static Index],
        horizon: Horizon,
    ) -> Result<Self, Error> {
        let mut writers: Vec<Writer> = Vec::new();
        for index in indexes.iter().filter(|index| index.input != Input::Traces) {
            if !writers.iter().any(|writer| writer.index() == *index) {
                writers.push(Writer::new(store, index, horizon)?);
            }
        }
        let snapshot = store.snapshot()?;
        let at = meta::read::<BlockLane>(&*snapshot)?.unwrap_or_default().height;
        let has_headers = BLOCKS.state(&*snapshot)?.is_some_and(|state| state.height >= at && at > 0);
        Ok(Self { writers, has_headers, logged: None })
    }

    /// Begins a commit of the lane.
    pub(crate) fn open<'a>(&'a mut self, snapshot: &'a dyn Snapshot) -> Result<Vec<Open<'a>>, Error> {
        Ok(self.writers.iter_mut().map(|writer| writer.open(snapshot)).collect::<Result<_, _>>()?)
    }

    /// Ends a commit that has succeeded.
    pub(crate) fn absorb(&mut self, finished: Vec<Finished>) {
        let mut finished = finished.into_iter();
        self.writers.retain_mut(|writer| match finished.next() {
            Some(Finished::Written(pending)) => {
                writer.absorb(pending);
                true
            }
            Some(Finished::Failed(error)) => stop(writer.index(), &error),
            Some(Finished::Nothing) | None => true,
        });
    }

    /// Writes rows of some stored blocks that indexes lack, in one commit of each. False if no index lacks any.
    pub(crate) fn catch_up(&mut self, store: &dyn Store, height: u64) -> Result<bool, Error> {
        let outcomes = index_writer::advance_all(&mut self.writers, store, height);
        let is_behind = outcomes.iter().any(|outcome| !matches!(outcome, Ok(Rest::None)));
        // From the last one: an index that fails is removed.
        for (place, outcome) in outcomes.into_iter().enumerate().rev() {
            match outcome {
                Ok(Rest::None) => {}
                Ok(Rest::After(at)) => {
                    log_building(&mut self.logged, self.writers[place].index(), at, height);
                }
                Ok(Rest::Completed) => log_complete(self.writers[place].index(), height),
                Err(error) => self.fail(place, error.into())?,
            }
        }
        Ok(is_behind)
    }

    /// Writes what a node has said about stored blocks, of which `height` is the last, to its index.
    pub(crate) fn write_fetched(
        &mut self,
        store: &dyn Store,
        fetched: &Fetched,
        height: u64,
    ) -> Result<(), Error> {
        match fetched {
            Fetched::Headers(headers) => self.write_headers(store, headers, height),
            Fetched::Tokens(described) => self.write_tokens(store, described),
            Fetched::L1(replies) => self.write_l1(store, replies),
            Fetched::Bridges(replies) => self.amend(store, &BRIDGE, |txn| {
                ophost::put_replies(txn, replies);
                Ok(())
            }),
            Fetched::Channel(end, reply) => self.amend(store, &PACKETS, |txn| {
                packets::put_reply(txn, end, reply);
                Ok(())
            }),
        }
    }

    /// Writes replies of the layer one to the index of the bridge.
    fn write_l1(&mut self, store: &dyn Store, replies: &L1Replies) -> Result<(), Error> {
        let mut applied = Applied::default();
        self.amend(store, &BRIDGE, |txn| {
            applied = bridge_output::apply(txn, replies)?;
            Ok(())
        })?;
        alarm::report(&applied);
        Ok(())
    }

    fn write_tokens(&mut self, store: &dyn Store, described: &[Described]) -> Result<(), Error> {
        self.amend(store, &TOKENS, |txn| {
            described.iter().try_for_each(|described| tokens::describe(txn, described).map(drop))
        })
    }

    /// Writes rows of an index in a commit of their own, if the index is written.
    fn amend(
        &mut self,
        store: &dyn Store,
        index: &Index,
        write: impl FnOnce(&mut Txn<'_>) -> Result<(), schema::Error>,
    ) -> Result<(), Error> {
        let Some(place) = self.writers.iter().position(|writer| *writer.index() == *index) else {
            return Ok(());
        };
        self.writers[place].amend(store, write).or_else(|error| self.fail(place, error.into()))
    }

    /// Writes the headers of stored blocks, of which `height` is the last, to the index of them.
    fn write_headers(&mut self, store: &dyn Store, headers: &Headers, height: u64) -> Result<(), Error> {
        let of_headers = |writer: &Writer| writer.index().input == Input::Headers;
        while let Some(place) = self.writers.iter().position(of_headers) {
            match self.writers[place].advance_headers(store, headers) {
                Ok(Rest::After(_)) => {}
                Ok(Rest::None) => break,
                Ok(Rest::Completed) => {
                    let (index, at) = (self.writers[place].index(), headers.last().unwrap_or_default());
                    if at < height {
                        log_building(&mut self.logged, index, at, height);
                    } else if !std::mem::replace(&mut self.has_headers, true) {
                        log_complete(index, height);
                    }
                    break;
                }
                Err(error) => self.fail(place, error.into())?,
            }
        }
        Ok(())
    }

    /// Stops an index whose records are damaged; returns another error.
    fn fail(&mut self, place: usize, error: Error) -> Result<(), Error> {
        if !is_of_records(&error) {
            return Err(error);
        }
        let writer = self.writers.remove(place);
        stop(writer.index(), &error);
        Ok(())
    }
}

/// What a node has said about blocks that are committed already.
pub(crate) enum Fetched {
    /// Headers of EVM blocks.
    Headers(Headers),
    /// Metadata of tokens.
    Tokens(Vec<Described>),
    /// What the layer one of a rollup has said of its bridge.
    L1(L1Replies),
    /// The node's replies about the bridges of a layer one, by number.
    Bridges(Vec<(u64, Vec<u8>)>),
    /// What the node has said of a channel of IBC.
    Channel(End, Channel),
}

/// Begins the optional indexes of `config` in an existing database, and stores which they are, for the processes that serve it:
/// one that has no blocks yet is being built, and one that is no longer written holds nothing back.
pub fn begin_indexes(config: &Config, store: &dyn Store) -> Result<(), Error> {
    for index in &config.indexes {
        index.begin(store)?;
    }
    let mut names: Vec<_> = config.indexes.iter().map(|index| index.name.to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    let written = WrittenIndexes { names };
    if meta::read::<WrittenIndexes>(&*store.snapshot()?)?.unwrap_or_default() == written {
        return Ok(());
    }
    store::commit_rows::<Error>(store, store::Durability::Synced, |txn| {
        meta::put(txn, &written);
        Ok(())
    })
}

/// What `ready` gives. Until then the optional indexes of `config` are built from the blocks of the database, if there is
/// one: that needs no node.
pub(crate) async fn build_until<T>(
    config: &Config,
    store: &Arc<dyn Store>,
    ready: impl Future<Output = T>,
) -> Result<T, Error> {
    let build = async {
        let Some(BlockLane { height, .. }) = meta::read(&*store.snapshot()?)? else { return Ok(()) };
        begin_indexes(config, &**store)?;
        let indexes = OptionalIndexes::new(&**store, &config.indexes, config.undo)?;
        let indexes = Arc::new(Mutex::new(indexes));
        let step = move |store: &dyn Store| {
            indexes.lock().unwrap_or_else(PoisonError::into_inner).catch_up(store, height)
        };
        while change(store, "building indexes", step.clone()).await? {}
        Ok(())
    };
    let failed = async {
        match build.await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    };
    tokio::select! {
        ready = ready => Ok(ready),
        error = failed => Err(error),
    }
}

fn log_building(logged: &mut Option<Instant>, index: &Index, at: u64, to: u64) {
    if logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
        tracing::info!(index = index.name, at, to, "building an index");
        *logged = Some(Instant::now());
    }
}

fn log_complete(index: &Index, height: u64) {
    tracing::info!(index = index.name, height, "index complete");
}

/// What a commit has of an index.
pub(crate) enum Finished {
    Nothing,
    Written(Pending),
    /// Its function has failed. The rest of the commit is as without the index.
    Failed(Error),
}

/// Adds the rows of each index to a commit.
pub(crate) fn finish(
    open: Vec<Open<'_>>,
    batch: &mut Batch,
    is_reversible: bool,
) -> Result<Vec<Finished>, Error> {
    let finish = |open: Open<'_>| match open.finish(batch, is_reversible).map_err(Error::from) {
        Ok(Some(pending)) => Ok(Finished::Written(pending)),
        Ok(None) => Ok(Finished::Nothing),
        Err(error) if is_of_records(&error) => Ok(Finished::Failed(error)),
        Err(error) => Err(error),
    };
    open.into_iter().map(finish).collect()
}

/// Writes the rows of `block`, if there is one, to each index.
pub(crate) fn write(open: &mut [Open<'_>], block: Option<PackedBlock<'_>>) {
    // The records are decompressed once.
    let Some(block) = block.zip(open.first()).map(|(block, first)| first.read(block)) else { return };
    for index in open {
        index.write(&block);
    }
}

/// True if stored records are damaged, which concerns only what follows from them.
fn is_of_records(error: &Error) -> bool {
    matches!(
        error,
        Error::Schema(
            schema::Error::Record { .. }
                | schema::Error::Store(store::Error::Corrupt { .. } | store::Error::NotIncreasing { .. })
        )
    )
}

fn stop(index: &'static Index, error: &Error) -> bool {
    tracing::error!(index = index.name, error = %causes(error), "index stopped: a record or row is damaged");
    false
}
