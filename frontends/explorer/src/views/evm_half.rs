//! What the EVM says of a transaction: its receipt with logs, its call tree, and what its sender signed.

use maud::{Markup, html};
use query::v1::{EvmLog, EvmTx, GetEvmTxResponse, InternalTx};
use serde_json::Value;
use web::call::Call;
use web::http_error::HttpError;

use super::decoded::{self, Event};
use super::evm_log::{Decoded, Subject, decode};
use super::frames;
use crate::evm::Signed;
use crate::explorer::Explorer;
use crate::format::{account, clipped, copied, count, decimal, none, number, pre, quantity, whole_account};
use crate::layout::{section, table};
use crate::listing::Listing;
use crate::target::{self, Target, encoded};

/// Logs that a page shows, and frames of a page of the call tree.
const LOGS: usize = 100;
const FRAMES: &str = "100";

/// Decimal places of a value in wei.
const WEI: u8 = 18;

/// In place of a sender: of a transaction that the EVM did not run itself.
const NOBODY: &str = "0x0000000000000000000000000000000000000000";

/// The half.
pub(super) struct EvmHalf {
    pub(super) tx: EvmTx,
    /// Its JSON.
    pub(super) raw: Vec<u8>,
    /// What ABIs say of its call and its logs; null if nothing is known.
    pub(super) explained: Value,
    signed: Signed,
    calls: Listing<InternalTx>,
    /// What ABIs say of each call; empty if nothing is known.
    explained_calls: Vec<Value>,
    request: String,
}

impl EvmHalf {
    /// Reads the transaction with this hash, and the page of its calls that `call` selects. An error 404 if there is none.
    pub(super) fn read(explorer: &Explorer, call: &Call<'_>, hash: &str) -> Result<Self, HttpError> {
        let request = format!("/indexer/tx/v1/evm-txs/{}", encoded(hash));
        let raw = explorer.read_bytes(&request)?;
        let response: GetEvmTxResponse = serde_json::from_slice(&raw).map_err(HttpError::internal)?;
        let tx = response.tx.unwrap_or_default();
        let list = Target::new(format!("/indexer/tx/v1/evm-internal-txs/{}", tx.transaction_hash))
            .with("pagination.reverse", "false")
            .with("pagination.limit", FRAMES)
            .with_some("pagination.key", call.first("pagination.key"));
        let calls = Listing::first(explorer, list)?;
        // What cannot be explained now is shown as it is.
        let explained = explorer.decoded(&tx.transaction_hash).unwrap_or_default();
        let signed = explorer.evm_signed(&tx.transaction_hash)?.unwrap_or_default();
        let explained_calls = explorer.explained(&calls.rows);
        Ok(Self { tx, raw, explained, signed, calls, explained_calls, request })
    }

    /// True if it succeeded.
    pub(super) fn succeeded(&self) -> bool {
        self.tx.status == "0x1"
    }

    /// Its sender; empty if the EVM has none.
    pub(super) fn from(&self) -> &str {
        if self.tx.from == NOBODY { "" } else { &self.tx.from }
    }

    /// Names and values that only the EVM has. `symbol` is that of its native token, as far as it is known.
    pub(super) fn facts(&self, symbol: &str) -> Vec<(&'static str, Markup)> {
        let tx = &self.tx;
        let value = quantity(&self.signed.value).filter(|value| !value.is_zero());
        let value = value.map_or_else(none, |wei| {
            html! { span.amount title=(format!("{wei} wei")) { (decimal(&wei.to_string(), WEI)) " " bdi.denom { (chain::truncated(symbol, 40)) } } }
        });
        vec![
            ("EVM hash", copied(&tx.transaction_hash)),
            ("To", whole_account(&tx.to)),
            ("Created contract", whole_account(tx.contract_address.as_deref().unwrap_or_default())),
            ("Function", decoded::call(&self.explained).unwrap_or_else(none)),
            ("Value", value),
            ("Gas used", number(&tx.gas_used)),
            ("Gas price", number(&tx.effective_gas_price)),
            ("Nonce", if self.from().is_empty() { none() } else { number(&self.signed.nonce) }),
            ("Type", number(&tx.r#type)),
            ("Index in the block", number(&tx.transaction_index)),
            ("Input", self.input()),
        ]
    }

    /// The call data; that of a stand-in is the Cosmos hash.
    fn input(&self) -> Markup {
        let digits = self.signed.input.strip_prefix("0x").unwrap_or_default();
        if digits.is_empty() || self.from().is_empty() {
            return none();
        }
        html! { details { summary { (count(digits.len() / 2)) " bytes" } (pre(&clipped(&self.signed.input))) } }
    }

    /// Logs and calls. `page` is the page that shows them, without a cursor.
    pub(super) fn sections(&self, page: &Target) -> Markup {
        html! {
            (section(&format!("Logs ({})", self.tx.logs.len()), &logs(&self.tx.logs, &self.explained)))
            (section(&format!("Internal calls ({})", self.calls.total()), &html! {
                (frames::tree(&self.calls.rows, &self.explained_calls, !self.succeeded()))
                (self.calls.pager(page))
            }))
        }
    }

    /// The JSON requests.
    pub(super) fn requests(&self) -> [String; 2] {
        [self.request.clone(), self.calls.request.clone()]
    }
}

fn logs(logs: &[EvmLog], explained: &Value) -> Markup {
    let row = |(place, log): (usize, &EvmLog)| {
        let (standard, event) = (decode(log), Event::of(explained, place));
        let name = match (&standard, &event) {
            (Some(standard), _) => html! { span.tag { (standard.event) } },
            (None, Some(event)) => html! { span.tag title=(event.shown) { (event.name()) } },
            (None, None) => {
                let topic = log.topics.first().map_or("–", |topic| topic.get(..10).unwrap_or(topic));
                html! { span.mono title="topic of the event" { (topic) } }
            }
        };
        let value = match (&standard, event) {
            (Some(standard), _) => subject(log, standard),
            (None, Some(event)) => event.arguments(),
            (None, None) => raw(log),
        };
        vec![
            number(&log.log_index),
            account(&log.address),
            name,
            standard.as_ref().map_or_else(none, |standard| account(&standard.from)),
            standard.as_ref().map_or_else(none, |standard| account(&standard.to)),
            value,
        ]
    };
    let rows: Vec<_> = logs.iter().take(LOGS).enumerate().map(row).collect();
    let columns = ["~>Index", "Contract", "Event", "From", "To", "Value"];
    html! {
        (table("Logs", &columns, &rows, "There are no logs."))
        @if logs.len() > LOGS { p.dim { "The first " (LOGS) " of " (logs.len()) "; the JSON has all." } }
    }
}

fn subject(log: &EvmLog, decoded: &Decoded) -> Markup {
    match &decoded.subject {
        Subject::Amount(amount) => {
            html! { a.num href=(target::any_token(&log.address)) title="The token" { (count(amount)) } }
        }
        Subject::Token(id) => html! {
            span.dim { "token " } a.num href=(target::token(&log.address, &id.to_string()).into_string()) { (chain::truncated(&id.to_string(), 24)) }
        },
        Subject::All(approved) => html! { @if *approved { "approved" } @else { "revoked" } },
    }
}

/// Topics and data of a log of another event.
fn raw(log: &EvmLog) -> Markup {
    html! {
        details {
            summary { "Topics and data" }
            @for topic in &log.topics { div.mono { (topic) } }
            div.mono { (clipped(&log.data)) }
        }
    }
}
