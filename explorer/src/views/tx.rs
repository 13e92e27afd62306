//! All Cosmos transactions, and one of them with its messages and events.

use maud::{Markup, html};
use serde_json::Value;
use serde_json::value::RawValue;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::rows;
use crate::explorer::Explorer;
use crate::format::{
    account, block, clipped, count, message_type, none, outcome, text, whole_account, whole_time,
};
use crate::layout::Page;
use crate::layout::{facts, section};
use crate::listing::{KEY, Listing};
use crate::record::{self, Event, OneTx, Tx};
use crate::target::{Target, encoded};
use crate::view::{Answer, View};

/// Messages and events that a page shows; the JSON has all.
const MESSAGES: usize = 50;
const EVENTS: usize = 200;

/// Filter by message types.
pub(crate) const MSGS: Param = Param::query("msgs", Type::String, "Message types, separated by commas.");

pub(crate) struct TxsPage;

impl View for TxsPage {
    const PATH: &'static str = "/txs";
    const SUMMARY: &'static str = "All Cosmos transactions.";
    const PARAMS: &'static [Param] = &[MSGS, KEY];

    fn answer(explorer: &Explorer, call: &Call<'_>) -> Result<Answer, HttpError> {
        let msgs = call.first("msgs");
        let list = Target::new("/indexer/tx/v1/txs").with_some("msgs", msgs);
        let txs = Listing::<Tx>::read(explorer, call, list)?;
        let page = Target::new(Self::PATH).with_some("msgs", msgs);
        let body = html! {
            form.filter method="get" action=(Self::PATH) { (msgs_input(msgs, &txs.rows)) button type="submit" { "Filter" } }
            section.card { (rows::txs(explorer, &txs.rows)) (txs.pager(&page)) }
        };
        Ok(Page { title: "Transactions".to_owned(), body, requests: vec![txs.request] }.into())
    }
}

/// The input of a filter by message types, with the types of `txs` as suggestions.
pub(crate) fn msgs_input(msgs: Option<&str>, txs: &[Tx]) -> Markup {
    let mut types: Vec<_> = txs.iter().flat_map(|tx| tx.signed().body.types()).collect();
    types.sort_unstable();
    types.dedup();
    html! {
        label { "Message type "
            input type="text" name="msgs" value=[msgs.map(clipped)] list="types" placeholder="cosmos.bank.v1beta1.MsgSend" spellcheck="false";
        }
        datalist #types { @for name in types.iter().take(MESSAGES) { option value=(name.trim_start_matches('/')) {} } }
    }
}

pub(crate) struct TxPage;

impl View for TxPage {
    const PATH: &'static str = "/tx/{hash}";
    const SUMMARY: &'static str = "One Cosmos transaction.";
    const PARAMS: &'static [Param] = &[Param::path("hash", "Hex, with or without 0x.")];

    fn answer(explorer: &Explorer, call: &Call<'_>) -> Result<Answer, HttpError> {
        let request = format!("/indexer/tx/v1/txs/{}", encoded(call.text("hash")));
        let raw = explorer.read_bytes(&request)?;
        let OneTx { tx } = serde_json::from_slice(&raw).map_err(HttpError::internal)?;
        let (signed, events) = (tx.signed(), tx.events());
        let fee = &signed.auth_info.fee;
        let body = html! {
            section.card {
                (facts(vec![
                    ("Hash", html! { span.mono { (tx.txhash) } }),
                    ("Result", html! {
                        (outcome(tx.code == 0))
                        @if tx.code != 0 { " " span.dim { "code " (tx.code) " of " bdi { (clipped(&tx.codespace)) } } }
                    }),
                    ("Height", block(&tx.height)),
                    ("Time", whole_time(&tx.timestamp)),
                    ("Fee", rows::coins(explorer, &fee.amount)),
                    ("Gas", html! { (count(&tx.gas_used)) " used of " (count(&tx.gas_wanted)) " wanted" }),
                    ("Memo", text(&signed.body.memo)),
                    ("Fee payer", account(&fee.payer)),
                    ("Fee granter", account(&fee.granter)),
                ]))
                @if tx.code != 0 { h3 { "Error" } pre.problem { (clipped(&tx.raw_log)) } }
            }
            (section(&format!("Messages ({})", signed.body.messages.len()), &messages(explorer, &signed.body.messages)))
            (section(&format!("Events ({})", events.len()), &events_of(explorer, &events)))
            section.card { details { summary { "Raw JSON" } pre { (pretty(&raw)) } } }
        };
        Ok(Page { title: "Transaction".to_owned(), body, requests: vec![request] }.into())
    }
}

fn messages(explorer: &Explorer, messages: &[Box<RawValue>]) -> Markup {
    html! {
        @for message in messages.iter().take(MESSAGES) {
            article.message {
                h3 { (message_type(&record::message_type(message))) }
                (members(explorer, message))
            }
        }
        @if messages.len() > MESSAGES { p.dim { "The first " (MESSAGES) " of " (messages.len()) "; the JSON has all." } }
        @if messages.is_empty() { p.empty { "No message was decoded; the raw JSON has the transaction's bytes." } }
    }
}

/// The members of a message; nested ones as JSON.
fn members(explorer: &Explorer, message: &RawValue) -> Markup {
    let Ok(Value::Object(members)) = serde_json::from_str(message.get()) else {
        return html! { pre { (clipped(message.get())) } };
    };
    let shown = |value: &Value| match value {
        Value::String(value) if explorer.is_account(value) => whole_account(value),
        Value::String(value) => text(value),
        Value::Null => none(),
        Value::Array(list) if list.is_empty() => none(),
        Value::Bool(_) | Value::Number(_) => html! { (value) },
        Value::Array(_) | Value::Object(_) => html! { pre { (pretty(value.to_string().as_bytes())) } },
    };
    html! {
        dl.facts {
            @for (name, value) in members.iter().filter(|(name, _)| *name != "@type").take(MESSAGES) {
                div { dt { bdi { (chain::truncated(name, 60)) } } dd { (shown(value)) } }
            }
        }
    }
}

fn events_of(explorer: &Explorer, events: &[Event]) -> Markup {
    html! {
        @if events.is_empty() { p.empty { "There are no events." } }
        @for event in events.iter().take(EVENTS) {
            details.event open[events.len() <= 8] {
                summary { bdi { (chain::truncated(&event.kind, 80)) } span.dim { " " (event.attributes.len()) } }
                dl.facts {
                    @for attribute in event.attributes.iter().take(MESSAGES) {
                        div {
                            dt { bdi { (chain::truncated(&attribute.key, 60)) } }
                            dd { (value(explorer, attribute.value.as_deref().unwrap_or_default())) }
                        }
                    }
                }
            }
        }
        @if events.len() > EVENTS { p.dim { "The first " (EVENTS) " of " (events.len()) "; the JSON has all." } }
    }
}

/// A value of an event.
fn value(explorer: &Explorer, value: &str) -> Markup {
    if explorer.is_account(value) { whole_account(value) } else { text(value) }
}

/// JSON with indentation; as it is where it nests too deep to be parsed.
pub(crate) fn pretty(json: &[u8]) -> String {
    let parsed = serde_json::from_slice::<Value>(json).and_then(|value| serde_json::to_string_pretty(&value));
    clipped(&parsed.unwrap_or_else(|_| String::from_utf8_lossy(json).into_owned()))
}
