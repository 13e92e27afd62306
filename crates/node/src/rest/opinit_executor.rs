//! Client of an OPinit bridge executor (opinit-bots' REST): the withdrawal proofs that claims on the L1 need.
//!
//! # Invariants
//!
//! * A withdrawal that the executor has not seen yet is `None`, not an error.
//! * Proofs are returned unchecked: the L1 checks a proof when it is used.

use chain::excerpt;
use chain::hash::{Hash, parse_hash};
use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;

use crate::error::Error;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::pool::endpoint::{Endpoint, Request};
use crate::setup_error::SetupError;
use crate::url::Url;

/// Queries the executors of one bridge.
pub struct OpinitExecutor {
    pub(crate) pool: Pool,
}

/// A withdrawal from the rollup (L2), as the executor reports it. Its claim status is not included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// `l2_sequence`: counts the withdrawals of the bridge.
    pub sequence: u64,
    /// Sender on the L2. For a refused deposit, the text that was given as its receiver.
    pub from: String,
    /// Receiver on the L1.
    pub to: String,
    /// Amount in base units, decimal.
    pub amount: String,
    /// The denom on the L1.
    pub denom: String,
    /// The output that covers it, from 1. `None` until the executor has closed the tree; after that the output may
    /// still be missing on the L1 for a moment, or be deleted there.
    pub output_index: Option<u64>,
    /// The path to the root of the withdrawals: 32 bytes each, base64. A tree of one withdrawal has an empty one.
    pub proofs: Vec<String>,
    /// The output's version, base64.
    pub version: String,
    /// The root of the withdrawals, base64; empty until the tree is closed.
    pub storage_root: String,
    /// The hash of the last L2 block of the output, base64; empty until the tree is closed.
    pub last_block_hash: String,
    /// Its transaction on the L2 and the height, where the executor reports them. A withdrawal of a bridge's shutdown has
    /// no transaction, and the SHA-256 of nothing as its hash.
    pub tx: Option<(Hash, u64)>,
}

/// `executor/types/query.go` of opinit-bots.
#[derive(Deserialize)]
struct Reply {
    sequence: u64,
    from: String,
    to: String,
    amount: Coin,
    output_index: u64,
    withdrawal_proofs: Option<Vec<String>>,
    version: Option<String>,
    storage_root: Option<String>,
    last_block_hash: Option<String>,
    tx_hash: Option<String>,
    tx_height: Option<u64>,
}

#[derive(Deserialize)]
struct Coin {
    denom: String,
    amount: String,
}

/// `/status`: `child` is the part that reads the rollup.
#[derive(Deserialize)]
struct Status {
    child: Child,
}

#[derive(Deserialize)]
struct Child {
    last_withdrawal_l2_sequence: u64,
}

/// The executor's text for an unknown withdrawal (`executor/querier.go`).
const UNKNOWN: &str = "failed to query withdrawal";

impl OpinitExecutor {
    /// A client over one or more addresses of the same bridge's executor.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("executor", urls, limits)? })
    }

    /// A withdrawal by its `l2_sequence` (`/withdrawal/{sequence}`). None if the executor has not seen it, or not yet:
    /// it answers 500 until it has read the block.
    pub async fn withdrawal(&self, sequence: u64) -> Result<Option<Withdrawal>, Error> {
        let path = format!("/withdrawal/{sequence}");
        let request = Request::get(&path, path.clone());
        let attempt = async |endpoint: Arc<Endpoint>| withdrawal_of(&endpoint, &request, sequence).await;
        match self.pool.query(&request, attempt).await {
            Err(Error::Refused { .. }) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// The `l2_sequence` of the newest withdrawal that the executor has read (`/status`); 0 if there is none.
    pub async fn last_withdrawal(&self) -> Result<u64, Error> {
        let request = Request::get("/status", "/status".to_owned());
        let attempt = async |endpoint: Arc<Endpoint>| {
            let response = endpoint.send(&request).await?;
            if !response.status().is_success() {
                return Err(endpoint.unreadable(&request, &response, "not a status of the executor"));
            }
            let body = endpoint.json(&request, response)?;
            endpoint.parse::<Status>(&request, &body)
        };
        Ok(self.pool.query(&request, attempt).await?.child.last_withdrawal_l2_sequence)
    }
}

async fn withdrawal_of(endpoint: &Endpoint, request: &Request, sequence: u64) -> Result<Withdrawal, Error> {
    let response = endpoint.send(request).await?;
    if response.status().is_success() {
        let body = endpoint.json(request, response)?;
        let reply = endpoint.parse::<Reply>(request, &body)?;
        if reply.sequence != sequence {
            return Err(endpoint.malformed(request, format!("this is withdrawal {}", reply.sequence)));
        }
        return Ok(reply.into());
    }
    let message = excerpt(response.body());
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR && message.contains(UNKNOWN) {
        let code = response.status().as_u16().into();
        return Err(Error::Refused { at: endpoint.context(request), code, message });
    }
    Err(endpoint.unreadable(request, &response, "not an answer of the executor"))
}

impl From<Reply> for Withdrawal {
    fn from(answer: Reply) -> Self {
        // The index alone does not show that: it is 0 while the tree is open.
        let closed = answer.storage_root.as_ref().is_some_and(|root| !root.is_empty());
        Self {
            sequence: answer.sequence,
            from: answer.from,
            to: answer.to,
            amount: answer.amount.amount,
            denom: answer.amount.denom,
            output_index: closed.then_some(answer.output_index),
            proofs: answer.withdrawal_proofs.unwrap_or_default(),
            version: answer.version.unwrap_or_default(),
            storage_root: answer.storage_root.unwrap_or_default(),
            last_block_hash: answer.last_block_hash.unwrap_or_default(),
            tx: answer.tx_hash.and_then(|hash| parse_hash(&hash).ok().flatten()).zip(answer.tx_height),
        }
    }
}
