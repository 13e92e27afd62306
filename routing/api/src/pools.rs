//! State of the L1's pools: read once a block, in one request per chain, and kept as an immutable market.
//!
//! # Invariants
//!
//! * All pools of a market have the state of one height.
//! * A node that fails leaves the last market with its age; nothing is quoted from one over [`MAX_AGE`].
//! * A pool that cannot be quoted is left out, with a reason in the log; a failed query never counts as "no pool".

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use node::{Error, MoveView, Rest};
use planner::swap::{Market, MinitswapPool, Pool, PoolState, StablePool, WeightedPool};
use registry::{Chain, ChainRef, Registry};
use serde_json::Value;
use tracker::ChainClients;

/// Age up to which a market is quoted: some blocks, as long as a widget shows a quote.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(30);
/// Interval between two reads of the lists of pools.
const LIST_EVERY: Duration = Duration::from_mins(1);
/// Most entries of a list that the modules return.
const PAGE: u8 = 30;
/// Most pools of a kind; anyone can create one.
const MAX_POOLS: usize = 500;

/// The markets of all chains, with the time of the last successful read.
pub(crate) type Markets = BTreeMap<String, Arc<KnownMarket>>;

/// A market and when it was read.
#[derive(Debug)]
pub(crate) struct KnownMarket {
    pub(crate) market: Market,
    pub(crate) read_at: Instant,
}

/// A weighted pool of the list: LP token and coins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    id: String,
    coins: Vec<String>,
}

/// What is known of a chain between two reads.
#[derive(Default)]
pub(crate) struct PoolReader {
    listed_at: Option<Instant>,
    weighted: Vec<Listed>,
    stable: Vec<String>,
    /// Metadata addresses of Minitswap's vouchers.
    vouchers: Vec<[u8; 32]>,
    left_out: BTreeMap<String, String>,
}

/// Chains whose pools are read: the L1s with a venue.
pub(crate) fn chains(registry: &Registry) -> impl Iterator<Item = (ChainRef, &Chain)> {
    registry.chains().filter(|(reference, chain)| {
        let has_venue = registry.venues().iter().any(|venue| venue.chain == *reference);
        chain.l1 && chain.vm == chain::Vm::Move && has_venue && !chain.endpoints.rest.is_empty()
    })
}

impl PoolReader {
    /// The market at the chain's latest height; `None` if the height is that of `before`.
    pub(crate) async fn read(
        &mut self,
        clients: &ChainClients,
        (registry, reference): (&Registry, ChainRef),
        before: Option<&Market>,
    ) -> Result<Option<Market>, String> {
        let chain = &registry[reference];
        let clients = clients.of(chain);
        let rest = clients.rest().map_err(|error| error.to_string())?;
        let latest = rest.get("/cosmos/base/tendermint/v1beta1/blocks/latest", None).await.map_err(text)?;
        let latest: Value = serde_json::from_slice(&latest).map_err(|error| error.to_string())?;
        let header = &latest["block"]["header"];
        let height = header["height"].as_str().and_then(|height| height.parse::<u64>().ok());
        let time = header["time"].as_str().and_then(|time| chain::time::Timestamp::parse(time).ok());
        let time = time.and_then(|time| u64::try_from(time.unix_nanos() / 1_000_000_000).ok());
        let (Some(height), Some(time)) = (height, time) else {
            return Err("the latest block has no height or no time".to_owned());
        };
        match before {
            Some(before) if height == before.height => return Ok(None),
            Some(before) if height < before.height => {
                return Err(format!("the node is at height {height}, {} was read before", before.height));
            }
            _ => {}
        }
        if self.listed_at.is_none_or(|at| at.elapsed() >= LIST_EVERY) {
            self.list(rest, registry, reference, height).await.map_err(text)?;
            self.listed_at = Some(Instant::now());
        }
        match self.state(rest, height).await {
            Ok(pools) => Ok(Some(Market::new(chain.id.clone(), height, time, pools))),
            Err(reason) => {
                // One pool that aborts fails the batch; the next read lists them again.
                self.listed_at = None;
                Err(reason)
            }
        }
    }

