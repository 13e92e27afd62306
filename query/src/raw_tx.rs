//! The bytes of transactions. No table has them: they follow from the stored JSON, and their hash proves them.

use std::sync::{Arc, PoisonError, RwLock};

use chain::hash::{Hash, tx_hash};
use proto::json::{Empty, Registry, tx_bytes};
use schema::descriptors::Descriptors;
use store::key::All;
use store::{Message, Order, Snapshot};
use web::http_error::HttpError;
use web::limits::lane;

/// Sets of descriptors that are read, at most: a chain gets one with an upgrade.
const MAX_SETS: usize = 256;

/// The chain's message types, compiled, by the hash of their descriptors.
#[derive(Default)]
pub(crate) struct Registries(RwLock<Vec<(Hash, Arc<Registry>)>>);

impl Registries {
    /// The bytes of the transaction with this hash and this JSON; `None` if the JSON does not tell them.
    pub(crate) fn raw_tx(
        &self,
        snapshot: &dyn Snapshot,
        hash: &Hash,
        json: &str,
    ) -> Result<Option<Vec<u8>>, HttpError> {
        let known = self.known();
        if let Some(bytes) = known.iter().find_map(|(_, registry)| rebuilt(registry, hash, json)) {
            return Ok(Some(bytes));
        }
        let added = self.add(snapshot, known.len())?;
        Ok(added.iter().find_map(|(_, registry)| rebuilt(registry, hash, json)))
    }

    fn known(&self) -> Vec<(Hash, Arc<Registry>)> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Compiles the stored sets that are not `known` ones.
    fn add(&self, snapshot: &dyn Snapshot, known: usize) -> Result<Vec<(Hash, Arc<Registry>)>, HttpError> {
        let sets = store::table::rows::<Descriptors>(snapshot, &All, Order::Asc, MAX_SETS);
        let sets = sets.map_err(HttpError::internal)?;
        if sets.len() <= known {
            return Ok(Vec::new());
        }
        // Compiling a set takes tens of milliseconds.
        lane::heavy()?;
        let known = self.known();
        let mut added = Vec::new();
        for (hash, Message(set)) in
            sets.iter().filter(|(hash, _)| known.iter().all(|(other, _)| other != hash))
        {
            let bytes = set.bytes().map_err(HttpError::internal)?;
            let registry = Registry::from_descriptors(&bytes).map_err(HttpError::internal)?;
            added.push((*hash, Arc::new(registry)));
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for one in &added {
            if all.iter().all(|(hash, _)| *hash != one.0) {
                all.push(one.clone());
            }
        }
        Ok(added)
    }
}

fn rebuilt(registry: &Registry, hash: &Hash, json: &str) -> Option<Vec<u8>> {
    let rebuilt =
        [Empty::LeftOut, Empty::Written].into_iter().filter_map(|empty| tx_bytes(registry, json, empty));
    rebuilt.into_iter().find(|bytes| tx_hash(bytes) == *hash)
}
