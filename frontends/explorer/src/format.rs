//! Hashes, addresses, times and amounts as HTML.
//!
//! A shortened value has the whole one as its title, and the whole one is what is copied from the record's own page.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chain::{Timestamp, U256};
use maud::{Markup, html};

use crate::routing::Unit;
use crate::target;

/// Characters of external text that a table cell shows.
const CELL: usize = 80;

/// Characters of a title: a page has many of them.
const TITLE: usize = 300;

/// Characters of external text that a page shows at all.
const MAX_CHARS: usize = 20_000;

/// A hash or an address, shortened in the middle.
pub(crate) fn short(text: &str) -> String {
    const ENDS: (usize, usize) = (10, 6);
    let chars = text.chars().count();
    if chars <= ENDS.0 + ENDS.1 + 1 {
        return text.to_owned();
    }
    let head: String = text.chars().take(ENDS.0).collect();
    let tail: String = text.chars().skip(chars - ENDS.1).collect();
    format!("{head}…{tail}")
}

/// A link with a shortened text.
pub(crate) fn link(href: &str, text: &str) -> Markup {
    html! { a.mono href=(href) title=(title(text)) { (short(text)) } }
}

/// The link of a block.
pub(crate) fn block(height: impl std::fmt::Display) -> Markup {
    html! { a.num href=(target::block(&height)) { (height) } }
}

/// The link of a Cosmos transaction.
pub(crate) fn tx(hash: &str) -> Markup {
    link(&target::tx(hash), hash)
}

/// The link of an EVM transaction.
pub(crate) fn evm_tx(hash: &str) -> Markup {
    link(&target::tx(hash), hash)
}

/// The link of an account; a dash if there is none.
pub(crate) fn account(address: &str) -> Markup {
    if address.is_empty() { none() } else { link(&target::account(address), address) }
}

/// The link of an account with its whole address.
pub(crate) fn whole_account(address: &str) -> Markup {
    if address.is_empty() {
        return none();
    }
    html! { a.mono href=(target::account(address)) { (address) } }
}

/// A whole text that is often copied: a hash, an address. The script shows the button.
pub(crate) fn copied(text: &str) -> Markup {
    html! {
        span.mono { (text) }
        " " button.copy type="button" data-copy=(text) hidden { "Copy" }
    }
}

/// Nothing to show.
pub(crate) fn none() -> Markup {
    html! { span.none { "–" } }
}

/// External text in a table cell: short, isolated from the direction of its surroundings.
pub(crate) fn cell(text: &str) -> Markup {
    if text.is_empty() {
        none()
    } else {
        html! { bdi title=(title(text)) { (chain::truncated(text, CELL)) } }
    }
}

/// External text on the page of its record.
pub(crate) fn text(text: &str) -> Markup {
    if text.is_empty() {
        none()
    } else {
        html! { bdi.text { (clipped(text)) } }
    }
}

/// Preformatted text, which the keyboard can scroll.
pub(crate) fn pre(text: &str) -> Markup {
    html! { pre tabindex="0" { (text) } }
}

/// The title of a shortened text.
fn title(text: &str) -> String {
    chain::truncated(text, TITLE)
}

/// External text, cut where a page would become too long.
pub(crate) fn clipped(text: &str) -> String {
    chain::truncated(text, MAX_CHARS)
}

/// In place of a text that is longer than the index accepts.
pub(crate) const TOO_LONG: &str = "longer than 256 KiB, not indexed";

/// A URI as text; a link only if it is of the web.
pub(crate) fn uri(uri: &str) -> Markup {
    if is_web(uri) {
        html! { a.mono href=(uri) rel="noopener noreferrer nofollow" { bdi { (uri) } } }
    } else {
        text(uri)
    }
}

/// True for an address of the web that a page links.
pub(crate) fn is_web(uri: &str) -> bool {
    (uri.starts_with("https://") || uri.starts_with("http://")) && uri.len() <= 2048
}

/// A number with a thin space between groups of three digits.
pub(crate) fn count(number: impl std::fmt::Display) -> String {
    grouped(&number.to_string())
}

/// Digits in groups of three; other text as it is.
fn grouped(digits: &str) -> String {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.to_owned();
    }
    let mut text = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// An amount of a denom: in its display unit if that is known, else in base units.
pub(crate) fn coin(amount: &str, denom: &str, unit: Option<&Unit>) -> Markup {
    let base = title(&format!("{amount} {denom}"));
    if let Some(unit) = unit {
        return html! {
            span.amount title=(base) { (decimal(amount, unit.decimals)) " " bdi.denom { (cell(&unit.symbol)) } }
        };
    }
    html! { span.amount title=(base) { (grouped(amount)) " " bdi.denom { (short(denom)) } } }
}

