//! CometBFT's `broadcast_tx_sync`: hands a signed transaction to a node's mempool.
//!
//! # Invariants
//!
//! * The node must report the chain that the transaction is for, right before it gets the bytes.
//! * The bytes are those of the caller. Sending them again to another node, or twice, has no further effect: the chain
//!   executes a transaction once.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::excerpt;
use serde::Deserialize;

use crate::comet::Comet;
use crate::comet::reply::classify;
use crate::comet::status::status_of;
use crate::error::Error;
use crate::pool::endpoint::{Endpoint, Request};
use crate::rpc::{self, RpcResponse};

/// Text of a mempool that has the transaction (`mempool/errors.go` of CometBFT).
const IN_CACHE: &str = "tx already exists in cache";

impl Comet {
    /// Hands the bytes of a signed transaction to the mempool of the next node that answers and is of `chain_id`. Returns
    /// when the node has checked it, before it is in a block.
    ///
    /// A transaction that the node's `CheckTx` rejects is [`Error::Refused`] with its code and log.
    pub async fn broadcast_tx(&self, chain_id: &str, tx: &[u8]) -> Result<(), Error> {
        let json = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"broadcast_tx_sync","params":{{"tx":"{}"}}}}"#,
            STANDARD.encode(tx)
        );
        let request = Request::post("broadcast_tx_sync", String::new(), json);
        let attempt = async |endpoint: Arc<Endpoint>| broadcast_to(&endpoint, &request, chain_id).await;
        self.pool.query(&request, attempt).await
    }
}

async fn broadcast_to(endpoint: &Endpoint, request: &Request, chain_id: &str) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Checked {
        code: u32,
        #[serde(default)]
        log: String,
    }
    let at = || endpoint.context(request);
    let got = status_of(endpoint).await?.chain_id;
    if got != chain_id {
        return Err(Error::WrongChain { at: at(), want: chain_id.to_owned(), got: excerpt(&got) });
    }
    let result = match rpc::exchange(endpoint, request, Some(1)).await? {
        RpcResponse::Result(result) => result,
        RpcResponse::Error(error) if error.message.contains(IN_CACHE) => return Ok(()),
        RpcResponse::Error(error) => return Err(classify(at(), error)),
    };
    match endpoint.parse::<Checked>(request, &result)? {
        Checked { code: 0, .. } => Ok(()),
        Checked { code, log } => Err(Error::Refused { at: at(), code: code.into(), message: excerpt(&log) }),
    }
}
