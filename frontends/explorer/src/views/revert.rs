//! Why a call reverted: the text of an error, the meaning of a panic, or the error that a contract or a standard declares.

use chain::U256;
use query::v1::InternalTx;
use serde_json::Value;

use crate::explorer::Explorer;
use crate::format::quantity;

/// Selectors of `Error(string)` and `Panic(uint256)`.
const ERROR: &str = "0x08c379a0";
const PANIC: &str = "0x4e487b71";

/// Characters of a reason.
const MAX_CHARS: usize = 200;

/// Why a call with this output failed; `None` if it did not revert with a known error. `explained` is what ABIs say of the call.
pub(super) fn reason(output: &str, explained: &Value) -> Option<String> {
    let arguments = |selector| output.strip_prefix(selector);
    if let Some(words) = arguments(PANIC) {
        let code = quantity(&format!("0x{}", words.get(..64)?))?;
        return Some(match panic(code) {
            Some(meaning) => format!("{meaning} (panic 0x{code:02x})"),
            None => format!("panic 0x{code:02x}"),
        });
    }
    let Some(words) = arguments(ERROR) else { return declared(&explained["error"]) };
    let text = || {
        // Offset, length, then the bytes of the text.
        let length = quantity(&format!("0x{}", words.get(64..128)?))?;
        let length = usize::try_from(length.min(U256::from(1024))).ok()?;
        let digits = words.get(128..)?;
        let end = length.min(digits.len() / 2) * 2;
        let bytes = hex::decode(digits.get(..end)?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    Some(text().unwrap_or_default())
}

/// What a code of `Panic(uint256)` means (docs.soliditylang.org, Panic via assert).
fn panic(code: U256) -> Option<&'static str> {
    Some(match u8::try_from(code).ok()? {
        0x01 => "a failed assertion",
        0x11 => "arithmetic overflow",
        0x12 => "division or modulo by zero",
        0x21 => "a value that is none of an enum",
        0x22 => "a byte array in storage that is encoded wrongly",
        0x31 => "pop of an empty array",
        0x32 => "an index out of bounds",
        0x41 => "too much memory, or an array that is too large",
        0x51 => "a call of an uninitialised function",
        _ => return None,
    })
}

/// `TooMuch(limit 9)`; with `probably` if it is an error of a standard.
fn declared(error: &Value) -> Option<String> {
    let shown = error["error"].as_str()?;
    let name = shown.split('(').next().unwrap_or(shown);
    let argument = |argument: &Value| {
        let (name, value) = (argument["name"].as_str().unwrap_or_default(), &argument["value"]);
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if name.is_empty() { value } else { format!("{name} {value}") }
    };
    let arguments = error["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let arguments = arguments.iter().map(argument).collect::<Vec<_>>().join(", ");
    let probably = if error["guess"] == true { ", probably" } else { "" };
    Some(format!("{}{probably}", chain::truncated(&format!("{name}({arguments})"), MAX_CHARS)))
}

/// Why a transaction failed, from its log: without the words that each such log has, and without a stack of the machine. `contract` is the
/// one that it called, if it called one.
pub(super) fn of_log(explorer: &Explorer, contract: &str, log: &str) -> String {
    let line = line_of(log);
    let is_data = line.starts_with("0x") && line.get(..10).is_some_and(|error| quantity(error).is_some());
    if !is_data {
        return chain::truncated(line, MAX_CHARS);
    }
    let call = InternalTx { to: contract.to_owned(), output: line.to_owned(), ..InternalTx::default() };
    let explained = explorer.explained(&[call]).into_iter().next().unwrap_or_default();
    let unknown = || format!("the contract's own error {}", line.get(..10).unwrap_or(line));
    reason(line, &explained).unwrap_or_else(unknown)
}

fn line_of(log: &str) -> &str {
    let rest = log.strip_prefix("failed to execute message; message index: ");
    let text = rest.and_then(|rest| rest.split_once(": ")).map_or(log, |(_, rest)| rest);
    let text = text.strip_prefix("revert: ").unwrap_or(text);
    let text = text.strip_suffix(": Reverted").unwrap_or(text);
    text.lines().next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_revert_has_its_reason() {
        let reason = |output: &str| reason(output, &Value::Null);
        let text = format!("{ERROR}{:064x}{:064x}{}{}", 32, 3, "6e6f21", "0".repeat(58));
        assert_eq!(reason(&text).as_deref(), Some("no!"));
        let panic = |code: u8| reason(&format!("{PANIC}{code:064x}"));
        assert_eq!(panic(0x11).as_deref(), Some("arithmetic overflow (panic 0x11)"));
        assert_eq!(panic(0x99).as_deref(), Some("panic 0x99"));
        assert_eq!(reason(ERROR).as_deref(), Some(""));
        assert_eq!(reason(&format!("{ERROR}{:064x}{}", 32, "f".repeat(64))).as_deref(), Some(""));
        assert_eq!(reason("0x"), None);
    }

    #[test]
    fn a_declared_error_is_named_with_its_arguments() {
        let of = |guess: bool| {
            let arguments = json!([{ "name": "limit", "value": "9" }, { "name": "", "value": [true] }]);
            reason(
                "0x12345678",
                &json!({ "error": { "error": "TooMuch(uint256 limit, bool[])", "arguments": arguments, "guess": guess } }),
            )
        };
        assert_eq!(of(false).as_deref(), Some("TooMuch(limit 9, [true])"));
        assert_eq!(of(true).as_deref(), Some("TooMuch(limit 9, [true]), probably"));
    }

    #[test]
    fn the_reason_of_a_failure_is_without_its_wrapping() {
        let log = |text: &str| format!("failed to execute message; message index: 0: {text}");
        for (text, expected) in [
            (
                log("revert: ERC20: transfer amount exceeds balance: Reverted"),
                "ERC20: transfer amount exceeds balance",
            ),
            (log("Reverted"), "Reverted"),
            (log("revert: 0xe450d38c00000000: Reverted"), "0xe450d38c00000000"),
            (log("VM error: status OUT_OF_GAS\nBacktrace: ["), "VM error: status OUT_OF_GAS"),
            (
                "out of gas in location: ReadFlat; gasWanted: 1".to_owned(),
                "out of gas in location: ReadFlat; gasWanted: 1",
            ),
            (String::new(), ""),
        ] {
            assert_eq!(line_of(&text), expected, "{text}");
        }
    }
}
