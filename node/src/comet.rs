//! CometBFT RPC: the chain's blocks, their results, and the application's query router.
//!
//! Holds: a block and its results are handed on as the bytes that the node sent; the texts of CometBFT 0.38
//! are told apart as indexing.md §1.2 lists them; "no results" is a wait only near the tip of the very
//! endpoint that said so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::SetupError;
use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, Site};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::rpc::{self, Fault, Opened, number_after};
use crate::url::Url;

/// Asks one chain's CometBFT nodes.
pub struct Comet {
    pool: Pool,
}

/// What `/status` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `node_info.network`.
    pub chain_id: String,
    /// CometBFT's version.
    pub node_version: String,
    /// Height of the last block that is stored; its results may be one step behind.
    pub latest_height: u64,
    /// Height of the oldest block that is stored.
    pub earliest_height: u64,
    /// Whether the node is still fetching old blocks.
    pub catching_up: bool,
}

impl Comet {
    /// A client over one or more addresses of the same chain.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("comet", urls, limits)? })
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The state of the next endpoint that answers.
    pub async fn status(&self) -> Result<Status, Error> {
        self.pool.ask(&status_call(), async |endpoint| status_of(&endpoint).await).await
    }

    /// Asks every endpoint which chain it belongs to; gives the status with the highest tip.
    ///
    /// Fails with [`Error::WrongChain`] if any endpoint belongs to another chain, else only if none answers.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<Status, Error> {
        let (mut best, mut failure) = (None::<Status>, None);
        for endpoint in self.pool.endpoints() {
            match status_of(&endpoint).await {
                Ok(status) if status.chain_id != chain_id => {
                    let at = endpoint.site(&status_call());
                    return Err(Error::WrongChain { at, want: chain_id.to_owned(), got: status.chain_id });
                }
                Ok(status) if best.as_ref().is_none_or(|b| b.latest_height < status.latest_height) => {
                    best = Some(status);
                }
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
        }
        match (best, failure) {
            (Some(status), _) => Ok(status),
            (None, Some(error)) => Err(error),
            (None, None) => self.status().await,
        }
    }

    /// The `result` of `/block?height=`.
    pub async fn block(&self, height: u64) -> Result<Bytes, Error> {
        let call = Call::get("block", format!("/block?height={height}")).about(height);
        self.pool.ask(&call, async |endpoint| block_of(&endpoint, &call).await).await
    }

    /// The `result` of `/block_results?height=`.
    pub async fn block_results(&self, height: u64) -> Result<Bytes, Error> {
        let call = Call::get("block_results", format!("/block_results?height={height}")).about(height);
        self.pool.ask(&call, async |endpoint| results_of(&endpoint, &call, height).await).await
    }

    /// Asks the application's query router (`/abci_query`) at its latest height. `path` is a gRPC method such
    /// as `/cosmos.auth.v1beta1.Query/Params`, `data_hex` the request message in hex. Gives the response
    /// message's bytes.
    ///
    /// A code that is not zero is [`Error::Refused`].
    pub async fn abci_query(&self, path: &str, data_hex: &str) -> Result<Vec<u8>, Error> {
        let quoted = utf8_percent_encode(path, NOT_IN_A_QUERY);
        let data = if data_hex.is_empty() { String::new() } else { format!("&data=0x{data_hex}") };
        let call = Call::get(&format!("abci_query {path}"), format!("/abci_query?path=%22{quoted}%22{data}"));
        self.pool.ask(&call, async |endpoint| abci_of(&endpoint, &call).await).await
    }
}

/// What would end or change a query parameter.
const NOT_IN_A_QUERY: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+').add(b'<').add(b'>');

fn status_call() -> Call {
    Call::get("status", "/status".to_owned())
}

/// The text of `result`, or the meaning of the error.
pub(crate) async fn result_of(endpoint: &Endpoint, call: &Call) -> Result<Bytes, Error> {
    match rpc::exchange(endpoint, call, None).await? {
        Opened::Result(result) => Ok(result),
        Opened::Fault(fault) => Err(meaning(endpoint.site(call), fault)),
    }
}

async fn block_of(endpoint: &Endpoint, call: &Call) -> Result<Bytes, Error> {
    #[derive(Deserialize)]
    struct Probe {
        block: Option<IgnoredAny>,
    }
    let result = result_of(endpoint, call).await?;
    // Where the meta of a block is missing the node says `"block":null` and no error. A header alone is longer
    // than this, so that real blocks are not parsed a second time.
    if result.len() < 1024 && parsed::<Probe>(endpoint, call, &result)?.block.is_none() {
        return Err(Error::Malformed { at: endpoint.site(call), reason: "the block is null".to_owned() });
    }
    Ok(result)
}

