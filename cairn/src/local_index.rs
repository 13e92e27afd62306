//! The index of this process as its routing service reads it: over the JSON API, without a socket.

use std::sync::{Arc, OnceLock, Weak};

use chain::hash::{Hash, parse_hash};
use chain::{Account, U256};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::StatusCode;
use node::TxSearchHit;
use query::Indexer;
use query::v1::{GetIbcPacketResponse, ListBalancesResponse};
use serde_json::Value;
use tracker::{BridgeStep, IndexedTx, PacketStep};
use web::app::App;

/// Rows of a page of balances: the most that the API gives.
const ROWS: usize = 1000;

/// The reason why something is not ready.
type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The index, once there is one. Weak, because its app may own pages that hold the routing service.
#[derive(Clone)]
pub(crate) struct CurrentIndex {
    app: Arc<OnceLock<Weak<App<Indexer>>>>,
    /// Whether the index is at the head of the chain, or the reason why not.
    ready: Ready,
}

impl CurrentIndex {
    pub(crate) fn new(ready: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { app: Arc::default(), ready: Arc::new(ready) }
    }

    /// That of a process without an index of its own.
    pub(crate) fn none() -> Self {
        Self::new(|| Err("this process has no index".to_owned()))
    }

    /// Sets the index, which is opened once.
    pub(crate) fn set(&self, app: &Arc<App<Indexer>>) {
        drop(self.app.set(Arc::downgrade(app)));
    }

    /// The index of `chain`.
    fn of(&self, chain: &str) -> Option<Arc<App<Indexer>>> {
        let app = self.app.get().and_then(Weak::upgrade);
        app.filter(|app| app.state().chain_id() == chain)
    }

    /// The transaction with this hash; a block's own event has none.
    fn tx_of(&self, chain: &str, hash: Option<impl AsRef<str>>) -> Result<Option<IndexedTx>, String> {
        match hash.map(|hash| parse_hash(hash.as_ref())) {
            Some(Ok(Some(hash))) => tracker::LocalIndex::tx(self, chain, hash),
            _ => Ok(None),
        }
    }

    /// The body of `GET target`, if `chain` is indexed here and has what is wanted.
    fn read(&self, chain: &str, target: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(app) = self.of(chain) else { return Ok(None) };
        match app.read(target) {
            Ok(reply) => Ok(Some(reply.body.to_vec())),
            Err(error) if error.status() == StatusCode::NOT_FOUND => Ok(None),
            Err(error) => Err(error.message().to_owned()),
        }
    }
}

impl tracker::LocalIndex for CurrentIndex {
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
        self.tx_of(chain, stage.map(|stage| stage.txhash))
    }

    fn bridge(&self, chain: &str, step: BridgeStep) -> Result<Option<IndexedTx>, String> {
        let root = "/indexer/bridge/v1";
        let (target, hash) = match step {
            BridgeStep::Finalized { l1_sequence } => {
                (format!("{root}/deposits/{l1_sequence}"), "/deposit/txhash")
            }
            BridgeStep::Proposed { bridge, output } => {
                (format!("{root}/outputs/{output}?bridge_id={bridge}"), "/output/l1_txhash")
            }
            BridgeStep::Claimed { bridge, l2_sequence } => {
                (format!("{root}/claims?bridge_id={bridge}&l2_sequence={l2_sequence}"), "/claims/0/txhash")
            }
        };
        let Some(body) = self.read(chain, &target)? else { return Ok(None) };
        let response: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        self.tx_of(chain, response.pointer(hash).and_then(Value::as_str))
    }
}

