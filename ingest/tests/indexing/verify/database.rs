//! A database that is indexed once and copied for each damage, and its stored rows.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use ingest::verify::{Repaired, Scope, Scratch, repair, verify};
use node::Node;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::audit::Report;
use schema::digest::TableDigest;
use store::{
    Batch, Bounds, Durability, MemStore, Message, Order, Row, Store, Table, TableSpec, Value, for_each_row,
};
use testkit::indexed;
use tokio::sync::watch;

/// A replayed chain, and its undisturbed index.
pub(crate) struct Indexed {
    pub(crate) node: Arc<Node>,
    store: Arc<dyn Store>,
    pub(crate) digest: Vec<TableDigest>,
    pub(crate) played: ReplayNode,
}

impl Indexed {
    pub(crate) async fn new(name: &str) -> Result<Self> {
        Self::of(Arc::new(Recording::open(&testkit::recording(name))?)).await
    }

    pub(crate) async fn of(recording: Arc<Recording>) -> Result<Self> {
        let played =
            ReplayNode::start(Arc::clone(&recording), Addresses::default(), Options::default()).await?;
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        let config = indexed::config(&recording)?;
        indexed::index_from(indexed::clients(&played)?, config, Arc::clone(&store), recording.last()).await?;
        let digest = indexed::digest(&*store)?;
        Ok(Self { node: Arc::new(indexed::clients(&played)?), store, digest, played })
    }

    /// An index of what another node serves.
    pub(crate) async fn of_node(node: &ReplayNode, recording: &Recording) -> Result<Arc<dyn Store>> {
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        let config = indexed::config(recording)?;
        indexed::index_from(indexed::clients(node)?, config, Arc::clone(&store), recording.last()).await?;
        Ok(store)
    }

    /// A copy.
    pub(crate) fn copy(&self) -> Result<Arc<dyn Store>> {
        let copy: Arc<dyn Store> = Arc::new(MemStore::new());
        self.copy_into(&*copy)?;
        Ok(copy)
    }

    pub(crate) fn copy_into(&self, copy: &dyn Store) -> Result<()> {
        let (snapshot, mut batch) = (self.store.snapshot()?, Batch::new());
        for spec in schema::TABLES {
            for_each_row(&*snapshot, spec, Bounds::all(), |key, value| {
                batch.put(spec, key.to_vec(), value.to_vec());
                anyhow::Ok(())
            })?;
        }
        Ok(copy.commit(batch, Durability::Buffered)?)
    }

    /// The findings in `store`.
    pub(crate) async fn look(&self, store: &Arc<dyn Store>, scope: Scope) -> Result<Report> {
        Ok(verify(store, Some(&self.node), scope, &*scratch()).await?)
    }

    /// Repairs `store`, and checks that it equals an undisturbed index.
    pub(crate) async fn heal(&self, store: &Arc<dyn Store>) -> Result<Repaired> {
        let (_nobody, stop) = watch::channel(false);
        let done = repair(store, Some(&self.node), &*scratch(), stop).await?;
        ensure!(done.left.is_sound(), "left after {:?}: {:#?}", done.steps, done.left.findings);
        let healed = indexed::digest(&**store)?;
        let differ = healed.iter().zip(&self.digest).filter(|(a, b)| a != b).map(|(a, _)| a.table);
        let differ: Vec<_> = differ.collect();
        ensure!(differ.is_empty(), "after {:?} these tables differ: {differ:?}", done.steps);
        Ok(done)
    }
}

/// Scratch stores in memory.
pub(crate) fn scratch() -> Box<Scratch> {
    Box::new(|| Ok(Arc::new(MemStore::new())))
}

/// The stored rows of a table.
pub(crate) fn rows(store: &dyn Store, spec: &'static TableSpec) -> Result<Vec<Row>> {
    Ok(store.snapshot()?.scan(spec, Bounds::all(), Order::Asc, usize::MAX)?)
}

/// The row in the middle of a table.
pub(crate) fn some_row(store: &dyn Store, spec: &'static TableSpec) -> Result<Row> {
    let mut rows = rows(store, spec)?;
    ensure!(!rows.is_empty(), "table {} has no rows", spec.name);
    Ok(rows.swap_remove(rows.len() / 2))
}

pub(crate) fn put(store: &dyn Store, spec: &'static TableSpec, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(spec, key, value);
    Ok(store.commit(batch, Durability::Buffered)?)
}

pub(crate) fn delete(store: &dyn Store, spec: &'static TableSpec, key: Vec<u8>) -> Result<()> {
    let mut batch = Batch::new();
    batch.delete(spec, key);
    Ok(store.commit(batch, Durability::Buffered)?)
}

/// Deletes the row in the middle of a table.
pub(crate) fn lose(store: &dyn Store, spec: &'static TableSpec) -> Result<()> {
    delete(store, spec, some_row(store, spec)?.0)
}

/// Changes the first row of `T` for which `change` returns a value.
pub(crate) fn change<T, M>(store: &dyn Store, mut change: impl FnMut(&mut M) -> bool) -> Result<()>
where
    T: Table<Value = Message<M>>,
    M: prost::Message + serde::Serialize + Default + PartialEq + Clone + std::fmt::Debug,
{
    for (key, value) in rows(store, T::SPEC)? {
        let Message(mut message) = Message::<M>::decode(&value).context("a row decodes")?;
        if change(&mut message) {
            return put(store, T::SPEC, key, encoded(&Message(message)));
        }
    }
    anyhow::bail!("no row of {} can be changed so", T::SPEC.name)
}

pub(crate) fn encoded(value: &impl Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}