/// `amount / 10^decimals`, exact, without trailing zeros.
pub(crate) fn decimal(amount: &str, decimals: u8) -> String {
    if decimals == 0 || amount.is_empty() || !amount.bytes().all(|byte| byte.is_ascii_digit()) {
        return grouped(amount);
    }
    let places = usize::from(decimals);
    let padded = format!("{amount:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    let (whole, fraction) = (grouped(whole), fraction.trim_end_matches('0'));
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

/// The base units of a decimal amount in display units; `None` if it is not one, or has more places than `decimals`.
pub(crate) fn base_units(amount: &str, decimals: u8) -> Option<String> {
    let (whole, fraction) = amount.trim().split_once('.').unwrap_or((amount.trim(), ""));
    let places = usize::from(decimals);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || fraction.len() > places || whole.len() > 78 {
        return None;
    }
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction:0<places$}");
    let digits = digits.trim_start_matches('0');
    Some(if digits.is_empty() { "0".to_owned() } else { digits.to_owned() })
}

/// A hex quantity of EVM JSON as a number; `None` if it is not one, as `0x`.
pub(crate) fn quantity(hex: &str) -> Option<U256> {
    let digits = hex.strip_prefix("0x")?;
    if digits.is_empty() { None } else { U256::from_str_radix(digits, 16).ok() }
}

/// A hex quantity in decimal; a dash if it is none.
pub(crate) fn number(hex: &str) -> Markup {
    quantity(hex).map_or_else(none, |number| html! { span.num { (count(number)) } })
}

/// A time relative to now, with the exact time as its title.
pub(crate) fn time(text: &str) -> Markup {
    let Ok(then) = Timestamp::parse(text) else { return cell(text) };
    html! { time datetime=(then.nanos()) title=(exact(then)) data-ago { (ago(then)) } }
}

/// The exact time, and how long ago it was.
pub(crate) fn whole_time(text: &str) -> Markup {
    let Ok(then) = Timestamp::parse(text) else { return cell(text) };
    html! { (exact(then)) " " span.dim { "(" (time(text)) ")" } }
}

fn exact(then: Timestamp) -> String {
    then.seconds().replace('T', " ").replace('Z', " UTC")
}

/// As `ago` in the script.
fn ago(then: Timestamp) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(then.unix_nanos()).unwrap_or(0);
    let mut left = now.saturating_sub(Duration::from_nanos(nanos)).as_secs();
    for (unit, size) in [("s", 60), ("min", 60), ("h", 24)] {
        if left < size {
            return format!("{left} {unit} ago");
        }
        left /= size;
    }
    format!("{left} d ago")
}

/// A duration in its two largest units.
pub(crate) fn duration(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => format!("{minutes} min {rest} s"),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The outcome of a transaction or call.
pub(crate) fn outcome(succeeded: bool) -> Markup {
    if succeeded {
        html! { span.badge.good { "Success" } }
    } else {
        html! { span.badge.bad { "Failed" } }
    }
}

/// In place of an outcome: what only stands among the transactions of a block.
pub(crate) fn block_data() -> Markup {
    html! { span.badge.none { "Block data" } }
}

/// The last part of a message type, with the whole one as its title.
pub(crate) fn message_type(name: &str) -> Markup {
    let last = name.rsplit('.').next().unwrap_or(name).trim_start_matches('/');
    let last = last.strip_prefix("Msg").filter(|rest| !rest.is_empty()).unwrap_or(last);
    html! { span.tag title=(title(name)) { bdi { (chain::truncated(last, CELL)) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_exact_to_the_unit() {
        let cases = [
            ("1500000", 6, "1.5"),
            ("1", 18, "0.000000000000000001"),
            ("1000000000000000000012361", 18, "1\u{202f}000\u{202f}000.000000000000012361"),
            ("0", 6, "0"),
            ("12", 0, "12"),
            ("-5", 6, "-5"),
        ];
        for (amount, decimals, shown) in cases {
            assert_eq!(decimal(amount, decimals), shown);
        }
    }

    #[test]
    fn an_entered_amount_becomes_base_units_or_nothing() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(base_units("1.5", 6), some("1500000"));
        assert_eq!(base_units(" .5", 1), some("5"));
        assert_eq!(base_units("007", 0), some("7"));
        assert_eq!(base_units("0.0", 6), some("0"));
        for wrong in ["", ".", "-1", "1e5", "0.0000001", "1.2.3", "1,5"] {
            assert_eq!(base_units(wrong, 6), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_uri_of_the_web_is_a_link() {
        assert!(uri("https://nft.test/1").into_string().starts_with("<a "));
        for text in ["javascript:alert(1)", "data:text/html,<script>", "ipfs://Qm", " https://x", "HTTPS://x"]
        {
            assert!(!uri(text).into_string().contains("<a "), "{text}");
        }
    }

    #[test]
    fn a_shortened_text_is_cut_between_characters() {
        assert_eq!(short("0x1234567890"), "0x1234567890");
        assert_eq!(short(&"é".repeat(40)), format!("{}…{}", "é".repeat(10), "é".repeat(6)));
    }
}
