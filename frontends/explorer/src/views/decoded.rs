//! Calls and logs as the ABIs of known contracts explain them.

use maud::{Markup, html};
use serde_json::Value;

use crate::format::{account, clipped};

/// The function that a transaction called, with its arguments; its selector if no ABI has the function. `None` if it called
/// none.
pub(crate) fn call(decoded: &Value) -> Option<Markup> {
    let call = decoded.get("call")?;
    let selector = call["selector"].as_str()?;
    Some(match call["function"].as_str() {
        None => html! { span.mono title="selector of an unknown function" { (selector) } },
        Some(function) => html! {
            span.mono { (function) } (probably(call)) (arguments("Arguments", &call["arguments"]))
        },
    })
}

/// An event of a log.
pub(crate) struct Event<'a> {
    /// Its signature.
    pub(crate) shown: &'a str,
    log: &'a Value,
}

impl<'a> Event<'a> {
    /// That of the log at this place of a transaction; `None` if no ABI explains it.
    pub(crate) fn of(decoded: &'a Value, place: usize) -> Option<Self> {
        let log = decoded["logs"].get(place)?;
        Some(Self { shown: log["event"].as_str()?, log })
    }

    /// The name of the event.
    pub(crate) fn name(&self) -> &'a str {
        self.shown.split('(').next().unwrap_or(self.shown)
    }

    /// Its arguments.
    pub(crate) fn arguments(&self) -> Markup {
        html! { (probably(self.log)) (arguments("Arguments", &self.log["arguments"])) }
    }
}

/// A remark if it is explained by a standard, and not by the ABI of its contract.
fn probably(explained: &Value) -> Markup {
    html! {
        @if explained["guess"] == true {
            " " span.dim title="by a standard: the ABI of this contract is not known" { "probably" }
        }
    }
}

/// Names and values; nothing if there are none.
fn arguments(label: &str, arguments: &Value) -> Markup {
    let arguments = arguments.as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if !arguments.is_empty() {
            details {
                summary { (label) }
                @for argument in arguments {
                    @let (name, kind) = (text(&argument["name"]), text(&argument["type"]));
                    div { span.dim { (kind) " " (name) " " } (value(&kind, &argument["value"])) }
                }
            }
        }
    }
}

fn value(kind: &str, value: &Value) -> Markup {
    if let ("address", Some(address)) = (kind, value.as_str()) {
        return account(address);
    }
    html! { span.mono { (clipped(&text(value))) } }
}

/// A text as it is, anything else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
