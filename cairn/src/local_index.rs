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
use tracker::{IndexedTx, PacketStep};
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
        // A block's own event has no transaction.
        match stage.map(|stage| parse_hash(&stage.txhash)) {
            Some(Ok(Some(hash))) => self.tx(chain, hash),
            _ => Ok(None),
        }
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