async fn results_of(endpoint: &Endpoint, call: &Call, height: u64) -> Result<Bytes, Error> {
    let fault = match rpc::exchange(endpoint, call, None).await? {
        Opened::Result(result) => return Ok(result),
        Opened::Fault(fault) => fault,
    };
    if !fault.said.contains("could not find results for height") {
        return Err(meaning(endpoint.site(call), fault));
    }
    // The block of the tip is stored before it is executed; anywhere else the results are gone.
    let tip = status_of(endpoint).await?.latest_height;
    let at = endpoint.site(call);
    if height >= tip.saturating_sub(1) {
        Err(Error::NotYet { at, tip: Some(tip), said: fault.said })
    } else {
        Err(Error::ResultsMissing { at, tip })
    }
}

async fn status_of(endpoint: &Endpoint) -> Result<Status, Error> {
    #[derive(Deserialize)]
    struct Answer {
        node_info: NodeInfo,
        sync_info: SyncInfo,
    }
    #[derive(Deserialize)]
    struct NodeInfo {
        network: String,
        version: String,
    }
    #[derive(Deserialize)]
    struct SyncInfo {
        latest_block_height: String,
        earliest_block_height: String,
        catching_up: bool,
    }
    let call = status_call();
    let result = result_of(endpoint, &call).await?;
    let Answer { node_info, sync_info } = parsed(endpoint, &call, &result)?;
    let height = |name: &str, text: &str| {
        let reason = || format!("{name} `{}` is no height", crate::error::excerpt(text.as_bytes()));
        text.parse().map_err(|_| Error::Malformed { at: endpoint.site(&call), reason: reason() })
    };
    Ok(Status {
        chain_id: node_info.network,
        node_version: node_info.version,
        latest_height: height("latest_block_height", &sync_info.latest_block_height)?,
        earliest_height: height("earliest_block_height", &sync_info.earliest_block_height)?,
        catching_up: sync_info.catching_up,
    })
}

async fn abci_of(endpoint: &Endpoint, call: &Call) -> Result<Vec<u8>, Error> {
    #[derive(Deserialize)]
    struct Answer {
        response: Response,
    }
    #[derive(Deserialize)]
    struct Response {
        #[serde(default)]
        code: u32,
        #[serde(default)]
        log: String,
        value: Option<String>,
    }
    let result = result_of(endpoint, call).await?;
    let Response { code, log, value } = parsed::<Answer>(endpoint, call, &result)?.response;
    if code != 0 {
        return Err(Error::Refused { at: endpoint.site(call), code: code.into(), said: log });
    }
    STANDARD.decode(value.unwrap_or_default()).map_err(|e| Error::Malformed {
        at: endpoint.site(call),
        reason: format!("the value is no base64: {e}"),
    })
}

pub(crate) fn parsed<'a, T: Deserialize<'a>>(
    endpoint: &Endpoint,
    call: &Call,
    result: &'a [u8],
) -> Result<T, Error> {
    serde_json::from_slice(result)
        .map_err(|e| Error::Malformed { at: endpoint.site(call), reason: e.to_string() })
}

/// The meaning of a CometBFT error by its text (`rpc/core/env.go`, `state/store.go` of CometBFT 0.38); the
/// code is −32603 for all of them.
pub(crate) fn meaning(at: Site, fault: Fault) -> Error {
    let Fault { code, said } = fault;
    let has = |text: &str| said.contains(text);
    if has("must be less than or equal to the current blockchain height") {
        Error::NotYet { at, tip: number_after(&said, "current blockchain height "), said }
    } else if has("is not available, lowest height is") {
        Error::Pruned { at, lowest: number_after(&said, "lowest height is "), said }
    } else if has("node is not persisting finalize block responses") {
        Error::ResultsDiscarded { at }
    } else if has("failed to unmarshall FinalizeBlockResponse") {
        Error::Corrupt { at, said }
    } else if code == rpc::METHOD_MISSING {
        Error::MethodMissing { at, said, advice: "is this the address of CometBFT's RPC?" }
    } else if code == rpc::INVALID_PARAMS || has("height must be greater than 0") {
        Error::Refused { at, code, said }
    } else {
        Error::Faulty { at, code, said }
    }
}
