//! The code of a contract and what runs in its place, as a node says it.

use chain::hash::{code_hash, to_hex};
use maud::{Markup, html};
use serde_json::{Value, json};
use web::call::Call;
use web::http_error::HttpError;

use super::proxy::{self, Proxy};
use crate::contracts::{CallError, StateCall};
use crate::explorer::Explorer;
use crate::format::{copied, count, none};

/// In place of code that is not asked for.
const OFF: &str = "Code and state of contracts are read from a node, which this server does only with `state` in the setting `evm_forward`.";

/// The code.
#[derive(Default)]
pub(super) struct Code {
    /// In hex; `None` if it is not known.
    digits: Option<String>,
    proxy: Option<Proxy>,
    /// What is not known, and why.
    remarks: Vec<String>,
}

impl Code {
    /// Reads it from a node, if the operator allows that.
    pub(super) async fn read(explorer: &Explorer, call: &Call<'_>, address: &str) -> Result<Self, HttpError> {
        if !explorer.has_state() {
            return Ok(Self { remarks: vec![OFF.to_owned()], ..Self::default() });
        }
        let slot = |slot: &str| ("eth_getStorageAt", json!([address, slot, "latest"]));
        let calls = vec![("eth_getCode", json!([address, "latest"])), slot(proxy::IMPLEMENTATION)];
        let mut results = explorer.state(call, calls).await?.into_iter();
        let mut code = Self::default();
        match text_of(results.next()) {
            Ok(digits) => code.digits = Some(digits),
            Err(error) => {
                code.remarks.push(format!("The code is not known: {error}."));
                return Ok(code);
            }
        }
        code.proxy = proxy::by_code(code.digits());
        if code.proxy.is_none() && code.is_there() {
            match text_of(results.next()) {
                Ok(word) => code.proxy = proxy::by_word("upgradeable proxy (EIP-1967)", &word),
                Err(error) => code.remarks.push(format!("Whether it is a proxy is not known: {error}.")),
            }
        }
        if code.proxy.is_none() && code.is_there() && code.remarks.is_empty() {
            code.ask_beacon(explorer, call, slot(proxy::BEACON)).await?;
        }
        Ok(code)
    }

    /// Whether a beacon names what is behind it, by the word in the slot for its address.
    async fn ask_beacon(
        &mut self,
        explorer: &Explorer,
        call: &Call<'_>,
        slot: StateCall,
    ) -> Result<(), HttpError> {
        let word = text_of(explorer.state(call, vec![slot]).await?.into_iter().next());
        let beacon = match word.as_deref().map(proxy::address) {
            Ok(Some(beacon)) => beacon,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.remarks.push(format!("Whether it is a proxy is not known: {error}."));
                return Ok(());
            }
        };
        let asked = vec![("eth_call", json!([{ "to": beacon, "data": proxy::OF_BEACON }, "latest"]))];
        match text_of(explorer.state(call, asked).await?.into_iter().next()) {
            Ok(word) => self.proxy = proxy::by_word("beacon proxy (EIP-1967)", &word),
            Err(error) => self.remarks.push(format!("The beacon {beacon} names no contract: {error}.")),
        }
        Ok(())
    }

    fn digits(&self) -> &str {
        self.digits.as_deref().unwrap_or_default()
    }

    /// True unless a node says that there is none.
    pub(super) fn is_there(&self) -> bool {
        self.digits.as_deref() != Some("0x")
    }

    /// The contract behind it.
    pub(super) fn implementation(&self) -> Option<[u8; 20]> {
        let account = chain::Account::from_hex_literal(&self.proxy.as_ref()?.implementation)?;
        account.as_bytes().try_into().ok()
    }

    /// What is not known.
    pub(super) fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Names and values.
    pub(super) fn facts(&self) -> Vec<(&'static str, Markup)> {
        let bytes = self.digits().strip_prefix("0x").and_then(|digits| hex::decode(digits).ok());
        let Some(bytes) = bytes.filter(|_| self.digits.is_some()) else { return Vec::new() };
        if bytes.is_empty() {
            return vec![("Code", html! { "none: it is not a contract now" })];
        }
        vec![
            ("Code", html! { (count(bytes.len())) " bytes" }),
            ("Code hash", copied(&format!("0x{}", to_hex(&code_hash(&bytes))))),
            ("Proxy", self.proxy.as_ref().map_or_else(none, Proxy::shown)),
        ]
    }
}

/// A result in hex.
fn text_of(result: Option<Result<Value, CallError>>) -> Result<String, String> {
    match result {
        Some(Ok(Value::String(text))) if text.starts_with("0x") => Ok(text),
        Some(Ok(_)) | None => Err("the node gave no data".to_owned()),
        Some(Err(error)) => Err(error.message),
    }
}
