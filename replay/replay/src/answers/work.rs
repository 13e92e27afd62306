//! Cost model of a request: number of transactions, traces and contract calls.

use bytes::Bytes;
use http::Request;
use serde_json::value::RawValue;

use super::Service;
use super::envelope::{Call, Calls};
use crate::recording::{Recording, cometbft_path};

/// The work of a node for a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Transactions in answers of `/block`, `/block_results` and `eth_getBlockReceipts`: each of the three counts.
    pub(crate) txs: u64,
    /// Transactions traced.
    pub(crate) traced: u64,
    /// `eth_call`s.
    pub(crate) calls: u64,
}

impl Work {
    /// The work of a request; zero for a kind that is not modelled (a `POST` to `CometBFT`, a tag in place of a
    /// height).
    pub(crate) fn new(recording: &Recording, service: Service, request: &Request<Bytes>) -> Self {
        let mut work = Self::default();
        match service {
            Service::Comet => {
                let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
                if let Some(("block" | "block_results", params)) = cometbft_path(path) {
                    let height = params.get("height").and_then(|height| height.parse().ok());
                    work.txs = height.map_or(0, |height| recording.txs_at(height));
                }
            }
            Service::JsonRpc => match Calls::parse(request.body()) {
                Ok(Calls::One(call)) => work.add(recording, &call),
                Ok(Calls::Many(calls)) => calls.iter().for_each(|call| work.add(recording, call)),
                Err(_) => {}
            },
            Service::Rest | Service::Executor => {}
        }
        work
    }

    fn add(&mut self, recording: &Recording, call: &Call<'_>) {
        match &*call.method {
            "eth_getBlockReceipts" => self.txs += height(call).map_or(0, |height| recording.txs_at(height)),
            "debug_traceBlockByNumber" => {
                self.traced += height(call).map_or(0, |height| recording.txs_at(height));
            }
            "debug_traceTransaction" => self.traced += 1,
            "eth_call" => self.calls += 1,
            _ => {}
        }
    }
}

/// The first parameter, if it is a number in hex.
fn height(call: &Call<'_>) -> Option<u64> {
    let params: Vec<&RawValue> = serde_json::from_str(call.params?.get()).ok()?;
    let text: &str = serde_json::from_str(params.first()?.get()).ok()?;
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