    async fn list(
        &mut self,
        rest: &Rest,
        registry: &Registry,
        chain: ChainRef,
        height: u64,
    ) -> Result<(), Error> {
        let mut left_out = BTreeMap::new();
        let mut weighted: Vec<Listed> = Vec::new();
        let pairs = pairs(rest, height).await?;
        let pair_count = pairs.len();
        for pair in pairs {
            let denom = |name: &str| pair[name].as_str().unwrap_or_default().to_owned();
            let listed =
                Listed { id: denom("liquidity_token"), coins: vec![denom("coin_a"), denom("coin_b")] };
            // A concentrated pool is in the list without being one of this module.
            match config_exists(rest, &listed, height, &self.weighted).await? {
                None => weighted.push(listed),
                Some(why) => drop(left_out.insert(listed.id, why)),
            }
        }
        let configured = registry.venues().iter().filter(|venue| venue.chain == chain);
        let mut stable = Vec::new();
        for id in configured.flat_map(|venue| &venue.pools) {
            match rest.move_views(&[stable_view(id)], height).await {
                Ok(_) => stable.push(id.clone()),
                Err(Error::Refused { message, .. }) => drop(left_out.insert(id.clone(), message)),
                Err(error) => return Err(error),
            }
        }
        let vouchers = match vouchers(rest, height).await {
            Ok(vouchers) => vouchers,
            Err(Error::Refused { message, .. }) => {
                left_out.insert("minitswap".to_owned(), message);
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        for (module, pools) in [("dex", pair_count), ("minitswap", vouchers.len())] {
            if pools >= MAX_POOLS {
                left_out.insert(format!("more pools of {module}"), format!("at most {MAX_POOLS} are read"));
            }
        }
        (self.weighted, self.stable, self.vouchers) = (weighted, stable, vouchers);
        if self.left_out != left_out {
            for (pool, reason) in &left_out {
                tracing::info!(chain = registry[chain].id, pool, reason, "pool left out");
            }
            self.left_out = left_out;
        }
        Ok(())
    }

    /// All states in one request.
    async fn state(&mut self, rest: &Rest, height: u64) -> Result<Vec<Pool>, String> {
        let mut views = Vec::new();
        for pool in &self.weighted {
            views.extend(weighted_views(&pool.id));
        }
        views.extend(self.stable.iter().map(|id| stable_view(id)));
        let detail = |voucher: &[u8; 32]| MoveView {
            module: "minitswap",
            function: "get_pools_detail",
            args: vec![voucher.to_vec()],
        };
        views.extend(self.vouchers.iter().map(detail));
        if !self.vouchers.is_empty() {
            views.push(MoveView { module: "minitswap", function: "get_module_store", args: Vec::new() });
        }
        if views.is_empty() {
            return Ok(Vec::new());
        }
        let replies = rest.move_views(&views, height).await;
        if matches!(replies, Err(Error::Refused { .. })) {
            // Whichever pool it is, the next list leaves it out.
            self.weighted.clear();
        }
        let mut replies = replies.map_err(text)?.into_iter();
        let mut next = || replies.next().unwrap_or_default();
        let mut pools = Vec::new();
        for Listed { id, coins } in &self.weighted {
            let (info, config) = (next(), next());
            let state = WeightedPool::from_views(&info, &config).map_err(|error| format!("{id}: {error}"))?;
            pools.push(Pool { id: id.clone(), coins: coins.clone(), state: PoolState::Weighted(state) });
        }
        for id in &self.stable {
            let (coins, state) = StablePool::from_view(&next()).map_err(|error| format!("{id}: {error}"))?;
            pools.push(Pool { id: id.clone(), coins, state: PoolState::Stable(state) });
        }
        let details: Vec<Value> = self.vouchers.iter().map(|_| next()).collect();
        let module = next();
        for detail in details {
            let (voucher, state) =
                MinitswapPool::from_views(&detail, &module).map_err(|error| format!("minitswap: {error}"))?;
            let coins = vec![voucher.clone(), INIT.to_owned()];
            pools.push(Pool { id: voucher, coins, state: PoolState::Minitswap(state) });
        }
        Ok(pools)
    }
}

/// The coin that the module pays for a voucher.
const INIT: &str = "uinit";

/// All pairs of `dex`, page by page.
async fn pairs(rest: &Rest, height: u64) -> Result<Vec<Value>, Error> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        // The next page is after the last pair: its coins and its LP token.
        let option = |name: &str| match all.last().and_then(|pair| pair[name].as_str()) {
            None => vec![0],
            Some(denom) => bcs::to_bytes(&Some(denom)).unwrap_or_default(),
        };
        let args = vec![option("coin_a"), option("coin_b"), option("liquidity_token"), vec![PAGE]];
        let view = MoveView { module: "dex", function: "get_all_pairs_by_denom", args };
        let replies = rest.move_views(&[view], height).await?;
        let page = replies.first().and_then(Value::as_array).cloned().unwrap_or_default();
        let is_last = page.len() < usize::from(PAGE);
        all.extend(page);
        if is_last || all.len() >= MAX_POOLS {
            return Ok(all);
        }
    }
}

