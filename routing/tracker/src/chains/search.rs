//! Transactions of one chain: by hash, by one event, and by the height at which a state changed.
//!
//! # Invariants
//!
//! * CometBFT RPC is queried first; REST is the fallback if RPC has no address, no index or no reply.
//! * A search has one condition that few transactions meet, because a node reads all that any condition selects. The
//!   rest is filtered here.
//! * Nothing found is no evidence of absence: an index may be pruned or incomplete.
//! * Times are those of block headers.

use std::sync::Arc;

use chain::Timestamp;
use chain::hash::Hash;
use node::{Kind, Rest, TxSearchHit};

use crate::chains::clients::Clients;
use crate::chains::limiter::Limiter;
use crate::chains::local_index::{BridgeStep, LocalChain};
use crate::chains::query_error::QueryError;
use crate::evidence::hop::TxRef;

/// A transaction, with the time of its block if the response has it.
pub(crate) type Found = (TxSearchHit, Option<Timestamp>);

/// One chain to be searched.
pub(crate) struct Search<'a> {
    pub(crate) chain: String,
    pub(crate) clients: Arc<Clients>,
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) local: LocalChain,
    /// Current time, for the circuit breaker of searches.
    pub(crate) clock: &'a dyn Fn() -> i64,
}

/// What is searched for.
pub(crate) struct Wanted<'a> {
    /// A condition that few transactions meet.
    pub(crate) condition: String,
    /// A second one, for the case that more than a page meets the first.
    pub(crate) narrower: String,
    /// The position of the event in a transaction that has it.
    pub(crate) place: &'a (dyn Fn(&TxSearchHit) -> Option<usize> + Sync),
}

/// Transactions per page, the most that nodes allow.
const PAGE: u32 = 100;
/// Ranges of blocks searched in one poll, newest first, where a node limits a search.
const RANGES: u64 = 8;

