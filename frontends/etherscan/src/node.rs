//! What goes through Ethereum's JSON-RPC: module `proxy`, and what needs the state of the chain.

use chain::U256;
use serde_json::{Value, json};
use web::http_error::HttpError;

use crate::form::{Form, bytes};
use crate::outcome::{Failure, Outcome, Success};

/// Accounts of a request.
const MAX_ACCOUNTS: usize = 20;

/// A call: its method and parameters.
pub(crate) type JsonCall = (&'static str, Value);

/// The calls of a request.
pub(crate) type Request = fn(&Form) -> Result<Vec<JsonCall>, Failure>;

/// What is made of the replies.
pub(crate) type Print = fn(&Form, Vec<Value>) -> Outcome;

/// A batch.
pub(crate) fn body(calls: &[JsonCall]) -> Vec<u8> {
    let calls = calls.iter().enumerate().map(|(id, (method, params))| {
        json!({ "jsonrpc": "2.0", "id": id + 1, "method": method, "params": params })
    });
    Value::from(calls.collect::<Vec<_>>()).to_string().into_bytes()
}

/// The replies to a batch.
pub(crate) fn replies(body: &[u8]) -> Result<Vec<Value>, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::Http(HttpError::internal(error)))
}

/// The reply of module `proxy`: that of JSON-RPC.
#[expect(clippy::unnecessary_wraps, reason = "the table has functions that fail")]
pub(crate) fn bare(_: &Form, replies: Vec<Value>) -> Outcome {
    let mut reply = replies.into_iter().next().unwrap_or_default();
    // serde_json sorts members, and clients do not mind.
    reply["id"] = Value::from(1);
    Ok(Success::Bare(reply))
}

/// A result in hex as a decimal text.
pub(crate) fn number(reply: &Value) -> Result<String, Failure> {
    let Some(text) = reply["result"].as_str() else {
        let message = reply["error"]["message"].as_str().unwrap_or("the node gave no result");
        return Err(Failure::Text(format!("Error! {message}")));
    };
    let digits = text.strip_prefix("0x").unwrap_or(text);
    // A contract that is none returns nothing.
    let digits = if digits.is_empty() { "0" } else { digits.get(..64).unwrap_or(digits) };
    let number = U256::from_str_radix(digits, 16);
    number
        .map(|number| number.to_string())
        .map_err(|_| Failure::Text("Error! The node gave no number".to_owned()))
}

pub(crate) fn one_number(_: &Form, replies: Vec<Value>) -> Outcome {
    Ok(Success::text(&number(&replies.into_iter().next().unwrap_or_default())?))
}

pub(crate) fn balances(form: &Form, replies: Vec<Value>) -> Outcome {
    let accounts = form.addresses("address", MAX_ACCOUNTS)?;
    let rows = accounts
        .iter()
        .zip(&replies)
        .map(|(account, reply)| Ok(json!({ "account": hex_of(account), "balance": number(reply)? })));
    let rows = rows.collect::<Result<Vec<_>, Failure>>()?;
    Ok(Success::Result(Value::from(rows).to_string().into_bytes()))
}

fn hex_of(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// The block of a request: hex or a tag.
fn tag(form: &Form) -> &str {
    form.get("tag").unwrap_or("latest")
}

pub(crate) fn balance_of_one(form: &Form) -> Result<Vec<JsonCall>, Failure> {
    Ok(vec![("eth_getBalance", json!([hex_of(&form.one_address("address")?), tag(form)]))])
}

pub(crate) fn balance_of_several(form: &Form) -> Result<Vec<JsonCall>, Failure> {
    let accounts = form.addresses("address", MAX_ACCOUNTS)?;
    Ok(accounts.iter().map(|account| ("eth_getBalance", json!([hex_of(account), tag(form)]))).collect())
}

/// A call of a contract.
fn called(contract: [u8; 20], data: &[u8], tag: &str) -> JsonCall {
    ("eth_call", json!([{ "to": hex_of(&contract), "data": hex_of(data) }, tag]))
}

/// A call of a contract in its last state.
pub(crate) fn of_contract(contract: [u8; 20], data: &[u8]) -> JsonCall {
    called(contract, data, "latest")
}

/// A call of the token contract.
fn of_token(form: &Form, data: &[u8]) -> Result<Vec<JsonCall>, Failure> {
    Ok(vec![called(form.one_address("contractaddress")?, data, tag(form))])
}

pub(crate) fn token_balance(form: &Form) -> Result<Vec<JsonCall>, Failure> {
    of_token(form, &chain::evm::abi::balance_of(form.one_address("address")?))
}

pub(crate) fn token_supply(form: &Form) -> Result<Vec<JsonCall>, Failure> {
    of_token(form, &chain::evm::abi::total_supply())
}

/// The parameters of a call of module `proxy`, by the names in its table.
pub(crate) fn proxied(
    method: &'static str,
    names: &[&'static str],
    form: &Form,
) -> Result<Vec<JsonCall>, Failure> {
    let mut params = Vec::with_capacity(names.len());
    for name in names {
        params.push(match *name {
            "tag" => json!(tag(form)),
            "boolean" => json!(form.get("boolean") == Some("true")),
            "call" => call_object(form),
            "txhash" => {
                let hash: [u8; 32] = bytes(form.required("txhash")?)
                    .ok_or_else(|| Failure::Text("Error! Invalid transaction hash".to_owned()))?;
                json!(hex_of(&hash))
            }
            other => json!(form.required(other)?),
        });
    }
    Ok(vec![(method, Value::from(params))])
}

fn call_object(form: &Form) -> Value {
    let names = [
        ("to", "to"),
        ("data", "data"),
        ("value", "value"),
        ("gas", "gas"),
        ("gasprice", "gasPrice"),
        ("from", "from"),
    ];
    let members =
        names.into_iter().filter_map(|(name, member)| Some((member.to_owned(), json!(form.get(name)?))));
    Value::Object(members.collect())
}
