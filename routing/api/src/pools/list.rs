//! Which pools a chain has: by the lists of its modules, by the registry, and by the events of their creation.
//!
//! `stableswap` lists its pools without their addresses. Those that the registry does not name are looked up in the
//! node's index of transactions. A listed pool whose address stays unknown is left out with that reason.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use node::{Error, MoveView, Rest};
use serde_json::Value;
use tracker::Clients;

use super::views::{self, Listed, PAGE};

/// Interval between two reads of the lists of pools.
const LIST_EVERY: Duration = Duration::from_mins(1);
/// Longest pause before a pool that the chain refused is queried again, or before another search.
const MOST_PAUSE: Duration = Duration::from_hours(6);
/// Most pools of a kind; anyone can create one.
const MAX_POOLS: usize = 500;
/// Transactions per page of a search, the most that nodes allow.
const TXS: u32 = 100;
/// Most pages of a search, whatever total the node reports.
const MAX_PAGES: u32 = 20;
/// The event of a `StableSwap` pool's creation.
const CREATED: &str = "0x1::stableswap::CreatePoolEvent";

/// The pools of a chain.
#[derive(Default)]
pub(super) struct List {
    pub(super) weighted: Vec<Listed>,
    /// LP tokens.
    pub(super) stable: Vec<String>,
    /// Metadata addresses of Minitswap's vouchers.
    pub(super) vouchers: Vec<[u8; 32]>,
    /// Pools without a quote, with the reason.
    left_out: BTreeMap<String, String>,
    refused: BTreeMap<String, (String, Pause)>,
    /// LP tokens of `StableSwap` pools whose creation the node's index has.
    created: Vec<String>,
    search: Pause,
    /// When it is read again; `None` before the first time.
    due: Option<Instant>,
    is_read: bool,
    rereads: Pause,
}

/// A pause that doubles each time that it begins.
#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    length: Duration,
}

impl Pause {
    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    fn begin(&mut self, shortest: Duration, longest: Duration) -> Instant {
        self.length = self.length.saturating_mul(2).clamp(shortest, longest);
        *self.until.insert(Instant::now() + self.length)
    }
}

impl List {
    /// Reads it if its time has come. Whether it may be used now.
    pub(super) async fn refresh(
        &mut self,
        clients: &Clients,
        configured: &[&String],
        (chain, height): (&str, u64),
    ) -> Result<bool, Error> {
        if self.due.is_some_and(|due| Instant::now() < due) {
            return Ok(self.is_read);
        }
        let Ok(rest) = clients.rest() else { return Ok(false) };
        let before = std::mem::take(&mut self.left_out);
        let outcome = self.read(clients, rest, configured, height).await;
        if outcome.is_err() {
            self.left_out = before;
        } else if self.left_out != before {
            for (pool, reason) in &self.left_out {
                tracing::info!(chain, pool, reason, "pool left out");
            }
        }
        outcome?;
        self.refused.retain(|pool, _| self.left_out.contains_key(pool));
        (self.due, self.is_read) = (Some(Instant::now() + LIST_EVERY), true);
        Ok(true)
    }

    /// After a read of all states that succeeded.
    pub(super) fn confirm(&mut self) {
        self.rereads = Pause::default();
    }

    /// After a read of all states that the chain refused, whichever pool it is for: each is queried alone again.
    pub(super) fn distrust(&mut self) {
        (self.weighted, self.stable, self.is_read) = (Vec::new(), Vec::new(), false);
        self.due = Some(self.rereads.begin(Duration::from_secs(1), LIST_EVERY));
    }

    async fn read(
        &mut self,
        clients: &Clients,
        rest: &Rest,
        configured: &[&String],
        height: u64,
    ) -> Result<(), Error> {
        let pairs = pairs(rest, height).await?;
        self.limit("dex", pairs.len());
        let known = std::mem::take(&mut self.weighted);
        for pair in pairs {
            if known.contains(&pair) {
                self.weighted.push(pair);
            } else if views::object(&pair.id).is_none() {
                self.left_out.insert(pair.id, "its LP token is no Move object".to_owned());
            } else if self.views(rest, &pair.id, &views::weighted(&pair.id), height).await?.is_some() {
                // A concentrated pool is in the list without being one of this module: its views abort.
                self.weighted.push(pair);
            }
        }
        let (vouchers, beside) = match minitswap_pools(rest, height).await {
            Err(Error::Refused { message, .. }) => {
                self.left_out.insert("minitswap".to_owned(), message);
                (Vec::new(), Vec::new())
            }
            pools => pools?,
        };
        self.limit("minitswap", vouchers.len());
        self.vouchers = vouchers;
        let named: Vec<String> = configured.iter().map(|id| (*id).clone()).chain(beside).collect();
        self.read_stable(clients, rest, named, height).await
    }

