//! The call tree of an EVM transaction, from its frames in depth-first order.
//!
//! Frames have no result of their own: one failed if it returned the data of a revert or a panic.

use std::collections::BTreeMap;

use chain::U256;
use maud::{Markup, html};

use crate::format::{account, cell, none, number, quantity};
use crate::layout::table;
use query::v1::InternalTx;

/// Selectors of `Error(string)` and `Panic(uint256)`.
const ERROR: &str = "0x08c379a0";
const PANIC: &str = "0x4e487b71";

/// Levels that are indented; deeper ones stand at the last.
const MAX_INDENT: usize = 8;

/// The tree as rows, indented by depth. `failed` is true if the transaction failed, and so did its first frame.
pub(crate) fn tree(frames: &[InternalTx], failed: bool) -> Markup {
    let mut depths: BTreeMap<i64, usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for frame in frames {
        // The parent is missing only if it is on the page before.
        let depth =
            depths.get(&frame.parent_index).map_or(usize::from(frame.parent_index >= 0), |depth| depth + 1);
        depths.insert(frame.index, depth);
        let reason = reason(&frame.output).or_else(|| (failed && frame.parent_index < 0).then(String::new));
        rows.push(vec![
            html! {
                span class=(format!("depth d{}", depth.min(MAX_INDENT))) {
                    span.tag title=(format!("depth {depth}")) { (frame.r#type) }
                    @if let Some(reason) = &reason { " " span.badge.bad title=(reason) { "Failed" } }
                }
            },
            account(&frame.from),
            account(&frame.to),
            selector(&frame.input),
            number(&frame.value),
            number(&frame.gas_used),
            reason.map_or_else(none, |reason| cell(&reason)),
        ]);
    }
    let columns = ["Call", "~From", "To", "~Function", ">Value", "~>Gas used", "~Reason"];
    table("Internal calls", &columns, &rows, "There are no internal calls.")
}

/// The first four bytes of the input name the function.
fn selector(input: &str) -> Markup {
    input.get(..10).map_or_else(none, |selector| html! { span.mono { (selector) } })
}

/// Why a frame failed, from its output; `None` if it did not revert with a standard error.
fn reason(output: &str) -> Option<String> {
    let arguments = |selector| output.strip_prefix(selector);
    if let Some(words) = arguments(PANIC) {
        let code = quantity(&format!("0x{}", words.get(..64)?))?;
        return Some(format!("panic 0x{code:02x}"));
    }
    let words = arguments(ERROR)?;
    let text = || {
        // Offset, length, then the bytes of the text.
        let length = quantity(&format!("0x{}", words.get(64..128)?))?;
        let length = usize::try_from(length.min(U256::from(1024))).ok()?;
        let digits = words.get(128..)?;
        let bytes = digits.as_bytes().chunks_exact(2).take(length);
        let bytes: Option<Vec<u8>> =
            bytes.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
        Some(String::from_utf8_lossy(&bytes?).into_owned())
    };
    Some(text().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revert_has_its_reason() {
        let text = format!("{ERROR}{:064x}{:064x}{}{}", 32, 3, "6e6f21", "0".repeat(58));
        assert_eq!(reason(&text).as_deref(), Some("no!"));
        assert_eq!(reason(&format!("{PANIC}{:064x}", 0x11)).as_deref(), Some("panic 0x11"));
        assert_eq!(reason(ERROR).as_deref(), Some(""));
        assert_eq!(reason(&format!("{ERROR}{:064x}{}", 32, "f".repeat(64))).as_deref(), Some(""));
        assert_eq!(reason("0x"), None);
    }
}
