//! What deriving needs beside the answers: the chain's rules, and tools that are costly to make and are used again.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use chain::Vm;
use chain::key::KeyCache;
use proto::json::Registry;
use schema::payload::{Codec, Encoder, Kind};

/// Public keys whose addresses a worker remembers: 66 bytes each, twice.
const REMEMBERED_KEYS: usize = 1 << 14;

/// The rules of one chain.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Which virtual machine the chain runs.
    pub vm: Vm,
    /// Human-readable part of its account addresses, e.g. `init`.
    pub prefix: String,
    /// Its protobuf descriptors.
    pub registry: Arc<Registry>,
    /// SHA-256 of the descriptor set, which tells one registry from another.
    pub descriptors: [u8; 32],
    /// Whether answers are checked against what hashes prove (`indexing.md` §17).
    pub verified: bool,
}

/// Tools of one worker. Not shared while in use.
#[derive(Debug)]
pub struct WorkerState {
    pub(crate) tx: Encoder,
    pub(crate) evm_tx: Encoder,
    pub(crate) calls: Encoder,
    pub(crate) keys: KeyCache,
    /// A record in the making.
    pub(crate) record: Vec<u8>,
    /// The `tx` member of a record in the making.
    pub(crate) body: Vec<u8>,
}

/// All workers of a process, and the rules that hold now.
#[derive(Debug)]
pub struct WorkerPool {
    codec: Arc<Codec>,
    rules: RwLock<Arc<Rules>>,
    idle: Mutex<Vec<WorkerState>>,
}

impl WorkerPool {
    /// WorkerPool for the database that `codec` was loaded from.
    pub fn new(codec: Arc<Codec>, rules: Rules) -> Self {
        Self { codec, rules: RwLock::new(Arc::new(rules)), idle: Mutex::default() }
    }

    /// What records are compressed with.
    pub(crate) fn codec(&self) -> Arc<Codec> {
        Arc::clone(&self.codec)
    }

    /// The rules that hold now.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// New descriptors, after an upgrade of the chain.
    pub fn set_registry(&self, registry: Arc<Registry>, descriptors: [u8; 32]) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::new(Rules { registry, descriptors, ..(**rules).clone() });
    }

    /// Lends a worker to `work`. There are never more of them than ran at the same time.
    pub fn with<R>(&self, work: impl FnOnce(&mut WorkerState) -> R) -> Result<R, schema::Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => self.new_worker()?,
        };
        let result = work(&mut worker);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        Ok(result)
    }

    fn new_worker(&self) -> Result<WorkerState, schema::Error> {
        Ok(WorkerState {
            tx: self.codec.encoder(Kind::Tx)?,
            evm_tx: self.codec.encoder(Kind::EvmTx)?,
            calls: self.codec.encoder(Kind::Calls)?,
            keys: KeyCache::new(REMEMBERED_KEYS),
            record: Vec::new(),
            body: Vec::new(),
        })
    }
}
