//! Shared input of derivation: the chain's rules, and a pool of per-worker encoders and buffers that are expensive to
//! create.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use chain::Vm;
use chain::evm::flavour::Flavour;
use chain::key::KeyCache;
use proto::json::Registry;
use schema::payload::{Codec, Encoder, Kind};

/// Public keys in a worker's address cache: 66 bytes each, twice.
const REMEMBERED_KEYS: usize = 1 << 14;

/// The rules of one chain.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The chain's virtual machine.
    pub vm: Vm,
    /// Its EVM, if it has one.
    pub flavour: Flavour,
    /// Human-readable part of its account addresses, e.g. `init`.
    pub prefix: String,
    /// Its protobuf descriptors.
    pub registry: Arc<Registry>,
    /// SHA-256 of the descriptor set; identifies the registry.
    pub descriptors: [u8; 32],
    /// True if answers are checked against the hashes that commit to them.
    pub verified: bool,
}

/// Encoders, caches and buffers of one worker. Used by one thread at a time.
#[derive(Debug)]
pub struct WorkerState {
    pub(crate) tx: Encoder,
    pub(crate) evm_tx: Encoder,
    pub(crate) calls: Encoder,
    pub(crate) keys: KeyCache,
    /// Buffer for the record being rendered.
    pub(crate) record: Vec<u8>,
    /// Buffer for the `tx` member of that record.
    pub(crate) body: Vec<u8>,
}

/// Capacity of a buffer that is kept: few records are larger.
const MAX_KEPT_BYTES: usize = 4 << 20;

impl WorkerState {
    /// Frees buffers that a large record has grown.
    fn release(&mut self) {
        for buffer in [&mut self.record, &mut self.body] {
            if buffer.capacity() > MAX_KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

/// A pool of worker states, and the current rules.
#[derive(Debug)]
pub struct WorkerPool {
    codec: Arc<Codec>,
    rules: RwLock<Arc<Rules>>,
    idle: Mutex<Vec<WorkerState>>,
}

impl WorkerPool {
    /// A pool for the database that `codec` was loaded from.
    pub fn new(codec: Arc<Codec>, rules: Rules) -> Self {
        Self { codec, rules: RwLock::new(Arc::new(rules)), idle: Mutex::default() }
    }

    /// The compression of records.
    pub(crate) fn codec(&self) -> Arc<Codec> {
        Arc::clone(&self.codec)
    }

    /// The current rules.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the descriptors, after an upgrade of the chain.
    pub fn set_registry(&self, registry: Arc<Registry>, descriptors: [u8; 32]) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::new(Rules { registry, descriptors, ..(**rules).clone() });
    }

    /// Runs `work` with an idle worker state, or a new one. The pool never holds more states than ran concurrently.
    pub fn with<R>(&self, work: impl FnOnce(&mut WorkerState) -> R) -> Result<R, schema::Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => self.new_worker()?,
        };
        let result = work(&mut worker);
        worker.release();
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
