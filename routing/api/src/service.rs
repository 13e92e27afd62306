//! Shared state of the endpoints: registry, graph, facts, node clients and tracker.
//!
//! # Invariants
//!
//! * A request uses one [`World`] until it ends, so a concurrent reload does not affect it.
//! * A registry that does not load leaves the previous one in place.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use planner::Graph;
use planner::swap::Market;
use registry::{AssetRef, Facts, Files, Origin, Registry};
use tokio::sync::watch;
use tokio::time::timeout;
use tracker::{ChainClients, Tracker};

use crate::config::Config;
use crate::lists::Lists;
use crate::local_index::LocalIndex;
use crate::meter;
use crate::pools::{self, KnownMarket, Markets, PoolReaders};
use crate::prices::PriceCache;
use crate::quotes::Quoter;
use crate::refresh;

/// Pause after the first queries about the chains, if some failed; it doubles up to the interval of the refreshes.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Registry, graph and latest chain facts.
#[derive(Debug, Clone)]
pub struct World {
    /// From files.
    pub registry: Arc<Registry>,
    /// Made from it.
    pub graph: Arc<Graph>,
    /// From nodes.
    pub facts: Arc<Facts>,
    /// From nodes, by chain id.
    pub(crate) markets: Arc<Markets>,
}

/// When the registry in use was read.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) at: Instant,
    /// Whether a later attempt failed.
    pub(crate) has_failed: bool,
    /// Its files.
    pub(crate) files: Files,
}

impl Loaded {
    fn now(files: Files) -> Self {
        Self { at: Instant::now(), has_failed: false, files }
    }
}

/// A routing service.
pub struct Service {
    world: RwLock<World>,
    /// Notifies the tracker of a reload.
    registry: watch::Sender<Arc<Registry>>,
    tracker: Arc<Tracker>,
    loaded: Mutex<Loaded>,
    pub(crate) quoter: Quoter,
    pub(crate) lists: Lists,
    pub(crate) config: Config,
    /// The index of this process, if it has one.
    pub(crate) local: Option<Arc<dyn LocalIndex>>,
    pub(crate) version: String,
}

