//! Websocket messages of a node: answers to calls, and events of the new heights that a client subscribed to.
//!
//! Behaviour of CometBFT 0.38 (`rpc/core/events.go`, `rpc/jsonrpc/server/ws_handler.go`, `types/events.go`,
//! `types/event_bus.go`): one call per message, a call without an id gets no reply, and an event has the id of the
//! subscription. Only subscriptions to `NewBlock` and `NewBlockHeader` are supported; any other query gets an error and
//! is counted.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::View;
use super::comet::{posted_params, reply};
use super::comet_reply::{Params, internal, missing};
use super::envelope::{Call, Reply};
use super::query::{Condition, Op, QueryError, parse};
use crate::counters;
use crate::recording::Height;

const KIND: &str = "tm.event";

/// Topics of a subscription, in the order in which a node announces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    NewBlock,
    NewBlockHeader,
}

/// The subscriptions of one client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// At most one per topic, because a node rejects a repeated query.
    held: BTreeMap<Topic, Subscription>,
}

#[derive(Debug)]
struct Subscription {
    /// The raw id of the subscribing call.
    id: Vec<u8>,
    /// In the client's spelling.
    query: String,
}

impl Subscriptions {
    /// Handles a message of the client; returns the reply, if there is one.
    pub(crate) fn handle(&mut self, view: View<'_>, message: &[u8]) -> Option<Bytes> {
        let call: Call<'_> = match serde_json::from_slice(message) {
            Ok(call) => call,
            Err(e) => {
                let data = format!("error unmarshaling request: {e}");
                return Some(Reply::error(-32700, "Parse error. Invalid JSON", Some(&data)).body(b"null"));
            }
        };
        let id = call.id.filter(|id| id.get() != "null")?.get().as_bytes().to_vec();
        let reply = match posted_params(&call) {
            Err(message) => internal(&format!("error converting json params to arguments: {message}")),
            Ok(params) => self.reply(view, &call.method, &params, &id),
        };
        Some(reply.body(&id))
    }

    fn reply(&mut self, view: View<'_>, method: &str, params: &Params, id: &[u8]) -> Reply {
        let query = params.get("query").map_or("", String::as_str);
        let changed = match method {
            "subscribe" => self.subscribe(view, query, id),
            "unsubscribe" => topic(view, query).and_then(|topic| {
                self.held.remove(&topic).map(|_| ()).ok_or_else(|| internal("subscription not found"))
            }),
            "unsubscribe_all" if self.held.is_empty() => Err(internal("subscription not found")),
            "unsubscribe_all" => {
                self.held.clear();
                Ok(())
            }
            _ => return reply(view, method, params),
        };
        view.counters.count(counters::Call::CometOther);
        changed.map_or_else(|error| error, |()| Reply::text("{}"))
    }

    fn subscribe(&mut self, view: View<'_>, query: &str, id: &[u8]) -> Result<(), Reply> {
        let topic = topic(view, query)?;
        if self.held.contains_key(&topic) {
            return Err(internal("already subscribed"));
        }
        self.held.insert(topic, Subscription { id: id.to_vec(), query: query.to_owned() });
        Ok(())
    }

    /// The events of a new height, one message per subscription.
    pub(crate) fn announce(&self, height: &Height) -> Result<Vec<Bytes>, serde_json::Error> {
        self.held.iter().map(|(topic, held)| held.event(*topic, height)).collect()
    }
}

/// The topic of a query.
fn topic(view: View<'_>, query: &str) -> Result<Topic, Reply> {
    let unsupported = || missing(view, &format!("subscription {query}"));
    let conditions = parse(query).map_err(|none| match none {
        QueryError::Message(message) => internal(&format!("failed to parse query: {message}")),
        QueryError::Time => unsupported(),
    })?;
    match &conditions[..] {
        [Condition { tag, op: Op::Equal, value }] if tag == KIND => match value.as_str() {
            "NewBlock" => Ok(Topic::NewBlock),
            "NewBlockHeader" => Ok(Topic::NewBlockHeader),
            _ => Err(unsupported()),
        },
        _ => Err(unsupported()),
    }
}

