//! The functions of a contract that only read: a form for each of them, and what the one that is called returns.

use chain::Account;
use maud::{Markup, html};
use query::v1::InternalTx;
use serde_json::{Value, json};
use web::call::Call;
use web::http_error::HttpError;

use crate::contracts::CallError;
use crate::explorer::Explorer;
use crate::format::{account, clipped, text};
use crate::layout::section;
use crate::target;
use crate::views::revert;

/// Functions of an ABI that a page shows.
const SHOWN: usize = 200;

/// An ABI, with what it is of.
pub(super) struct Functions {
    pub(super) title: &'static str,
    pub(super) abi: Value,
}

/// A call of a function.
pub(super) struct Called {
    /// As the ABI has it.
    function: String,
    selector: String,
    /// As they were given.
    arguments: Vec<String>,
    outcome: Result<Value, String>,
    request: String,
}

/// The call that a request asks for; `None` if it asks for none. `functions` are those that may be called.
pub(super) async fn called(
    explorer: &Explorer,
    call: &Call<'_>,
    address: &str,
    functions: &[Functions],
) -> Result<Option<Called>, HttpError> {
    let (Some(selector), Some(contracts)) = (call.first("function"), explorer.contracts()) else {
        return Ok(None);
    };
    if !explorer.has_state() {
        return Ok(None);
    }
    let arguments: Vec<String> = call
        .form()?
        .into_iter()
        .filter(|(name, _)| name == "arg")
        .map(|(_, value)| value.into_owned())
        .collect();
    let list = |of: &Functions| contracts.reads(&of.abi).into_iter().find(|it| it["selector"] == selector);
    let found = functions.iter().find_map(|of| Some((of, list(of)?)));
    let Some((of, function)) = found else {
        let selector = chain::truncated(selector, 20);
        return Err(HttpError::bad_request(format!(
            "no known function of the contract that only reads has the selector `{selector}`"
        )));
    };
    let shown = function["shown"].as_str().unwrap_or_default().to_owned();
    let hex_arguments = in_hex(explorer, &function, &arguments);
    let mut called = Called {
        function: shown,
        selector: selector.to_owned(),
        arguments,
        outcome: Err(String::new()),
        request: String::new(),
    };
    let input = match contracts.input(&of.abi, selector, &hex_arguments) {
        Ok(input) => input,
        Err(error) => {
            called.outcome = Err(error);
            return Ok(Some(called));
        }
    };
    let params = json!([{ "to": address, "data": input }, "latest"]);
    called.request = format!("POST eth_call\n{params}");
    let result = explorer.state(call, vec![("eth_call", params)]).await?.into_iter().next();
    called.outcome = match result {
        Some(Ok(Value::String(output))) => contracts.returned(&of.abi, selector, &output).ok_or_else(|| {
            let output = chain::truncated(&output, 200);
            format!("the contract returned {output}, which are no values of the types of the function: it may lack it")
        }),
        Some(Ok(_)) | None => Err("the node gave no data".to_owned()),
        Some(Err(error)) => Err(reason(explorer, address, &error)),
    };
    Ok(Some(called))
}

/// The arguments, with addresses in bech32 as hex.
fn in_hex(explorer: &Explorer, function: &Value, arguments: &[String]) -> Vec<String> {
    let is_address = |place: usize| function["inputs"][place]["type"] == "address";
    let hex =
        |text: &String| Account::from_bech32(text.trim(), explorer.prefix()).map(|account| account.to_hex());
    let argument = |(place, text): (usize, &String)| {
        let hex = if is_address(place) { hex(text) } else { None };
        hex.unwrap_or_else(|| text.clone())
    };
    arguments.iter().enumerate().map(argument).collect()
}

/// Why a call failed: what it reverted with, else what the node says.
fn reason(explorer: &Explorer, address: &str, error: &CallError) -> String {
    let call = InternalTx { to: address.to_owned(), output: error.data.clone(), ..InternalTx::default() };
    let explained = explorer.explained(&[call]).into_iter().next().unwrap_or_default();
    revert::reason(&error.data, &explained)
        .filter(|reason| !reason.is_empty())
        .unwrap_or_else(|| error.message.clone())
}

impl Called {
    /// The call as JSON-RPC.
    pub(super) fn request(&self) -> &str {
        &self.request
    }

    /// What it returned, or why it failed.
    pub(super) fn shown(&self) -> Markup {
        let values =
            self.outcome.as_ref().ok().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        section(
            "Result",
            &html! {
                p.mono { bdi { (chain::truncated(&self.function, 300)) } }
                @match &self.outcome {
                    Err(error) => { p.problem role="alert" { "The call failed: " bdi { (clipped(error)) } } }
                    Ok(_) => {
                        dl.facts {
                            @for value in values {
                                @let (name, kind) = (member(value, "name"), member(value, "type"));
                                div {
                                    dt { bdi { @if name.is_empty() { (kind) } @else { (name) " (" (kind) ")" } } }
                                    dd { (self::value(kind, &value["value"])) }
                                }
                            }
                        }
                        @if values.is_empty() { p.empty { "It returned nothing." } }
                    }
                }
            },
        )
    }
}

fn value(kind: &str, value: &Value) -> Markup {
    match value.as_str() {
        Some(address) if kind == "address" => account(address),
        Some("") => html! { span.none { "(empty)" } },
        Some(of) => text(of),
        None => text(&value.to_string()),
    }
}

fn member<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// The functions, each with a form if it can be called.
pub(super) fn forms(explorer: &Explorer, address: &str, of: &Functions, called: Option<&Called>) -> Markup {
    let Some(contracts) = explorer.contracts() else { return html! {} };
    let functions = contracts.reads(&of.abi);
    if functions.is_empty() {
        return html! {};
    }
    let is_called = |selector: &str| called.is_some_and(|called| called.selector == selector);
    let given = |selector: &str, place: usize| {
        let called = called.filter(|called| called.selector == selector)?;
        Some(clipped(called.arguments.get(place)?))
    };
    let form = |function: &Value, selector: &str| {
        let inputs = function["inputs"].as_array().map(Vec::as_slice).unwrap_or_default();
        html! {
            form.filter method="get" action=(target::contract(address)) {
                input type="hidden" name="function" value=(selector);
                @for (place, input) in inputs.iter().enumerate() {
                    @let (name, kind) = (member(input, "name"), member(input, "type"));
                    label { bdi { (chain::truncated(name, 60)) " " (chain::truncated(kind, 60)) }
                        input type="text" name="arg" value=[given(selector, place)] spellcheck="false" autocomplete="off";
                    }
                }
                button type="submit" { "Read" }
            }
        }
    };
    section(
        &format!("{} ({})", of.title, functions.len()),
        &html! {
            @for function in functions.iter().take(SHOWN) {
                @let (selector, shown) = (member(function, "selector"), member(function, "shown"));
                @if explorer.has_state() {
                    details.event open[is_called(selector)] {
                        summary.mono { bdi { (chain::truncated(shown, 300)) } }
                        (form(function, selector))
                    }
                } @else {
                    p.mono { bdi { (chain::truncated(shown, 300)) } }
                }
            }
            @if functions.len() > SHOWN { p.dim { "The first " (SHOWN) "; the ABI below has all." } }
        },
    )
}