/// Why a service does not start or reload.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The registry does not load.
    #[error(transparent)]
    Registry(#[from] registry::LoadError),
    /// The database of tracked transfers does not open.
    #[error(transparent)]
    Tracker(#[from] tracker::Error),
}

impl Service {
    /// A service over a registry, with the database of tracked transfers in `data`.
    ///
    /// # Errors
    /// If the database does not open.
    pub fn open(registry: Registry, data: &Path, config: Config, version: &str) -> Result<Self, Error> {
        let registry = Arc::new(registry);
        let (sender, receiver) = watch::channel(Arc::clone(&registry));
        let tracker = Arc::new(Tracker::open(data, receiver, config.tracker.clone())?);
        let graph = Arc::new(Graph::new(&registry));
        meter::start();
        meter::set_registry(&registry);
        Ok(Self {
            world: RwLock::new(World { registry, graph, facts: Arc::default(), markets: Arc::default() }),
            registry: sender,
            tracker,
            loaded: Mutex::new(Loaded::now(Files::default())),
            quoter: Quoter::new(config.quote_age, config.query_timeout),
            lists: Lists::default(),
            config,
            local: None,
            version: version.to_owned(),
        })
    }

    /// Reads balances of the chain that `local` has from there.
    #[must_use]
    pub fn with_local(self, local: Option<Arc<dyn LocalIndex>>) -> Self {
        Self { local, ..self }
    }

    /// Current world.
    pub fn world(&self) -> World {
        self.world.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tracker of registered transfers.
    pub fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// When the registry in use was read.
    pub(crate) fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the files that the registry in use was made of, so that [`Service::reload`] keeps their last good versions.
    pub fn set_files(&self, files: Files) {
        meter::set_files(&files);
        self.loaded().files = files;
    }

    pub(crate) fn clients(&self) -> &ChainClients {
        self.tracker.clients()
    }

    /// Replaces the registry for all later requests.
    pub fn replace(&self, registry: Registry) {
        let registry = Arc::new(registry);
        let graph = Arc::new(Graph::new(&registry));
        {
            let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
            world.registry = Arc::clone(&registry);
            world.graph = graph;
        }
        meter::set_registry(&registry);
        let mut loaded = self.loaded();
        *loaded = Loaded::now(std::mem::take(&mut loaded.files));
        drop(loaded);
        self.registry.send_replace(registry);
    }

    /// Replaces the chain facts.
    pub fn learn(&self, facts: Facts) {
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        let prices = Arc::clone(&world.facts.prices);
        world.facts = Arc::new(Facts { prices, ..facts });
    }

    /// Asks the price feed for prices periodically until `stop`.
    pub async fn follow_prices(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let cache =
            self.config.prices.as_ref().map(|source| PriceCache::new(source, self.config.query_timeout));
        let mut cache = match cache {
            Some(Ok(cache)) => cache,
            Some(Err(error)) => {
                tracing::error!(%error, "no price feed");
                return stop.await;
            }
            None => return stop.await,
        };
        loop {
            let world = self.world();
            tokio::select! {
                () = &mut stop => return,
                prices = cache.refresh(&world.registry) => self.set_prices(prices),
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(cache.pause()) => {}
                // A new registry has other tokens.
                () = self.reloaded(&world.registry) => {}
            }
        }
    }

    /// Replaces the prices of the feed, by CoinGecko's names.
    pub fn set_prices(&self, prices: HashMap<String, String>) {
        meter::set_prices(prices.len());
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        if *world.facts.prices != prices {
            world.facts = Arc::new(Facts { prices: Arc::new(prices), ..Facts::clone(&world.facts) });
        }
    }

    /// Replaces the pools of a chain, as they were read at a time.
    pub fn learn_market(&self, market: Market, read_at: Instant) {
        let known = KnownMarket::new(Arc::new(market), read_at, false);
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut world.markets).insert(known.market.chain.clone(), Arc::new(known));
    }

    /// Reads the pools of each L1 once a block until `stop`.
    pub async fn follow_pools(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut readers = PoolReaders::new();
        loop {
            let world = self.world();
            tokio::select! {
                () = &mut stop => return,
                markets = readers.refresh(self.clients(), &world.registry, &world.markets) => {
                    self.world.write().unwrap_or_else(PoisonError::into_inner).markets = Arc::new(markets);
                }
            }
            let block = pools::chains(&world.registry).map(|(_, chain)| chain.block_seconds.max(1)).min();
            let block = Duration::from_secs(block.map_or(60, u64::from));
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(block) => {}
                () = self.reloaded(&world.registry) => {}
            }
        }
    }

    /// Refreshes the chain facts periodically until `stop`; sooner at first while queries fail, because without facts a
    /// route may be missing.
    pub async fn refresh(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut retry = FIRST_RETRY;
        loop {
            let world = self.world();
            let has_failed = tokio::select! {
                () = &mut stop => return,
                (facts, has_failed) = refresh::query_facts(self.clients(), &world.registry, &world.facts) => {
                    self.learn(facts);
                    has_failed
                }
            };
            let pause = if has_failed { retry.min(self.config.refresh) } else { self.config.refresh };
            retry = retry.saturating_mul(2).min(self.config.refresh);
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(pause) => {}
                // The chains of a new registry have no facts yet.
                () = self.reloaded(&world.registry) => retry = FIRST_RETRY,
            }
        }
    }

    async fn reloaded(&self, old: &Arc<Registry>) {
        let mut registry = self.registry.subscribe();
        // The sender lives as long as the service.
        drop(registry.wait_for(|new| !Arc::ptr_eq(new, old)).await);
    }

    /// Adds the ERC-20 behind a wrapped token to the facts; queries it if it is unknown.
    pub(crate) async fn with_contract(&self, world: &World, asset: AssetRef) -> Arc<Facts> {
        let registry = &*world.registry;
        let Origin::Wrapped { parent, .. } = registry[asset].origin else { return Arc::clone(&world.facts) };
        if world.facts.contract(registry, parent).is_some() {
            return Arc::clone(&world.facts);
        }
        let (chain, denom) = (&registry[registry[parent].chain], &registry[parent].denom);
        let query = refresh::query_contract(self.clients(), chain, denom);
        let Ok(Ok(Some(contract))) = timeout(self.config.query_timeout, query).await else {
            return Arc::clone(&world.facts);
        };
        let mut facts = Facts::clone(&world.facts);
        facts.contracts.insert((chain.id.clone(), denom.clone()), contract);
        Arc::new(facts)
    }

    /// Reads the registry in `dir` again. A file of a public registry that is broken stays in its last good version.
    ///
    /// # Errors
    /// If it does not load; the previous one then stays in use.
    pub fn reload(&self, dir: &Path) -> Result<Vec<registry::Problem>, Error> {
        let before = self.loaded().files.clone();
        let loaded = registry::load_again(dir, &before).inspect_err(|_| {
            meter::set_stale();
            self.loaded().has_failed = true;
        })?;
        self.replace(loaded.registry);
        self.set_files(loaded.files);
        Ok(loaded.problems)
    }
}