#[derive(Deserialize)]
struct RecordedBlock<'a> {
    #[serde(borrow)]
    block_id: &'a RawValue,
    #[serde(borrow)]
    block: &'a RawValue,
}

#[derive(Deserialize)]
struct Headed<'a> {
    #[serde(borrow)]
    header: &'a RawValue,
}

#[derive(Deserialize)]
struct RecordedResults<'a> {
    #[serde(borrow)]
    finalize_block_events: Option<&'a RawValue>,
    #[serde(borrow)]
    txs_results: Option<&'a RawValue>,
    #[serde(borrow)]
    validator_updates: Option<&'a RawValue>,
    #[serde(borrow)]
    consensus_param_updates: Option<&'a RawValue>,
    #[serde(borrow, default)]
    app_hash: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Serialize)]
struct Told<'a, T> {
    query: &'a str,
    data: Data<T>,
    events: BTreeMap<String, Vec<String>>,
}

#[derive(Serialize)]
struct Data<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    value: T,
}

#[derive(Serialize)]
struct NewBlock<'a> {
    block: &'a RawValue,
    block_id: &'a RawValue,
    result_finalize_block: Finalized<'a>,
}

/// A node omits empty members, except the updates of validators.
#[derive(Serialize)]
struct Finalized<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_results: Option<&'a RawValue>,
    validator_updates: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consensus_param_updates: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_hash: Option<&'a RawValue>,
}

impl Subscription {
    fn event(&self, topic: Topic, height: &Height) -> Result<Bytes, serde_json::Error> {
        let RecordedBlock { block_id, block } = serde_json::from_slice(&height.block)?;
        let query = self.query.as_str();
        let result = match topic {
            Topic::NewBlock => {
                let results: RecordedResults<'_> = serde_json::from_slice(&height.block_results)?;
                let mut events = tags(results.finalize_block_events)?;
                events.entry(KIND.to_owned()).or_default().push("NewBlock".to_owned());
                let value = NewBlock { block, block_id, result_finalize_block: results.into() };
                let data = Data { kind: "tendermint/event/NewBlock", value };
                serde_json::to_string(&Told { query, data, events })?
            }
            Topic::NewBlockHeader => {
                let Headed { header } = serde_json::from_str(block.get())?;
                let value = BTreeMap::from([("header", header)]);
                let data = Data { kind: "tendermint/event/NewBlockHeader", value };
                let events = BTreeMap::from([(KIND.to_owned(), vec!["NewBlockHeader".to_owned()])]);
                serde_json::to_string(&Told { query, data, events })?
            }
        };
        Ok(Reply::text(result).body(&self.id))
    }
}

impl<'a> From<RecordedResults<'a>> for Finalized<'a> {
    fn from(results: RecordedResults<'a>) -> Self {
        Self {
            events: non_null(results.finalize_block_events),
            tx_results: non_null(results.txs_results),
            validator_updates: results.validator_updates,
            consensus_param_updates: non_null(results.consensus_param_updates),
            app_hash: non_null(results.app_hash),
        }
    }
}

/// The value of a member, unless it is empty.
fn non_null(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| !matches!(raw.get(), "null" | "[]" | "\"\""))
}

/// The events of a block by `type.key`, each with its values in order.
fn tags(events: Option<&RawValue>) -> Result<BTreeMap<String, Vec<String>>, serde_json::Error> {
    let mut tags = BTreeMap::<String, Vec<String>>::new();
    let events: Option<Vec<Event>> = events.map_or(Ok(None), |raw| serde_json::from_str(raw.get()))?;
    for event in events.unwrap_or_default().into_iter().filter(|event| !event.kind.is_empty()) {
        for Attribute { key, value } in event.attributes.into_iter().filter(|a| !a.key.is_empty()) {
            tags.entry(format!("{}.{key}", event.kind)).or_default().push(value);
        }
    }
    Ok(tags)
}