/// The metadata addresses of Minitswap's vouchers, page by page.
async fn vouchers(rest: &Rest, height: u64) -> Result<Vec<[u8; 32]>, Error> {
    let mut all: Vec<[u8; 32]> = Vec::new();
    loop {
        let after = all.last().map_or(vec![0], |last| [&[1][..], last].concat());
        let args = vec![after, u64::from(PAGE).to_le_bytes().to_vec()];
        let view = MoveView { module: "minitswap", function: "get_pools_detail_list", args };
        let replies = rest.move_views(&[view], height).await?;
        let page = replies.first().and_then(Value::as_array).into_iter().flatten();
        let before = all.len();
        all.extend(page.filter_map(|pool| address(pool["ibc_op_init_metadata"].as_str()?)));
        if all.len() - before < usize::from(PAGE) || all.len() >= MAX_POOLS {
            return Ok(all);
        }
    }
}

/// The reason why a listed pair is no weighted pool; `None` if it is one.
async fn config_exists(
    rest: &Rest,
    pool: &Listed,
    height: u64,
    known: &[Listed],
) -> Result<Option<String>, Error> {
    if known.contains(pool) {
        return Ok(None);
    }
    if object(&pool.id).is_none() {
        return Ok(Some("its LP token is no Move object".to_owned()));
    }
    match rest.move_views(&weighted_views(&pool.id), height).await {
        Ok(_) => Ok(None),
        Err(Error::Refused { message, .. }) => Ok(Some(format!("not a pool of 0x1::dex: {message}"))),
        Err(error) => Err(error),
    }
}

/// The state of a weighted pool.
fn weighted_views(pool: &str) -> [MoveView; 2] {
    [dex_view("get_pool_info", pool), dex_view("get_config", pool)]
}

fn dex_view(function: &'static str, pool: &str) -> MoveView {
    MoveView { module: "dex", function, args: vec![object(pool).unwrap_or_default().to_vec()] }
}

fn stable_view(pool: &str) -> MoveView {
    MoveView {
        module: "stableswap",
        function: "get_pool",
        args: vec![object(pool).unwrap_or_default().to_vec()],
    }
}

/// The address of an LP token.
fn object(denom: &str) -> Option<[u8; 32]> {
    address(denom.strip_prefix("move/")?)
}

/// 32 bytes of a Move address, whose leading zeros may be missing.
fn address(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode(format!("{digits:0>64}")).ok()?.try_into().ok()
}

fn text(error: Error) -> String {
    error.to_string()
}

/// The markets of a registry's chains, read again.
pub(crate) struct PoolReaders(BTreeMap<String, PoolReader>);

impl PoolReaders {
    pub(crate) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Reads each chain; a chain that fails keeps its market of `before`, which grows old.
    pub(crate) async fn refresh(
        &mut self,
        clients: &ChainClients,
        registry: &Registry,
        before: &Markets,
    ) -> Markets {
        let mut readers = std::mem::take(&mut self.0);
        let reads = chains(registry).map(|(reference, chain)| {
            let mut reader = readers.remove(&chain.id).unwrap_or_default();
            async move {
                let known = before.get(&chain.id);
                let market = known.map(|known| &known.market);
                let outcome = reader.read(clients, (registry, reference), market).await;
                (chain.id.clone(), reader, known, outcome)
            }
        });
        let mut markets = Markets::new();
        for (chain, reader, known, outcome) in futures_util::future::join_all(reads).await {
            let now = Instant::now();
            let market = match outcome {
                Ok(Some(market)) => Some(Arc::new(KnownMarket { market, read_at: now })),
                Ok(None) => {
                    known.map(|known| Arc::new(KnownMarket { market: known.market.clone(), read_at: now }))
                }
                Err(reason) => {
                    let age = known.map(|known| known.read_at.elapsed());
                    tracing::debug!(chain, reason, ?age, "pools were not read");
                    known.cloned()
                }
            };
            markets.extend(market.map(|market| (chain.clone(), market)));
            self.0.insert(chain, reader);
        }
        markets
    }
}