    async fn read_stable(
        &mut self,
        clients: &Clients,
        rest: &Rest,
        named: Vec<String>,
        height: u64,
    ) -> Result<(), Error> {
        let mut listed = match rest.move_views(&[views::stable_pools()], height).await {
            Err(Error::Refused { message, .. }) => {
                self.left_out.insert("stableswap".to_owned(), message);
                Vec::new()
            }
            replies => replies?.first().and_then(Value::as_array).cloned().unwrap_or_default(),
        };
        if listed.len() >= usize::from(PAGE) {
            let why = format!(
                "the chain lists {PAGE} without their addresses; others must be in the node's index or in `pools`"
            );
            self.left_out.insert("more pools of stableswap".to_owned(), why);
        }
        self.stable.clear();
        for id in named.into_iter().chain(self.created.clone()) {
            self.add_stable(rest, id, &mut listed, height).await?;
        }
        let mut why = "its address is not in the node's index of transactions".to_owned();
        if !listed.is_empty() && self.search.is_over() {
            match created(clients).await {
                Ok(found) => {
                    for id in found.into_iter().filter(|id| !self.created.contains(id)).collect::<Vec<_>>() {
                        self.created.push(id.clone());
                        self.add_stable(rest, id, &mut listed, height).await?;
                    }
                }
                Err(error) => why = format!("its address was not found: {error}"),
            }
            self.search.begin(LIST_EVERY, MOST_PAUSE);
        }
        for pool in listed {
            let coins = pool["coin_denoms"].to_string();
            self.left_out.insert(
                format!("stableswap pool of {coins}"),
                format!("{why}; name its LP token as one of the venue's `pools`"),
            );
        }
        Ok(())
    }

    /// Adds a `StableSwap` pool if the chain has it, and takes it out of those that are listed without an address.
    async fn add_stable(
        &mut self,
        rest: &Rest,
        id: String,
        listed: &mut Vec<Value>,
        height: u64,
    ) -> Result<(), Error> {
        if self.stable.contains(&id) {
            return Ok(());
        }
        let replies = self.views(rest, &id, &[views::stable(&id)], height).await?;
        if let Some(state) = replies.as_ref().and_then(|replies| replies.first()) {
            if let Some(at) = listed.iter().position(|pool| pool == state) {
                listed.remove(at);
            }
            self.stable.push(id);
        }
        Ok(())
    }

    /// The replies of a pool's views; `None` if the chain refuses them.
    async fn views(
        &mut self,
        rest: &Rest,
        pool: &str,
        views: &[MoveView],
        height: u64,
    ) -> Result<Option<Vec<Value>>, Error> {
        if let Some((reason, pause)) = self.refused.get(pool)
            && !pause.is_over()
        {
            self.left_out.insert(pool.to_owned(), reason.clone());
            return Ok(None);
        }
        match rest.move_views(views, height).await {
            Err(Error::Refused { message, .. }) => {
                let (reason, pause) = self.refused.entry(pool.to_owned()).or_default();
                reason.clone_from(&message);
                pause.begin(LIST_EVERY, MOST_PAUSE);
                self.left_out.insert(pool.to_owned(), message);
                Ok(None)
            }
            replies => {
                self.refused.remove(pool);
                replies.map(Some)
            }
        }
    }

    fn limit(&mut self, module: &str, pools: usize) {
        if pools >= MAX_POOLS {
            self.left_out.insert(format!("more pools of {module}"), format!("at most {MAX_POOLS} are read"));
        }
    }
}

/// All pairs of `dex`, page by page.
async fn pairs(rest: &Rest, height: u64) -> Result<Vec<Listed>, Error> {
    let mut all: Vec<Listed> = Vec::new();
    loop {
        let after = all.last().map(|last| [&last.coins[0][..], &last.coins[1], &last.id]);
        let replies = rest.move_views(&[views::pairs(after)], height).await?;
        let page = replies.first().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let denom = |pair: &Value, name: &str| pair[name].as_str().unwrap_or_default().to_owned();
        all.extend(page.iter().map(|pair| Listed {
            id: denom(pair, "liquidity_token"),
            coins: vec![denom(pair, "coin_a"), denom(pair, "coin_b")],
        }));
        if page.len() < usize::from(PAGE) || all.len() >= MAX_POOLS {
            return Ok(all);
        }
    }
}

/// The metadata addresses of Minitswap's vouchers, page by page, and the LP tokens of the `StableSwap` pools beside them.
async fn minitswap_pools(rest: &Rest, height: u64) -> Result<(Vec<[u8; 32]>, Vec<String>), Error> {
    let (mut vouchers, mut beside) = (Vec::new(), Vec::new());
    loop {
        let replies = rest.move_views(&[views::minitswap_pools(vouchers.last())], height).await?;
        let page = replies.first().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let before = vouchers.len();
        for pool in page {
            let address = |name: &str| pool[name].as_str().and_then(views::address);
            vouchers.extend(address("ibc_op_init_metadata"));
            beside.extend(address("stableswap_pool").map(views::denom));
        }
        if vouchers.len() - before < usize::from(PAGE) || vouchers.len() >= MAX_POOLS {
            return Ok((vouchers, beside));
        }
    }
}

/// The LP tokens of the `StableSwap` pools whose creation the node's index has.
async fn created(clients: &Clients) -> Result<Vec<String>, String> {
    let comet = clients.comet().map_err(|error| error.to_string())?;
    let query = format!("move.type_tag='{CREATED}'");
    let mut created = Vec::new();
    for page in 1..=MAX_PAGES {
        let found = comet.tx_search(&query, page, TXS, false).await;
        let (txs, total) = found.map_err(|error| error.to_string())?;
        let events = txs.iter().flat_map(|tx| &tx.events);
        let tokens = events.filter(|event| event.get("type_tag") == Some(CREATED));
        let tokens = tokens.filter_map(|event| views::address(event.get("liquidity_token")?));
        created.extend(tokens.map(views::denom));
        if u64::from(page) * u64::from(TXS) >= total || created.len() >= MAX_POOLS {
            break;
        }
    }
    Ok(created)
}