impl routing_api::LocalIndex for CurrentIndex {
    fn balances(&self, chain: &str, account: Account) -> Option<Vec<(String, U256)>> {
        let app = self.of(chain)?;
        // Behind the chain it would tell old balances.
        (self.ready)().ok()?;
        let root = format!("/indexer/ledger/v1/balances/by_account/{}", account.to_hex());
        let (mut held, mut key) = (Vec::new(), String::new());
        loop {
            let page = app.read(&format!("{root}?pagination.limit={ROWS}{key}")).ok()?;
            let page: ListBalancesResponse = serde_json::from_slice(&page.body).ok()?;
            for balance in page.balances {
                // The bank shows other amounts of derived ones, and none of contracts without a denom.
                let is_of_bank = balance.exact && balance.derived == Some(false);
                if !balance.denom.is_empty() {
                    let amount = U256::from_str_radix(&balance.amount, 10).ok().filter(|_| is_of_bank)?;
                    held.push((balance.denom, amount));
                }
            }
            match page.pagination.map(|page| page.next_key).filter(|next| !next.is_empty()) {
                Some(next) => key = format!("&pagination.key={next}"),
                None => return Some(held),
            }
        }
    }

    fn changes(&self, chain: &str, account: Account) -> Option<BoxStream<'static, ()>> {
        let target = format!("/indexer/stream/v1/transfers?include_fees=true&account={}", account.to_hex());
        let events = self.of(chain)?.open(&target).ok()?;
        Some(events.filter(|event| std::future::ready(event.name() == "transfer")).map(drop).boxed())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use chain::bridge::BridgeEvent;
    use chain::comet::{order, parse_block, parse_results};
    use chain::hash::tx_hash;
    use replay::{Options, Recording};
    use schema::bridge::BRIDGE;
    use store::{MemStore, Store};
    use tracker::LocalIndex as _;

    use super::*;

    static INDEX: schema::index::Index = BRIDGE;

    /// The transactions of all steps of the bridge on a recorded chain.
    fn steps(recording: &Recording) -> HashMap<BridgeStep, Hash> {
        let mut steps = HashMap::new();
        for of in recording.heights() {
            let raw = parse_block(&of.block).unwrap().raw_txs().unwrap();
            for (place, event) in order::in_order(&parse_results(&of.block_results).unwrap()) {
                let step = match BridgeEvent::read(event) {
                    Some(BridgeEvent::Finalized(of)) => BridgeStep::Finalized { l1_sequence: of.l1_sequence },
                    Some(BridgeEvent::Proposed(of)) => {
                        BridgeStep::Proposed { bridge: of.bridge, output: of.output }
                    }
                    Some(BridgeEvent::Claim(of)) => {
                        BridgeStep::Claimed { bridge: of.bridge, l2_sequence: of.sequence }
                    }
                    _ => continue,
                };
                steps.insert(step, tx_hash(&raw[place.unwrap()]));
            }
        }
        steps
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn steps_of_the_bridge_are_read_from_the_own_tables() {
        for name in ["l1-l2/l1", "l1-l2/l2", "bridge-cases/l1"] {
            let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
            let store: Arc<dyn Store> = Arc::new(MemStore::new());
            let mut config = testkit::indexed::config(&recording).unwrap();
            config.indexes = vec![&INDEX];
            let played = (Arc::clone(&recording), Options::default());
            testkit::indexed::index_as(config, played.0, played.1, Arc::clone(&store)).await.unwrap();
            let app = App::new(testkit::indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
            let app = Arc::new(app);
            let index = CurrentIndex::new(|| Ok(()));
            index.set(&app);
            let chain = app.state().chain_id();
            let steps = steps(&recording);
            assert!(steps.len() > 5, "{name}: {}", steps.len());
            for (step, hash) in steps {
                let found = index.bridge(chain, step).unwrap();
                assert_eq!(found.map(|(tx, _)| tx.hash), Some(hash), "{name} {step:?}");
                assert!(index.bridge("another-1", step).unwrap().is_none());
            }
            let unknown = BridgeStep::Claimed { bridge: 1, l2_sequence: 9_999 };
            assert!(index.bridge(chain, unknown).unwrap().is_none());
        }
    }
}
