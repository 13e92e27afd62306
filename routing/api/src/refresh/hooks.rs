//! What packets may call on a chain: its list of hooks (`initia.ibchooks.v1`), and the swap adapter on it.

use chain::Account;
use node::Error;
use registry::{Chain, Facts};
use serde_json::{Value, json};
use tracker::ChainClients;

use super::{escaped, get, text};

/// Most pages of the list; governance adds an entry at a time.
const MAX_PAGES: usize = 20;
/// Parameters of both functions of the adapter: signer, venues, kind of amount, amounts in and out, pools, coins, action,
/// timeout, recover address, arguments of the action.
const PARAMETERS: [&str; 11] = [
    "&signer",
    "vector<u8>",
    "u8",
    "u64",
    "u64",
    "vector<vector<0x1::string::String>>",
    "vector<vector<0x1::string::String>>",
    "u8",
    "u64",
    "0x1::string::String",
    "vector<vector<u8>>",
];

/// Whether packets may call an account: its own entry of the list, else the default.
pub(super) async fn are_allowed(clients: &ChainClients, chain: &Chain, called: &str) -> Result<bool, String> {
    let digits = called.strip_prefix("0x").unwrap_or(called);
    // A Move address of an ordinary account is its 20 bytes after zeros.
    let digits = digits.strip_prefix(&"0".repeat(24)).filter(|digits| digits.len() == 40).unwrap_or(digits);
    let called = Account::from_hex_literal(&format!("0x{digits}")).ok_or("the called address is none")?;
    let address = called.to_bech32(&chain.bech32_prefix);
    let entries = entries(clients, chain).await?;
    if let Some((_, is_allowed)) = entries.iter().find(|(entry, _)| *entry == address) {
        return Ok(*is_allowed);
    }
    let answer = get(clients, chain, "/initia/ibchooks/v1/params").await?;
    Ok(answer.is_some_and(|answer| answer["params"]["default_allowed"] == true))
}

/// The accounts that packets may call and that have the adapter's module, `0x` and 64 hex digits. Anyone can publish such
/// a module, but only governance adds to the list.
pub(super) async fn adapters(clients: &ChainClients, chain: &Chain) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (address, is_allowed) in entries(clients, chain).await? {
        let account = Account::from_bech32(&address, &chain.bech32_prefix).filter(|_| is_allowed);
        let Some(account) = account else { continue };
        let address = format!("0x{:0>64}", hex::encode(account.as_bytes()));
        if is_adapter(clients, chain, &address).await? {
            found.push(address);
        }
    }
    Ok(found)
}

/// Logs each adapter that was newly found.
pub(super) fn log_adapters(before: &Facts, now: &Facts) {
    for (chain, adapter) in &now.adapters {
        if before.adapters.get(chain) != Some(adapter) {
            tracing::info!(chain, adapter, "swap adapter found on the list of hooks");
        }
    }
}

async fn is_adapter(clients: &ChainClients, chain: &Chain, address: &str) -> Result<bool, String> {
    let clients = clients.of(chain);
    let rest = clients.rest().map_err(|error| error.to_string())?;
    let path = format!("/initia/move/v1/accounts/{address}/modules/entry_point");
    let module = match rest.get(&path, None).await {
        Ok(module) => module,
        Err(Error::Refused { .. }) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let module: Value = serde_json::from_slice(&module).map_err(|error| format!("{path}: {error}"))?;
    let abi: Value =
        serde_json::from_str(&text(&module, "/module/abi")?).map_err(|error| format!("{path}: {error}"))?;
    let parameters = json!(PARAMETERS);
    let has = |name: &str| {
        abi["exposed_functions"].as_array().into_iter().flatten().any(|function| {
            function["name"] == name && function["is_entry"] == true && function["params"] == parameters
        })
    };
    Ok(["swap_and_action", "swap_and_action_with_recover"].into_iter().all(has))
}

/// Accounts with whether packets may call them, bech32.
async fn entries(clients: &ChainClients, chain: &Chain) -> Result<Vec<(String, bool)>, String> {
    let (mut entries, mut path) = (Vec::new(), "/initia/ibchooks/v1/acls".to_owned());
    for _ in 0..MAX_PAGES {
        let Some(page) = get(clients, chain, &path).await? else { return Ok(entries) };
        let acls = page["acls"].as_array().into_iter().flatten();
        entries.extend(
            acls.filter_map(|acl| Some((acl["address"].as_str()?.to_owned(), acl["allowed"].as_bool()?))),
        );
        match page["pagination"]["next_key"].as_str().filter(|key| !key.is_empty()) {
            Some(key) => path = format!("/initia/ibchooks/v1/acls?pagination.key={}", escaped(key)),
            None => return Ok(entries),
        }
    }
    Err(format!("its list of hooks has more than {MAX_PAGES} pages"))
}
