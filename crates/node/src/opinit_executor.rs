//! Client of an OPinit bridge executor (opinit-bots' REST): the withdrawal proofs that claims on the L1 need.
//!
//! # Invariants
//!
//! * A withdrawal that the executor has not seen yet is `None`, not an error.
//! * Proofs are returned unchecked: the L1 checks a proof when it is used.

use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;

use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, excerpt};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::setup_error::SetupError;
use crate::url::Url;

/// Asks the executors of one bridge.
pub struct Executor {
    pool: Pool,
}

/// A withdrawal from the rollup (L2), as the executor reports it. Whether it was claimed is not included.
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
    /// The output that covers it, from 1. None until the executor has closed the tree; then the output may still be a
    /// moment away from the L1, or be deleted there.
    pub output_index: Option<u64>,
    /// The path to the root of the withdrawals: 32 bytes each, base64. A tree of one withdrawal has an empty one.
    pub proofs: Vec<String>,
    /// The output's version, base64.
    pub version: String,
    /// The root of the withdrawals, base64; empty until the tree is closed.
    pub storage_root: String,
    /// The hash of the last L2 block of the output, base64; empty until the tree is closed.
    pub last_block_hash: String,
}

/// `executor/types/query.go` of opinit-bots.
#[derive(Deserialize)]
struct Answer {
    sequence: u64,
    from: String,
    to: String,
    amount: Coin,
    output_index: u64,
    withdrawal_proofs: Option<Vec<String>>,
    version: Option<String>,
    storage_root: Option<String>,
    last_block_hash: Option<String>,
}

#[derive(Deserialize)]
struct Coin {
    denom: String,
    amount: String,
}

/// The executor's text for an unknown withdrawal (`executor/querier.go`).
const UNKNOWN: &str = "failed to query withdrawal";

impl Executor {
    /// A client over one or more addresses of the same bridge's executor.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("executor", urls, limits)? })
    }

    /// A withdrawal by its `l2_sequence` (`/withdrawal/{sequence}`). None if the executor has not seen it, or not yet:
    /// it answers 500 until it has read the block.
    pub async fn withdrawal(&self, sequence: u64) -> Result<Option<Withdrawal>, Error> {
        let path = format!("/withdrawal/{sequence}");
        let call = Call::get(&path, path.clone());
        let attempt = async |endpoint: Arc<Endpoint>| withdrawal_of(&endpoint, &call).await;
        match self.pool.ask(&call, attempt).await {
            Err(Error::Refused { .. }) => Ok(None),
            outcome => outcome.map(Some),
        }
    }
}

async fn withdrawal_of(endpoint: &Endpoint, call: &Call) -> Result<Withdrawal, Error> {
    let reply = endpoint.send(call).await?;
    let at = || endpoint.site(call);
    if reply.status.is_success() {
        let body = reply.json(at)?;
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|e| Error::Malformed { at: at(), reason: e.to_string() })?;
        return Ok(answer.into());
    }
    let said = excerpt(&reply.body);
    if reply.status == StatusCode::INTERNAL_SERVER_ERROR && said.contains(UNKNOWN) {
        return Err(Error::Refused { at: at(), code: reply.status.as_u16().into(), said });
    }
    Err(reply.unreadable(at(), "not an answer of the executor"))
}

impl From<Answer> for Withdrawal {
    fn from(answer: Answer) -> Self {
        // The index alone does not tell: it is written as 0 while the tree is open.
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
        }
    }
}
