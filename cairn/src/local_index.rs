//! The index of this process as a source of balances for its routing service.

use std::sync::Arc;

use ::grpc::Index;
use chain::{Account, U256};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use query::Indexer;
use query::v1::ListBalancesResponse;
use routing_api::LocalIndex;
use web::app::App;

/// Rows of a page of balances: the most that the API gives.
const ROWS: usize = 1000;

/// Whether the index is at the head of the chain, or the reason why not.
type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The index that this process serves, once there is one.
pub(crate) struct ServedIndex {
    pub(crate) index: Index,
    pub(crate) ready: Ready,
}

impl ServedIndex {
    /// The index of `chain`.
    fn of(&self, chain: &str) -> Option<&Arc<App<Indexer>>> {
        self.index.get().filter(|app| app.state().chain_id() == chain)
    }
}

impl LocalIndex for ServedIndex {
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
