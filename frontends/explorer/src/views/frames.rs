//! The call tree of an EVM transaction, from its frames in depth-first order.
//!
//! Frames have no result of their own: one failed if it returned the data of an error.

use std::collections::BTreeMap;

use maud::{Markup, html};
use query::v1::InternalTx;
use serde_json::Value;

use super::revert::reason;
use crate::format::{account, cell, none, number};
use crate::layout::table;

/// Levels that are indented; deeper ones stand at the last.
const MAX_INDENT: usize = 8;

/// The tree as rows, indented by depth. `explained` is what ABIs say of each frame, or empty; `failed` is true if the transaction failed,
/// and so did its first frame.
pub(crate) fn tree(frames: &[InternalTx], explained: &[Value], failed: bool) -> Markup {
    let mut depths: BTreeMap<i64, usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for (place, frame) in frames.iter().enumerate() {
        let explained = explained.get(place).unwrap_or(&Value::Null);
        // The parent is missing only if it is on the page before.
        let depth =
            depths.get(&frame.parent_index).map_or(usize::from(frame.parent_index >= 0), |depth| depth + 1);
        depths.insert(frame.index, depth);
        let reason =
            reason(&frame.output, explained).or_else(|| (failed && frame.parent_index < 0).then(String::new));
        rows.push(vec![
            html! {
                span class=(format!("depth d{}", depth.min(MAX_INDENT))) {
                    span.tag title=(format!("depth {depth}")) { (frame.r#type) }
                    @if let Some(reason) = &reason { " " span.badge.bad title=(reason) { "Failed" } }
                }
            },
            account(&frame.from),
            account(&frame.to),
            function(&frame.input, explained),
            number(&frame.value),
            number(&frame.gas_used),
            reason.map_or_else(none, |reason| cell(&reason)),
        ]);
    }
    let columns = ["Call", "~From", "To", "~Function", ">Value", "~>Gas used", "~Reason"];
    table("Internal calls", &columns, &rows, "There are no internal calls.")
}

/// The function that a call calls: its name if an ABI or a standard has it, else its selector, which are the first four bytes of the input.
fn function(input: &str, explained: &Value) -> Markup {
    let Some(selector) = input.get(..10) else { return none() };
    let Some(shown) = explained["function"].as_str() else { return html! { span.mono { (selector) } } };
    let probably = if explained["guess"] == true { "probably " } else { "" };
    let title = chain::truncated(&format!("{probably}{shown}, selector {selector}"), 300);
    html! { span.mono title=(title) { (chain::truncated(shown.split('(').next().unwrap_or(shown), 60)) } }
}
