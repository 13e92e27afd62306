//! Transaction search over CometBFT RPC or REST.
//!
//! # Invariants
//!
//! * CometBFT RPC is queried first; REST is the fallback if RPC has no address, no index or no answer.
//! * An empty result comes only from a node that searched.
//! * Times are those of block headers.

use chain::Timestamp;
use chain::hash::Hash;
use node::{FoundTx, Kind};

use crate::hop::TxRef;
use crate::nodes::Clients;

/// Error of a query; the next poll repeats it.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum QueryError {
    /// Error of a node.
    #[error(transparent)]
    Node(#[from] node::Error),
    /// The circuit breaker of the chain is open.
    #[error("chain {chain} was not asked, since none of its nodes answered the last requests")]
    Silent { chain: String },
    /// Too many polls wait for the chain.
    #[error("chain {chain} was not asked, since too many questions wait for its nodes")]
    Busy { chain: String },
    /// One service of the chain answered, and another one that is needed as well did not.
    #[error(transparent)]
    Partly(node::Error),
    /// The registry has no address of the service.
    #[error("chain {chain} has no address of {service} in the registry; add one to its endpoints")]
    NoNode { chain: String, service: &'static str },
    /// The answer does not decode.
    #[error("chain {chain}: {what} cannot be read: {reason}; is json_rpc the address of its EVM?")]
    Unreadable { chain: String, what: &'static str, reason: String },
}

/// A transaction, with the time of its block where that came with it.
type Found = (FoundTx, Option<Timestamp>);

/// One chain to be searched.
pub(crate) struct Search<'a> {
    pub(crate) chain: &'a str,
    pub(crate) clients: &'a Clients,
}

/// Transactions of a page; a search for one thing finds one.
const PAGE: u32 = 30;

impl Search<'_> {
    /// The transaction with this hash.
    pub(crate) async fn tx(&self, hash: Hash) -> Result<Option<Found>, QueryError> {
        let comet = match &self.clients.comet {
            Some(comet) => comet.tx(hash).await.map(|tx| tx.map(|tx| (tx, None))),
            None => return self.rest_tx(hash, None).await,
        };
        match comet {
            Ok(found) => Ok(found),
            Err(error) => self.rest_tx(hash, Some(error)).await,
        }
    }

    /// The first transactions that a query finds, or the last ones, and how many it finds in all.
    pub(crate) async fn txs(
        &self,
        query: &str,
        page: u32,
        newest_first: bool,
    ) -> Result<(Vec<Found>, u64), QueryError> {
        let comet = match &self.clients.comet {
            Some(comet) => comet.tx_search(query, page, PAGE, newest_first).await,
            None => return self.rest_txs(query, page, newest_first, None).await,
        };
        match comet {
            Ok((txs, total)) => Ok((txs.into_iter().map(|tx| (tx, None)).collect(), total)),
            Err(error) => self.rest_txs(query, page, newest_first, Some(error)).await,
        }
    }

    async fn rest_tx(&self, hash: Hash, failure: Option<node::Error>) -> Result<Option<Found>, QueryError> {
        match (&self.clients.rest, failure) {
            (Some(rest), _) => Ok(rest.find_tx(hash).await?.map(|(tx, time)| (tx, Some(time)))),
            (None, failure) => Err(self.no_node(failure)),
        }
    }

    async fn rest_txs(
        &self,
        query: &str,
        page: u32,
        newest_first: bool,
        failure: Option<node::Error>,
    ) -> Result<(Vec<Found>, u64), QueryError> {
        match (&self.clients.rest, failure) {
            (Some(rest), _) => {
                let (txs, total) = rest.find_txs(query, page, PAGE, newest_first).await?;
                Ok((txs.into_iter().map(|(tx, time)| (tx, Some(time))).collect(), total))
            }
            (None, failure) => Err(self.no_node(failure)),
        }
    }

    fn no_node(&self, failure: Option<node::Error>) -> QueryError {
        let chain = self.chain.to_owned();
        failure.map_or(QueryError::NoNode { chain, service: "rpc or rest" }, QueryError::Node)
    }

    /// Where and when a found transaction is.
    pub(crate) async fn seen(&self, (tx, time): &Found) -> Result<TxRef, QueryError> {
        let header = match &self.clients.comet {
            Some(comet) => match comet.block_time(tx.height).await {
                Ok(time) => Some(time),
                // Without the header there is REST's time, or none for ever.
                Err(e) if time.is_some() || e.kind() == Kind::Permanent => None,
                Err(e) => return Err(e.into()),
            },
            None => None,
        };
        Ok(TxRef {
            chain: self.chain.to_owned(),
            hash: hex::encode_upper(tx.hash),
            height: tx.height,
            time: header.or(*time).map(Timestamp::unix_nanos),
        })
    }

    /// Height and time of the newest block.
    pub(crate) async fn tip(&self) -> Result<(u64, Timestamp), QueryError> {
        let chain = self.chain.to_owned();
        let comet = self.clients.comet.as_ref();
        let comet = comet.ok_or(QueryError::NoNode { chain, service: "rpc" })?;
        let height = comet.status().await?.latest_height;
        Ok((height, comet.block_time(height).await?))
    }
}
