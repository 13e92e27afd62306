//! Queries for LayerZero messages on the receiving chain.
//!
//! An EVM chain is scanned in block ranges; the hop stores the scan position, a few blocks short of the tip because
//! those blocks may still change.

use chain::{Timestamp, Vm};
use node::{Evm, FoundEvent};
use registry::ChainKind;
use serde_json::json;

use super::ChainQueries;
use crate::chains::query_error::QueryError;
use crate::chains::search::Search;
use crate::evidence::asset_location::receiving_oft;
use crate::evidence::hop::{LayerZero, TxRef};
use crate::evidence::layer_zero::{
    ALERT, COMPOSE_DELIVERED, Log, OFT_RECEIVED, amount, is_alert, is_composed, moved, received,
};
use crate::evidence::state::Observation;

/// Maximum ranges scanned in one poll.
const RANGES: usize = 8;

/// Maximum difference of the block times of two chains, in nanoseconds.
const CLOCKS: i64 = 600_000_000_000;

impl ChainQueries<'_> {
    pub(super) async fn delivered(&self, hop: &LayerZero) -> Result<Vec<Observation>, QueryError> {
        let Some(to) = &hop.to else { return Ok(Vec::new()) };
        let chain = self.chain(to)?;
        let search = self.search(to)?;
        if chain.kind() == ChainKind::Cosmos && chain.vm() != Vm::Evm {
            return self.delivered_to_move(hop, &search).await;
        }
        let Some(oft) = self.receiver(hop) else { return Ok(Vec::new()) };
        let scan = Scan {
            hop,
            chain: to,
            evm: search.clients.evm()?,
            oft,
            endpoint: chain.layer_zero_endpoint.clone(),
            confirmations: u64::from(chain.confirmations),
            range: self.options.log_range.max(1),
        };
        scan.run().await
    }

    /// Receiving contract: from the packet, else from the registry.
    fn receiver(&self, hop: &LayerZero) -> Option<String> {
        let in_packet =
            hop.receiver_oft.as_deref().and_then(|word| word.get(24..)).map(|hex| format!("0x{hex}"));
        in_packet.or_else(|| receiving_oft(self.registry, hop))
    }

    async fn delivered_to_move(
        &self,
        hop: &LayerZero,
        search: &Search<'_>,
    ) -> Result<Vec<Observation>, QueryError> {
        let mut queries = vec![(format!("move.guid='{}'", hop.guid), false)];
        // Older nodes do not index the members of module events.
        if let Some(module) = receiving_oft(self.registry, hop) {
            queries.push((format!("move.type_tag='{module}::oft_core::OftReceived'"), true));
        }
        for (query, newest_first) in queries {
            let (txs, _) = search.txs(&query, newest_first).await?;
            for found in txs {
                let is_it = |event: &FoundEvent| {
                    let event = moved(event, "OftReceived").filter(|event| event.guid == hop.guid)?;
                    event.data.get("amount_received_ld").and_then(amount)
                };
                let Some(amount) = found.0.events.iter().find_map(is_it) else { continue };
                let at = search.located(&found).await?;
                return Ok(vec![Observation::Delivered { guid: hop.guid.clone(), at, amount }]);
            }
        }
        Ok(Vec::new())
    }
}

/// Scan over the blocks of an EVM chain.
struct Scan<'a> {
    hop: &'a LayerZero,
    chain: &'a str,
    evm: &'a Evm,
    oft: String,
    endpoint: Option<String>,
    confirmations: u64,
    range: u64,
}

impl Scan<'_> {
    async fn run(&self) -> Result<Vec<Observation>, QueryError> {
        let tip = self.evm.block_number().await?;
        let mut from = match self.hop.scanned {
            Some(next) => next,
            None => self.first_block(tip).await?,
        };
        let (mut found, mut range) = (Vec::new(), self.range);
        for _ in 0..RANGES {
            if from > tip {
                break;
            }
            let to = from.saturating_add(range - 1).min(tip);
            match self.scan_range(from, to).await {
                Ok(observations) => found.extend(observations),
                // The range exceeds the server's limit for one response.
                Err(QueryError::Node(node::Error::Refused { .. })) if range > 1 => {
                    range = (range / 4).max(1);
                    continue;
                }
                Err(e) => return Err(e),
            }
            from = to + 1;
        }
        let next = from.min(tip.saturating_sub(self.confirmations) + 1);
        found.push(Observation::Scanned { guid: self.hop.guid.clone(), next });
        Ok(found)
    }

    /// A block that is surely older than the message, searched from the tip down in steps that double.
    async fn first_block(&self, tip: u64) -> Result<u64, QueryError> {
        let Some(sent) = self.hop.sent.time else { return Ok(0) };
        let (mut block, mut leap) = (tip, 64);
        while block > 0 {
            block = block.saturating_sub(leap);
            leap = leap.saturating_mul(2);
            let time = self.evm.block_time(block).await?;
            if time.is_none_or(|time| time.unix_nanos() < sent.saturating_sub(CLOCKS)) {
                break;
            }
        }
        Ok(block)
    }

    async fn scan_range(&self, from: u64, to: u64) -> Result<Vec<Observation>, QueryError> {
        let guid = &self.hop.guid;
        let mut found = Vec::new();
        for log in self.logs(from, to, &self.oft, json!([OFT_RECEIVED, format!("0x{guid}")])).await? {
            if let (Some(amount), Some(at)) = (received(&log, guid), self.seen(&log).await?) {
                found.push(Observation::Delivered { guid: guid.clone(), at, amount });
            }
        }
        let Some(endpoint) = &self.endpoint else { return Ok(found) };
        // These two events do not have the guid in a topic, so no filter can select it.
        let receiver =
            format!("0x{:0>64}", self.oft.strip_prefix("0x").unwrap_or(&self.oft).to_ascii_lowercase());
        for log in self.logs(from, to, endpoint, json!([ALERT, receiver])).await? {
            if let (true, Some(at)) = (is_alert(&log, guid), self.seen(&log).await?) {
                found.push(Observation::Alerted { guid: guid.clone(), at });
            }
        }
        if self.hop.composes {
            for log in self.logs(from, to, endpoint, json!([COMPOSE_DELIVERED])).await? {
                if let (true, Some(at)) = (is_composed(&log, guid), self.seen(&log).await?) {
                    found.push(Observation::Composed { guid: guid.clone(), at });
                }
            }
        }
        Ok(found)
    }

    async fn logs(
        &self,
        from: u64,
        to: u64,
        contract: &str,
        topics: serde_json::Value,
    ) -> Result<Vec<Log>, QueryError> {
        let filter = json!({
            "fromBlock": format!("{from:#x}"),
            "toBlock": format!("{to:#x}"),
            "address": contract,
            "topics": topics,
        });
        let logs = self.evm.logs(&filter.to_string()).await?;
        serde_json::from_slice(&logs).map_err(|e| QueryError::Unreadable {
            chain: self.chain.to_owned(),
            what: "a list of logs",
            reason: e.to_string(),
        })
    }

    async fn seen(&self, log: &Log) -> Result<Option<TxRef>, QueryError> {
        let Some(height) = log.block() else { return Ok(None) };
        let time = self.evm.block_time(height).await?;
        Ok(Some(TxRef {
            chain: self.chain.to_owned(),
            hash: Some(log.transaction_hash.to_ascii_lowercase()),
            height,
            time: time.map(Timestamp::unix_nanos),
        }))
    }
}
