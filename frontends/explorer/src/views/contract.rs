//! A contract of the EVM: its code, what is behind it if it is a proxy, and its functions. Those that only read can be called, where the
//! operator lets calls that need the state of the chain pass to a node.

mod abi;
mod code;
mod proxy;
mod reading;

use chain::Account;
use futures_util::future::BoxFuture;
use maud::{Markup, html};
use serde_json::Value;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use self::code::Code;
use self::reading::Functions;
use crate::explorer::Explorer;
use crate::format::{copied, pre, short, text};
use crate::layout::{Page, facts};
use crate::target;
use crate::view::{Response, WaitingView};

pub(crate) struct ContractPage;

impl WaitingView for ContractPage {
    const PATH: &'static str = "/contract/{address}";
    const SUMMARY: &'static str =
        "Code and functions of a contract; with a function and arguments, what that returns.";
    const PARAMS: &'static [Param] = &[
        Param::path("address", "Hex or bech32."),
        Param::query("function", Type::String, "Selector of a function that only reads, in hex."),
        Param::query("arg", Type::String, "Its arguments, in their order."),
    ];

    fn respond<'a>(explorer: &'a Explorer, call: &'a Call<'a>) -> BoxFuture<'a, Result<Response, HttpError>> {
        Box::pin(respond(explorer, call))
    }
}

async fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
    let asked = call.text("address");
    let account = Account::parse(asked, explorer.prefix());
    let address = account.as_ref().and_then(|account| <[u8; 20]>::try_from(account.as_bytes()).ok());
    let Some(address) = address.filter(|_| explorer.is_evm()) else {
        // Contracts of other machines have no code page.
        return match account {
            Some(_) => Ok(Response::Redirect(target::account(asked))),
            None => Err(HttpError::bad_request(format!(
                "`{}` is no address: give 20 bytes in hex, or bech32 with the prefix `{}`",
                chain::truncated(asked, 80),
                explorer.prefix()
            ))),
        };
    };
    let hex = Account::from(address).to_hex();
    if !asked.eq_ignore_ascii_case(&hex) {
        return Ok(Response::Redirect(target::contract(&hex)));
    }
    let code = Code::read(explorer, call, &hex).await?;
    let own = explorer.contract_later(call.share(), address).await?;
    let behind = match code.implementation() {
        Some(address) => explorer.contract_later(call.share(), address).await?,
        None => None,
    };
    let functions = functions(explorer, &code, own.as_ref(), behind.as_ref());
    let called = reading::called(explorer, call, &hex, &functions).await?;
    let name = own.as_ref().and_then(|own| own.as_ref().ok()?["name"].as_str()).unwrap_or_default();
    let name_behind = behind.as_ref().and_then(|it| it.as_ref().ok()?["name"].as_str()).unwrap_or_default();
    let mut rows = vec![("Name", text(name)), ("Address", copied(&hex))];
    rows.extend(code.facts());
    rows.push(("Name behind it", text(name_behind)));
    rows.push(("Account", html! { a href=(target::account(&hex)) { "Balances and transactions" } }));
    let body = html! {
        section.card {
            (facts(rows))
            @for remark in code.remarks() { p.dim { bdi { (chain::truncated(remark, 400)) } } }
        }
        @if let Some(called) = &called { (called.shown()) }
        @for of in &functions { (reading::forms(explorer, &hex, of, called.as_ref())) }
        @for known in [&own, &behind].into_iter().flatten() { (abi::others(known)) }
        @if let Some(called) = &called { (requests(called.request())) }
    };
    Ok(Page { title: "Contract".to_owned(), about: short(&hex), body, requests: Vec::new() }.into())
}

/// The ABIs by which it can be called: its own and that of what is behind it, else what usual contracts have.
fn functions(
    explorer: &Explorer,
    code: &Code,
    own: Option<&Result<Value, String>>,
    behind: Option<&Result<Value, String>>,
) -> Vec<Functions> {
    let of = |known: Option<&Result<Value, String>>| Some(known?.as_ref().ok()?["abi"].clone());
    let mut all = Vec::new();
    all.extend(of(own).map(|abi| Functions { title: "Functions that read", abi }));
    all.extend(
        of(behind).map(|abi| Functions { title: "Functions that read, of the contract behind it", abi }),
    );
    let usual = explorer.contracts().filter(|_| all.is_empty() && code.is_there());
    all.extend(usual.map(|contracts| Functions {
        title: "Functions that usual contracts have (the ABI of this one is not known)",
        abi: contracts.usual_reads().clone(),
    }));
    all
}

fn requests(request: &str) -> Markup {
    html! { details.request { summary { "The same as JSON-RPC" } (pre(request)) } }
}
