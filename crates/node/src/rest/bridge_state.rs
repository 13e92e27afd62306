//! The state of the optimistic bridge over REST: outputs and claims on the L1 (`x/ophost` of OPinit), deposits on the
//! rollup (`x/opchild`).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::json::{number_at, text_at};
use crate::pool::endpoint::{Endpoint, Request};
use crate::rest::Rest;
use crate::rest::accounts::encoded;
use crate::rest::gateway::answer_with_height;
use crate::state_at::StateAt;

/// An output that was proposed and not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeOutput {
    /// Its number, from 1.
    pub index: u64,
    /// The last block of the rollup that it covers.
    pub l2_block: u64,
    /// The block of the L1 in which it was proposed.
    pub l1_block: u64,
    /// The time of that block.
    pub l1_time: Timestamp,
    /// The output root.
    pub root: [u8; 32],
}

/// Settings of a bridge that change without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Seconds from the proposal of an output until claims against it are accepted.
    pub finalization_seconds: u64,
    /// No deposits are accepted any more.
    pub disabled: bool,
}

impl BridgeOutput {
    fn read(json: &Value) -> Result<Self, String> {
        let time = text_at(json, "/output_proposal/l1_block_time")?;
        let root =
            STANDARD.decode(text_at(json, "/output_proposal/output_root")?).map_err(|e| e.to_string())?;
        Ok(Self {
            index: number_at(json, "/output_index")?,
            l2_block: number_at(json, "/output_proposal/l2_block_number")?,
            l1_block: number_at(json, "/output_proposal/l1_block_number")?,
            l1_time: Timestamp::parse(time).map_err(|e| e.to_string())?,
            root: root.try_into().map_err(|_| "an output root that has not 32 bytes")?,
        })
    }
}

/// Seconds of a duration in the JSON of protobuf, rounded down: `604800s`.
fn seconds(text: &str) -> Result<u64, String> {
    let whole = text.strip_suffix('s').map(|text| text.split_once('.').map_or(text, |(whole, _)| whole));
    whole.and_then(|whole| whole.parse().ok()).ok_or_else(|| format!("{text:?} is not a duration"))
}

impl Rest {
    /// The output with a number (`outputs/{index}`). A deleted one, or one that was not proposed yet, is
    /// [`Error::Refused`].
    pub async fn bridge_output(&self, bridge: u64, index: u64) -> Result<BridgeOutput, Error> {
        let path = format!("/opinit/ophost/v1/bridges/{bridge}/outputs/{index}");
        self.query_for(Request::get("outputs", path), |answer: Value| BridgeOutput::read(&answer)).await
    }

    /// The newest output, if there is one.
    pub async fn last_bridge_output(
        &self,
        bridge: u64,
        state: impl Into<StateAt>,
    ) -> Result<Option<BridgeOutput>, Error> {
        #[derive(Deserialize)]
        struct Reply {
            output_proposals: Vec<Value>,
        }
        let path =
            format!("/opinit/ophost/v1/bridges/{bridge}/outputs?pagination.limit=1&pagination.reverse=true");
        let read = |answer: Reply| answer.output_proposals.first().map(BridgeOutput::read).transpose();
        self.query_for(Request::get("outputs", path).in_state(state), read).await
    }

    /// The settings of a bridge (`bridges/{id}`).
    pub async fn bridge_config(&self, bridge: u64) -> Result<BridgeConfig, Error> {
        let read = |answer: Value| {
            let disabled = answer.pointer("/bridge_config/bridge_disabled").and_then(Value::as_bool);
            Ok(BridgeConfig {
                finalization_seconds: seconds(text_at(&answer, "/bridge_config/finalization_period")?)?,
                // Earlier versions cannot disable a bridge.
                disabled: disabled.unwrap_or(false),
            })
        };
        let path = format!("/opinit/ophost/v1/bridges/{bridge}");
        self.query_for(Request::get("bridges", path), read).await
    }

    /// Up to `limit` outputs from the first, without the first `offset`.
    pub async fn bridge_outputs(
        &self,
        bridge: u64,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<BridgeOutput>, Error> {
        let page = format!("pagination.offset={offset}&pagination.limit={limit}");
        self.list_outputs(bridge, &page).await.map(|(outputs, _)| outputs)
    }

    /// The `limit` newest outputs, newest first, and the height of the state that they are of, if the server says that.
    pub async fn newest_bridge_outputs(
        &self,
        bridge: u64,
        limit: u64,
    ) -> Result<(Vec<BridgeOutput>, Option<u64>), Error> {
        self.list_outputs(bridge, &format!("pagination.limit={limit}&pagination.reverse=true")).await
    }

    async fn list_outputs(&self, bridge: u64, page: &str) -> Result<(Vec<BridgeOutput>, Option<u64>), Error> {
        #[derive(Deserialize)]
        struct Reply {
            output_proposals: Vec<Value>,
        }
        let path = format!("/opinit/ophost/v1/bridges/{bridge}/outputs?{page}");
        let request = Request::get("outputs", path);
        let attempt = async |endpoint: Arc<Endpoint>| {
            let (answer, height) = answer_with_height(&endpoint, &request).await?;
            let Reply { output_proposals } = endpoint.parse(&request, &answer)?;
            let outputs = output_proposals.iter().map(BridgeOutput::read).collect::<Result<_, _>>();
            Ok((outputs.map_err(|reason| endpoint.malformed(&request, reason))?, height))
        };
        self.pool.query(&request, attempt).await
    }

    /// The number of the bridge of a rollup (`bridge_info`).
    pub async fn bridge_number(&self) -> Result<u64, Error> {
        let request = Request::get("bridge_info", "/opinit/opchild/v1/bridge_info".to_owned());
        self.query_for(request, |answer: Value| number_at(&answer, "/bridge_info/bridge_id")).await
    }

    /// Whether the withdrawal with this hash was claimed (`withdrawals/claimed/by_hash`).
    pub async fn is_withdrawal_claimed(
        &self,
        bridge: u64,
        hash: [u8; 32],
        state: impl Into<StateAt>,
    ) -> Result<bool, Error> {
        #[derive(Deserialize)]
        struct Reply {
            claimed: bool,
        }
        let hash = encoded(&STANDARD.encode(hash));
        let path =
            format!("/opinit/ophost/v1/bridges/{bridge}/withdrawals/claimed/by_hash?withdrawal_hash={hash}");
        let request = Request::get("withdrawals/claimed/by_hash", path).in_state(state);
        self.query_for(request, |answer: Reply| Ok(answer.claimed)).await
    }

    /// The number of the next deposit that the rollup finalizes (`next_l1_sequence`).
    pub async fn next_deposit(&self, state: impl Into<StateAt>) -> Result<u64, Error> {
        let request = Request::get("next_l1_sequence", "/opinit/opchild/v1/next_l1_sequence".to_owned());
        self.query_for(request.in_state(state), |answer: Value| number_at(&answer, "/next_l1_sequence")).await
    }

    /// Height and time of a block, of the newest without a height (`/cosmos/base/tendermint/v1beta1/blocks`).
    pub async fn block_head(&self, height: Option<u64>) -> Result<(u64, Timestamp), Error> {
        let height = height.map_or_else(|| "latest".to_owned(), |height| height.to_string());
        let read = |answer: Value| {
            let time = text_at(&answer, "/block/header/time")?;
            let time = Timestamp::parse(time).map_err(|e| e.to_string())?;
            Ok((number_at(&answer, "/block/header/height")?, time))
        };
        let path = format!("/cosmos/base/tendermint/v1beta1/blocks/{height}");
        self.query_for(Request::get("blocks", path), read).await
    }
}
