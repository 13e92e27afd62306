//! State of the L1's pools: read once a block, in one request per chain, and kept as an immutable market.
//!
//! # Invariants
//!
//! * All pools of a market have the state of one height.
//! * A node that fails leaves the last market with its age; nothing is quoted from one over [`MAX_AGE`].
//! * Nothing is quoted from a node that syncs, nor from a chain whose blocks were seen as they came and that then stood
//!   still for [`MAX_BLOCK_AGE`]. A chain that stood still already when it was first read is quoted: a node at rest, as one
//!   of a recording, differs from a halted chain by nothing that it reports. Routes name the block then.
//! * A pool that cannot be quoted is left out, with a reason in the log; a failed query never counts as "no pool".

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use node::{Error, Rest};
use planner::swap::{Market, MinitswapPool, Pool, PoolState, StablePool, WeightedPool};
use registry::{Chain, ChainRef, Registry};
use serde_json::Value;
use tracker::ChainClients;

use self::list::List;
use self::views::Listed;

mod list;
mod views;

/// Age up to which a market is quoted: some blocks, as long as a widget shows a quote.
const MAX_AGE: Duration = Duration::from_secs(30);
/// Age of a chain's last block from which the chain, or its node, stands still.
const MAX_BLOCK_AGE: Duration = Duration::from_mins(1);

/// The markets of all chains, with the time of the last successful read.
pub(crate) type Markets = BTreeMap<String, Arc<KnownMarket>>;

/// A market and when it was read.
#[derive(Debug)]
pub(crate) struct KnownMarket {
    pub(crate) market: Arc<Market>,
    read_at: Instant,
    /// Whether a block was seen when it was new.
    is_live: bool,
}

impl KnownMarket {
    /// A market that was read at a time.
    pub(crate) fn new(market: Arc<Market>, read_at: Instant, was_live: bool) -> Self {
        let is_live = was_live || block_age(market.time) <= MAX_BLOCK_AGE;
        Self { market, read_at, is_live }
    }

    /// Why nothing is quoted from it.
    pub(crate) fn stale(&self) -> Option<String> {
        let (chain, read, block) = (&self.market.chain, self.read_at.elapsed(), block_age(self.market.time));
        if read > MAX_AGE {
            let (age, most) = (read.as_secs(), MAX_AGE.as_secs());
            return Some(format!(
                "the pools of {chain} were last read {age} s ago, and are quoted up to {most} s; try again later"
            ));
        }
        (self.is_live && block > MAX_BLOCK_AGE).then(|| {
            let (age, most) = (block.as_secs(), MAX_BLOCK_AGE.as_secs());
            format!(
                "the last block of {chain} is {age} s old, and its pools are quoted up to {most} s; try again later"
            )
        })
    }

    /// Whether its block is one of a chain that stands still.
    pub(crate) fn stands_still(&self) -> bool {
        block_age(self.market.time) > MAX_BLOCK_AGE
    }
}

/// Time since a block, by its time in Unix seconds.
fn block_age(time: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(time))
}

/// What is known of a chain between two reads.
#[derive(Default)]
struct PoolReader {
    list: List,
}

/// Chains whose pools are read: the L1s with a venue.
pub(crate) fn chains(registry: &Registry) -> impl Iterator<Item = (ChainRef, &Chain)> {
    registry.chains().filter(|(reference, _)| has_pools(registry, *reference))
}

/// Whether the pools of a chain are read.
pub(crate) fn has_pools(registry: &Registry, reference: ChainRef) -> bool {
    let chain = &registry[reference];
    let has_venue = registry.venues().iter().any(|venue| venue.chain == reference);
    chain.l1 && chain.vm == chain::Vm::Move && has_venue && !chain.endpoints.rest.is_empty()
}

impl PoolReader {
    /// The market at the chain's latest height; `None` if the height is that of `before`.
    async fn read(
        &mut self,
        clients: &ChainClients,
        (registry, reference): (&Registry, ChainRef),
        before: Option<&Market>,
    ) -> Result<Option<Market>, String> {
        let chain = &registry[reference];
        let clients = clients.of(chain);
        let rest = clients.rest().map_err(|error| error.to_string())?;
        let (height, time) = latest(rest).await?;
        match before {
            Some(before) if height == before.height => return Ok(None),
            Some(before) if height < before.height => {
                return Err(format!("the node is at height {height}, {} was read before", before.height));
            }
            _ => {}
        }
        let venues = registry.venues().iter().filter(|venue| venue.chain == reference);
        let configured: Vec<&String> = venues.flat_map(|venue| &venue.pools).collect();
        if !self.list.refresh(&clients, &configured, (&chain.id, height)).await.map_err(text)? {
            return Err("the state of a pool was refused; all are listed again".to_owned());
        }
        let pools = self.state(rest, height).await?;
        self.list.confirm();
        Ok(Some(Market::new(chain.id.clone(), height, time, pools)))
    }

