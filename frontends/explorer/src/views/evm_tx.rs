//! All EVM transactions, and one of them with its logs and internal calls.

use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;
use web::call::Call;
use web::endpoint::Param;
use web::http_error::HttpError;

use super::bridge::coverage;
use super::decoded::Event;
use super::evm_log::{Decoded, Subject, decode};
use super::tx::pretty;
use super::{decoded, frames, lookup, rows};
use crate::explorer::Explorer;
use crate::format::{
    account, block, clipped, count, none, number, outcome, pre, quantity, short, whole_account,
};
use crate::layout::Page;
use crate::layout::{facts, section, table};
use crate::listing::{KEY, Listing};
use crate::target::{self, Target, encoded};
use crate::view::{Response, View};
use query::v1::{EvmLog, EvmTx, GetEvmTxResponse, InternalTx};

/// Logs that a page shows, and frames of a page of the call tree.
const LOGS: usize = 100;
const FRAMES: &str = "100";

pub(crate) struct EvmTxsPage;

impl View for EvmTxsPage {
    const PATH: &'static str = "/evm-txs";
    const SUMMARY: &'static str = "All EVM transactions.";
    const PARAMS: &'static [Param] = &[KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let txs = Listing::<EvmTx>::read(explorer, call, Target::new("/indexer/tx/v1/evm-txs"))?;
        let body = html! {
            section.card { (rows::evm_txs(&txs.rows)) (txs.pager(&Target::new(Self::PATH))) }
        };
        Ok(Page {
            title: "EVM transactions".to_owned(),
            about: String::new(),
            body,
            requests: vec![txs.request],
        }
        .into())
    }
}

pub(crate) struct EvmTxPage;

impl View for EvmTxPage {
    const PATH: &'static str = "/evm-tx/{hash}";
    const SUMMARY: &'static str = "One EVM transaction; the hash of a Cosmos transaction leads to its page.";
    const PARAMS: &'static [Param] = &[Param::path("hash", "Hex, with or without 0x."), KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let request = format!("/indexer/tx/v1/evm-txs/{}", encoded(call.text("hash")));
        let raw = match explorer.read_bytes(&request) {
            Err(error) if error.status() == StatusCode::NOT_FOUND => {
                let page = lookup::tx(explorer, call.text("hash"))?;
                return page.map(Response::Redirect).ok_or(error);
            }
            raw => raw?,
        };
        let response: GetEvmTxResponse = serde_json::from_slice(&raw).map_err(HttpError::internal)?;
        let tx = response.tx.unwrap_or_default();
        let list = Target::new(format!("/indexer/tx/v1/evm-internal-txs/{}", tx.transaction_hash))
            .with("pagination.reverse", "false")
            .with("pagination.limit", FRAMES)
            .with_some("pagination.key", call.first("pagination.key"));
        let calls = Listing::<InternalTx>::first(explorer, list)?;
        let succeeded = tx.status == "0x1";
        let fee = quantity(&tx.gas_used)
            .zip(quantity(&tx.effective_gas_price))
            .and_then(|(gas, price)| gas.checked_mul(price));
        let covered = quantity(&tx.block_number).map(|height| coverage(explorer, height)).transpose()?;
        let (covered_by, coverage_requests) = covered.unwrap_or_else(|| (none(), Vec::new()));
        // What cannot be explained now is shown as it is.
        let explained = explorer.decoded(&tx.transaction_hash).unwrap_or_default();
        let body = html! {
            section.card {
                (facts(vec![
                    ("Hash", html! { span.mono { (tx.transaction_hash) } }),
                    ("Result", outcome(succeeded)),
                    ("Height", quantity(&tx.block_number).map_or_else(none, block)),
                    ("Index in the block", number(&tx.transaction_index)),
                    ("Covered by", covered_by),
                    ("From", whole_account(&tx.from)),
                    ("To", whole_account(&tx.to)),
                    ("Function", decoded::call(&explained).unwrap_or_else(none)),
                    ("Created contract", whole_account(tx.contract_address.as_deref().unwrap_or_default())),
                    ("Gas used", number(&tx.gas_used)),
                    ("Gas price", number(&tx.effective_gas_price)),
                    ("Fee", fee.map_or_else(none, |fee| html! { (count(fee)) " base units" })),
                    ("Type", number(&tx.r#type)),
                ]))
            }
            (section(&format!("Logs ({})", tx.logs.len()), &logs(&tx.logs, &explained)))
            (section(&format!("Internal calls ({})", calls.total()), &html! {
                (frames::tree(&calls.rows, !succeeded))
                (calls.pager(&Target::new(target::evm_tx(&tx.transaction_hash))))
            }))
            section.card { details { summary { "Raw JSON" } (pre(&pretty(&raw))) } }
        };
        let mut requests = vec![request, calls.request];
        requests.extend(coverage_requests);
        let about = short(&tx.transaction_hash);
        Ok(Page { title: "EVM transaction".to_owned(), about, body, requests }.into())
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
            html! { a.num href=(target::holders(&log.address)) title="Holders" { (count(amount)) } }
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
