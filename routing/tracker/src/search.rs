//! Transaction search over CometBFT RPC or REST.
//!
//! # Invariants
//!
//! * CometBFT RPC is queried first; REST is the fallback if RPC has no address, no index or no answer.
//! * An empty result comes only from a node that searched.
//! * Times are those of block headers.

use std::sync::Arc;

use chain::Timestamp;
use chain::hash::Hash;
use node::{Kind, Rest, TxSearchHit};

use crate::chain_clients::Clients;
use crate::hop::TxRef;
use crate::query_error::QueryError;

/// A transaction, with the time of its block if the response has it.
pub(crate) type Found = (TxSearchHit, Option<Timestamp>);

/// One chain to be searched.
pub(crate) struct Search {
    pub(crate) chain: String,
    pub(crate) clients: Arc<Clients>,
}

/// Transactions per page; a search for one item finds one.
const PAGE: u32 = 30;

impl Search {
    /// The transaction with this hash.
    pub(crate) async fn tx(&self, hash: Hash) -> Result<Option<Found>, QueryError> {
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

    /// The first or the last transactions of a search, and the total number found.
    pub(crate) async fn txs(
        &self,
        query: &str,
        page: u32,
        newest_first: bool,
    ) -> Result<(Vec<Found>, u64), QueryError> {
        let error = match &self.clients.comet {
            Some(comet) => match comet.tx_search(query, page, PAGE, newest_first).await {
                Ok((txs, total)) => return Ok((txs.into_iter().map(|tx| (tx, None)).collect(), total)),
                Err(error) => Some(error),
            },
            None => None,
        };
        let (txs, total) = self.rest_after(error)?.find_txs(query, page, PAGE, newest_first).await?;
        Ok((txs.into_iter().map(|(tx, time)| (tx, Some(time))).collect(), total))
    }

    /// The fallback after an error of CometBFT RPC, if that has an address.
    fn rest_after(&self, error: Option<node::Error>) -> Result<&Rest, QueryError> {
        let no_rest =
            || error.map_or_else(|| self.clients.no_address("rpc or rest").into(), QueryError::Node);
        self.clients.rest.as_ref().ok_or_else(no_rest)
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
            hash: hex::encode_upper(tx.hash),
            height: tx.height,
            time: header.or(*time).map(Timestamp::unix_nanos),
        })
    }

    /// Height and time of the newest block; none without CometBFT RPC.
    pub(crate) async fn tip(&self) -> Result<Option<(u64, Timestamp)>, QueryError> {
        let Some(comet) = &self.clients.comet else { return Ok(None) };
        let height = comet.status().await?.latest_height;
        Ok(Some((height, comet.block_time(height).await?)))
    }
}