impl Search<'_> {
    /// The transaction with this hash.
    pub(crate) async fn tx(&self, hash: Hash) -> Result<Option<Found>, QueryError> {
        if let Some((tx, time)) = self.local.tx(hash) {
            return Ok(Some((tx, Some(time))));
        }
        let found = self.tx_of(hash).await;
        self.limiter.index_answered(found.as_ref().err());
        match found {
            // Boxed: it is rare, and large.
            Err(error) if error.is_without_index() => {
                Box::pin(self.tx_by_height(hash)).await?.map(Some).ok_or(error)
            }
            found => found,
        }
    }

    /// The transaction of a step of the bridge in the index of this process, with the position of its event.
    pub(crate) fn indexed(
        &self,
        step: BridgeStep,
        place: &dyn Fn(&TxSearchHit) -> Option<usize>,
    ) -> Option<(Found, usize)> {
        let (tx, time) = self.local.bridge(step)?;
        let at = place(&tx)?;
        Some(((tx, Some(time)), at))
    }

    /// The same without an index: of the newest blocks, or of a block where the bridge's executor saw a withdrawal.
    async fn tx_by_height(&self, hash: Hash) -> Result<Option<Found>, QueryError> {
        let (Some(comet), Some((tip, _))) = (&self.clients.comet, self.tip().await?) else { return Ok(None) };
        let mut height = self.limiter.recent_blocks.height_of(comet, tip, hash).await?;
        if let (None, Some(executor)) = (height, &self.clients.executor) {
            let outage = |error: &_| tracing::debug!(chain = self.chain, %error, "no reply of the executor");
            // Without the executor, the search is as without its address.
            height = executor.height_of((self.clock)(), hash).await.inspect_err(outage).ok().flatten();
        }
        let Some(height) = height else { return Ok(None) };
        let txs = comet.txs_of_block(height).await?;
        Ok(txs.into_iter().find(|tx| tx.hash == hash).map(|tx| (tx, None)))
    }

    async fn tx_of(&self, hash: Hash) -> Result<Option<Found>, QueryError> {
        let error = match &self.clients.comet {
            Some(comet) => match comet.tx(hash).await {
                Ok(found) => return Ok(found.map(|tx| (tx, None))),
                Err(error) => Some(error),
            },
            None => None,
        };
        let found = self.rest_after(error)?.find_tx(hash).await?;
        Ok(found.map(|(tx, time)| (tx, Some(time))))
    }

    /// The transaction with an event, and the position of the event.
    pub(crate) async fn event(&self, wanted: &Wanted<'_>) -> Result<Option<(Found, usize)>, QueryError> {
        if let Some(most) = self.limiter.search_range() {
            return self.event_in_ranges(wanted, most).await;
        }
        let (txs, total) = match self.txs(&wanted.condition, false).await {
            Err(QueryError::Search(error @ node::Error::RangeRequired { most, .. })) => {
                self.limiter.limit_searches(most, &error);
                return self.event_in_ranges(wanted, most).await;
            }
            // Many transactions of many messages: a part of them, and narrower.
            Err(QueryError::Search(node::Error::TooLarge { .. })) => (Vec::new(), u64::MAX),
            outcome => outcome?,
        };
        let is_whole = txs.len() as u64 >= total;
        let found = pick(txs, wanted);
        if found.is_some() || is_whole {
            return Ok(found);
        }
        let both = format!("{} AND {}", wanted.condition, wanted.narrower);
        Ok(pick(self.txs(&both, false).await?.0, wanted))
    }

    async fn event_in_ranges(
        &self,
        wanted: &Wanted<'_>,
        most: u64,
    ) -> Result<Option<(Found, usize)>, QueryError> {
        let Some((mut last, _)) = self.tip().await? else { return Ok(None) };
        for _ in 0..RANGES {
            let first = last.saturating_sub(most - 1);
            let query = format!("{} AND tx.height>={first} AND tx.height<={last}", wanted.condition);
            let found = pick(self.txs(&query, false).await?.0, wanted);
            if found.is_some() || first <= 1 {
                return Ok(found);
            }
            last = first - 1;
        }
        Ok(None)
    }

    /// The first or the last transactions of a search, and the total number found.
    pub(crate) async fn txs(&self, query: &str, newest_first: bool) -> Result<(Vec<Found>, u64), QueryError> {
        let search = async { self.txs_of(query, newest_first).await.map_err(QueryError::into_search) };
        self.limiter.search(self.clock, search).await
    }

    async fn txs_of(&self, query: &str, newest_first: bool) -> Result<(Vec<Found>, u64), QueryError> {
        let error = match &self.clients.comet {
            Some(comet) => match comet.tx_search(query, 1, PAGE, newest_first).await {
                Ok((txs, total)) => return Ok((txs.into_iter().map(|tx| (tx, None)).collect(), total)),
                Err(error) => Some(error),
            },
            None => None,
        };
        let (txs, total) = self.rest_after(error)?.find_txs(query, 1, PAGE, newest_first).await?;
        Ok((txs.into_iter().map(|(tx, time)| (tx, Some(time))).collect(), total))
    }

    /// The fallback after an error of CometBFT RPC, if that has an address.
    fn rest_after(&self, error: Option<node::Error>) -> Result<&Rest, QueryError> {
        let no_rest =
            || error.map_or_else(|| self.clients.no_address("rpc or rest").into(), QueryError::Node);
        self.clients.rest.as_ref().ok_or_else(no_rest)
    }

    /// The transaction with an event in the block at whose end a state holds for the first time: it holds at `high` and
    /// stays. Works without an index, as far back as the node keeps states; none beyond that. Fails if the node does not
    /// answer now.
    pub(crate) async fn event_at_change<F: Future<Output = Result<bool, node::Error>>>(
        &self,
        (mut low, mut high): (u64, u64),
        holds: impl Fn(u64) -> F,
        wanted: &Wanted<'_>,
    ) -> Result<Option<(Found, usize)>, QueryError> {
        let Some(comet) = &self.clients.comet else { return Ok(None) };
        while low < high {
            let middle = low + (high - low) / 2;
            match holds(middle).await {
                Ok(true) => high = middle,
                Ok(false) => low = middle + 1,
                // The event itself shows whether the change is above the pruned states.
                Err(error) if error.is_pruned() => low = middle + 1,
                Err(error) => return none_unless_silent(error),
            }
        }
        match comet.txs_of_block(low).await {
            Ok(txs) => Ok(pick(txs.into_iter().map(|tx| (tx, None)).collect(), wanted)),
            Err(error) => none_unless_silent(error),
        }
    }

    /// Location and time of a found transaction.
    pub(crate) async fn located(&self, (tx, time): &Found) -> Result<TxRef, QueryError> {
        let header = match &self.clients.comet {
            Some(comet) => match comet.block_time(tx.height).await {
                Ok(time) => Some(time),
                // Without the header, the time is REST's, or permanently absent.
                Err(e) if time.is_some() || e.kind() == Kind::Permanent => None,
                Err(e) => return Err(e.into()),
            },
            None => None,
        };
        Ok(TxRef {
            chain: self.chain.clone(),
            hash: Some(hex::encode_upper(tx.hash)),
            height: tx.height,
            time: header.or(*time).map(Timestamp::unix_nanos),
        })
    }

    /// Evidence of the chain's state at a height, without a transaction.
    pub(crate) fn in_state(&self, height: u64) -> TxRef {
        TxRef { chain: self.chain.clone(), hash: None, height, time: None }
    }

    /// Height and time of the newest block; none without an address.
    pub(crate) async fn tip(&self) -> Result<Option<(u64, Timestamp)>, QueryError> {
        match (&self.clients.comet, &self.clients.rest) {
            (Some(comet), _) => {
                let height = comet.status().await?.latest_height;
                Ok(Some((height, comet.block_time(height).await?)))
            }
            (None, Some(rest)) => Ok(Some(rest.block_head(None).await?)),
            (None, None) => Ok(None),
        }
    }

    /// A height whose state every node that is not behind has: that before the newest block, or this one if it is higher.
    pub(crate) async fn recent_height(&self, at_least: u64) -> Result<u64, QueryError> {
        let tip = self.tip().await?.map_or(0, |(height, _)| height);
        Ok(tip.saturating_sub(1).max(at_least))
    }

    /// The time of a block.
    pub(crate) async fn block_time(&self, height: u64) -> Result<Timestamp, QueryError> {
        match &self.clients.comet {
            Some(comet) => Ok(comet.block_time(height).await?),
            None => Ok(self.clients.rest()?.block_head(Some(height)).await?.1),
        }
    }
}

/// None for an error that lasts; one of a node that does not answer now is returned.
fn none_unless_silent<T>(error: node::Error) -> Result<Option<T>, QueryError> {
    use node::Error::{Busy, Cut, NotYet, RateLimited, TimedOut, Unreachable};
    match error {
        Busy { .. }
        | Cut { .. }
        | NotYet { .. }
        | RateLimited { .. }
        | TimedOut { .. }
        | Unreachable { .. } => Err(QueryError::Node(error)),
        _ => Ok(None),
    }
}

fn pick(txs: Vec<Found>, wanted: &Wanted<'_>) -> Option<(Found, usize)> {
    txs.into_iter().find_map(|found| {
        let place = (wanted.place)(&found.0)?;
        Some((found, place))
    })
}
