//! The messages of a transaction, member by member.

use maud::{Markup, html};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::explorer::Explorer;
use crate::format::{clipped, message_type, none, pre, text, whole_account};
use crate::record;

/// Messages, and members of one, that a page shows; the JSON has all.
pub(super) const MESSAGES: usize = 50;

/// Characters of a nested or long member that is open at once: proofs, headers, code and proof data are longer.
const OPEN: usize = 600;

/// The messages.
pub(super) fn messages(explorer: &Explorer, messages: &[Box<RawValue>]) -> Markup {
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
        Value::String(value) if value.len() > OPEN => folded(&clipped(value)),
        Value::String(value) => text(value),
        Value::Null => none(),
        Value::Bool(_) | Value::Number(_) => html! { (value) },
        Value::Array(_) | Value::Object(_) => {
            let json = pretty(value.to_string().as_bytes());
            if json.len() > OPEN { folded(&json) } else { pre(&json) }
        }
    };
    html! {
        dl.facts {
            @for (name, value) in members.iter().filter(|(name, value)| *name != "@type" && !is_empty(value)).take(MESSAGES) {
                div { dt { bdi { (chain::truncated(name, 60)) } } dd { (shown(value)) } }
            }
        }
    }
}

/// A long text, closed at first.
fn folded(long: &str) -> Markup {
    html! { details { summary { (long.chars().count()) " characters" } (pre(long)) } }
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

/// JSON with indentation; as it is where it nests too deep to be parsed.
pub(super) fn pretty(json: &[u8]) -> String {
    let parsed = serde_json::from_slice::<Value>(json).and_then(|value| serde_json::to_string_pretty(&value));
    clipped(&parsed.unwrap_or_else(|_| String::from_utf8_lossy(json).into_owned()))
}