    /// All states in one request.
    async fn state(&mut self, rest: &Rest, height: u64) -> Result<Vec<Pool>, String> {
        let List { weighted, stable, vouchers, .. } = &self.list;
        let mut queries = Vec::new();
        for pool in weighted {
            queries.extend(views::weighted(&pool.id));
        }
        queries.extend(stable.iter().map(|id| views::stable(id)));
        queries.extend(vouchers.iter().map(views::minitswap));
        if !vouchers.is_empty() {
            queries.push(views::minitswap_module());
        }
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let replies = rest.move_views(&queries, height).await;
        if matches!(replies, Err(Error::Refused { .. })) {
            self.list.distrust();
        }
        let mut replies = replies.map_err(text)?.into_iter();
        let mut next = || replies.next().unwrap_or_default();
        let List { weighted, stable, vouchers, .. } = &self.list;
        let mut pools = Vec::new();
        for Listed { id, coins } in weighted {
            let (info, config) = (next(), next());
            let state = WeightedPool::from_views(&info, &config).map_err(|error| format!("{id}: {error}"))?;
            pools.push(Pool { id: id.clone(), coins: coins.clone(), state: PoolState::Weighted(state) });
        }
        for id in stable {
            let (coins, state) = StablePool::from_view(&next()).map_err(|error| format!("{id}: {error}"))?;
            pools.push(Pool { id: id.clone(), coins, state: PoolState::Stable(state) });
        }
        let details: Vec<Value> = vouchers.iter().map(|_| next()).collect();
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

/// Height and Unix seconds of a node's last block. A node that syncs is refused: its pools are those of the past.
async fn latest(rest: &Rest) -> Result<(u64, u64), String> {
    let get = async |path: &str| {
        let reply = rest.get(&format!("/cosmos/base/tendermint/v1beta1/{path}"), None).await.map_err(text)?;
        serde_json::from_slice::<Value>(&reply).map_err(|error| error.to_string())
    };
    let latest = get("blocks/latest").await?;
    let header = &latest["block"]["header"];
    let height = header["height"].as_str().and_then(|height| height.parse::<u64>().ok());
    let time = header["time"].as_str().and_then(|time| chain::time::Timestamp::parse(time).ok());
    let time = time.and_then(|time| u64::try_from(time.unix_nanos() / 1_000_000_000).ok());
    let (Some(height), Some(time)) = (height, time) else {
        return Err("the latest block has no height or no time".to_owned());
    };
    // A node that does not tell whether it syncs is quoted like one at rest.
    if block_age(time) > MAX_BLOCK_AGE && get("syncing").await.is_ok_and(|reply| reply["syncing"] == true) {
        return Err(format!(
            "the node syncs: its last block, {height}, is {} s old",
            block_age(time).as_secs()
        ));
    }
    Ok((height, time))
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
                let market = known.map(|known| &*known.market);
                let outcome = reader.read(clients, (registry, reference), market).await;
                (chain.id.clone(), reader, known, outcome)
            }
        });
        let mut markets = Markets::new();
        for (chain, reader, known, outcome) in futures_util::future::join_all(reads).await {
            let is_live = known.is_some_and(|known| known.is_live);
            let read = |market| Arc::new(KnownMarket::new(market, Instant::now(), is_live));
            let market = match outcome {
                Ok(Some(market)) => Some(read(Arc::new(market))),
                Ok(None) => known.map(|known| read(Arc::clone(&known.market))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_stops_is_not_quoted_and_one_at_rest_is() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let at = |time, was_live| {
            let market = Market::new("l1".to_owned(), 1, time, Vec::new());
            KnownMarket::new(Arc::new(market), Instant::now(), was_live)
        };
        assert_eq!(at(now, false).stale(), None);
        assert!(at(now, false).is_live && !at(now - 100, false).is_live);
        // It stood still when it was first read.
        assert_eq!(at(now - 100, false).stale(), None);
        assert!(at(now - 100, true).stale().unwrap().starts_with("the last block of l1 is 10"));
        // A clock that is late makes no block old.
        assert_eq!(at(now + 100, true).stale(), None);
    }
}
