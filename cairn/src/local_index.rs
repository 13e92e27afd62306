//! The index of this process as the tracker of its routing service reads it: over the JSON API, without a socket.

use std::sync::{Arc, OnceLock, Weak};

use chain::hash::{Hash, parse_hash};
use http::StatusCode;
use node::TxSearchHit;
use query::Indexer;
use query::v1::GetIbcPacketResponse;
use serde_json::Value;
use tracker::{IndexedTx, LocalIndex, PacketStep};
use web::app::App;

/// The index, once there is one. Weak, because its app may own pages that hold the routing service.
#[derive(Clone, Default)]
pub(crate) struct CurrentIndex(Arc<OnceLock<Weak<App<Indexer>>>>);

impl CurrentIndex {
    /// Sets the index, which is opened once.
    pub(crate) fn set(&self, app: &Arc<App<Indexer>>) {
        drop(self.0.set(Arc::downgrade(app)));
    }

    /// The body of `GET target`, if `chain` is indexed here and has what is wanted.
    fn read(&self, chain: &str, target: &str) -> Result<Option<Vec<u8>>, String> {
        let app = self.0.get().and_then(Weak::upgrade);
        let Some(app) = app.filter(|app| app.state().chain_id() == chain) else { return Ok(None) };
        match app.read(target) {
            Ok(reply) => Ok(Some(reply.body.to_vec())),
            Err(error) if error.status() == StatusCode::NOT_FOUND => Ok(None),
            Err(error) => Err(error.message().to_owned()),
        }
    }
}

impl LocalIndex for CurrentIndex {
    fn tx(&self, chain: &str, hash: Hash) -> Result<Option<IndexedTx>, String> {
        let target = format!("/indexer/tx/v1/txs/{}", hex::encode(hash));
        let Some(body) = self.read(chain, &target)? else { return Ok(None) };
        let response: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        TxSearchHit::of_record(response["tx"].to_string().as_bytes()).map(Some)
    }

    fn packet(&self, chain: &str, step: PacketStep<'_>) -> Result<Option<IndexedTx>, String> {
        let PacketStep { event, port, channel, sequence } = step;
        let is_name =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        if !is_name(port) || !is_name(channel) {
            // Other characters of ICS-24 would have to be encoded; ports of tokens have none.
            return Ok(None);
        }
        let side = if matches!(event, "recv_packet" | "write_acknowledgement") { "received" } else { "sent" };
        let target = format!("/indexer/ibc/v1/packets/{channel}/{sequence}?port={port}&side={side}");
        let Some(body) = self.read(chain, &target)? else { return Ok(None) };
        let response: GetIbcPacketResponse =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let Some(packet) = response.sent.or(response.received) else { return Ok(None) };
        let stage = match event {
            "send_packet" => packet.send,
            "recv_packet" => packet.receive,
            "write_acknowledgement" => packet.write_acknowledgement,
            "acknowledge_packet" => packet.acknowledge,
            "timeout_packet" => packet.timeout,
            _ => None,
        };
        // A block's own event has no transaction.
        match stage.map(|stage| parse_hash(&stage.txhash)) {
            Some(Ok(Some(hash))) => self.tx(chain, hash),
            _ => Ok(None),
        }
    }
}
