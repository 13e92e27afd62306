//! All Cosmos transactions, and one of them with its messages and events.

use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;
use serde_json::value::RawValue;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::bridge::coverage;
use super::tx_list::{self, TxList};
use super::{lookup, rows};
use crate::explorer::Explorer;
use crate::format::{
    account, block, block_data, clipped, count, message_type, none, outcome, pre, short, text, whole_account,
    whole_time,
};
use crate::layout::Page;
use crate::layout::{facts, section};
use query::v1::{Event, GetTxResponse, Tx};

use crate::record;
use crate::target::{self, Target, encoded};
use crate::view::{Response, View};

/// Messages and events that a page shows; the JSON has all.
const MESSAGES: usize = 50;
const EVENTS: usize = 200;

pub(crate) struct TxsPage;

impl View for TxsPage {
    const PATH: &'static str = "/txs";
    const SUMMARY: &'static str = "All Cosmos transactions.";
    const PARAMS: &'static [Param] = &{
        let [msgs, block_data, key] = tx_list::PARAMS;
        [
            msgs,
            block_data,
            key,
            Param::query("a", Type::String, "Leads to the account: the form of Etherscan."),
            Param::query("block", Type::String, "Leads to the block: the form of Etherscan."),
        ]
    };

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let elsewhere = call.first("a").map(target::account);
        let elsewhere = elsewhere.or_else(|| call.first("block").map(|name| target::block(encoded(name))));
        if let Some(page) = elsewhere {
            return Ok(Response::Redirect(page));
        }
        let list = Target::new("/indexer/tx/v1/txs");
        let list = TxList::read(explorer, call, list, Target::new(Self::PATH))?;
        let msgs = TxList::filter(call);
        let body = html! {
            form.filter method="get" action=(Self::PATH) { (msgs_input(msgs, &list.txs.rows)) button type="submit" { "Filter" } }
            section.card { (list.shown(explorer)) }
        };
        let about = msgs.map(|msgs| chain::truncated(msgs, 40)).unwrap_or_default();
        Ok(Page { title: "Transactions".to_owned(), about, body, requests: vec![list.txs.request] }.into())
    }
}

/// The input of a filter by message types, with the types of `txs` as suggestions.
pub(crate) fn msgs_input(msgs: Option<&str>, txs: &[Tx]) -> Markup {
    let mut types: Vec<_> = txs.iter().flat_map(|tx| record::types(&record::signed(tx).body)).collect();
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
    const SUMMARY: &'static str = "One Cosmos transaction; the hash of an EVM transaction leads to its page.";
    const PARAMS: &'static [Param] = &[Param::path("hash", "Hex, with or without 0x.")];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let request = format!("/indexer/tx/v1/txs/{}", encoded(call.text("hash")));
        let raw = match explorer.read_bytes(&request) {
            Err(error) if error.status() == StatusCode::NOT_FOUND => {
                let page = lookup::evm_tx(explorer, call.text("hash"))?;
                return page.map(Response::Redirect).ok_or(error);
            }
            raw => raw?,
        };
        let response: GetTxResponse = serde_json::from_slice(&raw).map_err(HttpError::internal)?;
        let tx = response.tx.unwrap_or_default();
        let (signed, is_block_data) = (record::signed(&tx), record::is_block_data(&tx));
        let fee = &signed.auth_info.fee;
        let (covered_by, coverage_requests) = coverage(explorer, tx.height)?;
        let body = html! {
            section.card {
                (facts(vec![
                    ("Hash", html! { span.mono { (tx.txhash) } }),
                    ("Result", html! {
                        @if is_block_data { (block_data()) } @else { (outcome(tx.code == 0)) }
                        @if tx.code != 0 { " " span.dim { (code(&tx)) } }
                    }),
                    ("Height", block(tx.height)),
                    ("Time", whole_time(&tx.timestamp)),
                    ("Covered by", covered_by),
                    ("Fee", rows::coins(explorer, &fee.amount)),
                    ("Gas", html! { (count(tx.gas_used)) " used of " (count(tx.gas_wanted)) " wanted" }),
                    ("Memo", text(&signed.body.memo)),
                    ("Fee payer", account(&fee.payer)),
                    ("Fee granter", account(&fee.granter)),
                ]))
                @if is_block_data {
                    p.dim { "The proposer put it into the block; the chain executes no message of it: " bdi { (clipped(&tx.raw_log)) } }
                } @else if tx.code != 0 {
                    h2 { "Error" } pre.problem tabindex="0" { (clipped(&tx.raw_log)) }
                }
            }
            (section(&format!("Messages ({})", signed.body.messages.len()), &messages(explorer, &signed.body.messages)))
            (section(&format!("Events ({})", tx.events.len()), &events_of(explorer, &tx.events)))
            section.card { details { summary { "Raw JSON" } (pre(&pretty(&raw))) } }
        };
        let about = short(&tx.txhash);
        let requests = std::iter::once(request).chain(coverage_requests).collect();
        Ok(Page { title: "Transaction".to_owned(), about, body, requests }.into())
    }
}

/// The code of a failure, with its codespace if the chain names one: the SDK's name for none is `undefined`.
fn code(tx: &Tx) -> Markup {
    let codespace = Some(tx.codespace.as_str()).filter(|name| !["", "undefined"].contains(name));
    html! { "code " (tx.code) @if let Some(name) = codespace { " of " bdi { (clipped(name)) } } }
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
        return pre(&clipped(message.get()));
    };
    let shown = |value: &Value| match value {
        Value::String(value) if explorer.is_account(value) => whole_account(value),
        Value::String(value) => text(value),
        Value::Null => none(),
        Value::Bool(_) | Value::Number(_) => html! { (value) },
        Value::Array(_) | Value::Object(_) => pre(&pretty(value.to_string().as_bytes())),
    };
    html! {
        dl.facts {
            @for (name, value) in members.iter().filter(|(name, value)| *name != "@type" && !is_empty(value)).take(MESSAGES) {
                div { dt { bdi { (chain::truncated(name, 60)) } } dd { (shown(value)) } }
            }
        }
    }
}

/// True for a member without a value to show.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn events_of(explorer: &Explorer, events: &[Event]) -> Markup {
    html! {
        @if events.is_empty() { p.empty { "There are no events." } }
        @for event in events.iter().take(EVENTS) {
            details.event open[events.len() <= 8] {
                summary { bdi { (chain::truncated(&event.r#type, 80)) } span.dim { " " (event.attributes.len()) } }
                dl.facts {
                    @for attribute in event.attributes.iter().take(MESSAGES) {
                        div {
                            dt { bdi { (chain::truncated(&attribute.key, 60)) } }
                            dd { (value(explorer, &attribute.value)) }
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
    match value {
        "" => html! { span.none { "(empty)" } },
        _ if explorer.is_account(value) => whole_account(value),
        _ => text(value),
    }
}

/// JSON with indentation; as it is where it nests too deep to be parsed.
pub(crate) fn pretty(json: &[u8]) -> String {
    let parsed = serde_json::from_slice::<Value>(json).and_then(|value| serde_json::to_string_pretty(&value));
    clipped(&parsed.unwrap_or_else(|_| String::from_utf8_lossy(json).into_owned()))
}
