//! The figures of a page against the JSON requests that its footer links.
//!
//! A list of the JSON is a table of the page: row by row, each column must show the member of the element. A single
//! record is a list of facts. Values are shown as text, as the title of a shortened text, or as the datetime of a time.

use chain::U256;
use serde_json::Value;

use crate::support::get;

/// The column or fact that shows a value, and the value.
type Shown = (&'static str, String);

/// Rows of the overview's tables.
const LATEST: usize = 10;

/// Logs that the page of an EVM transaction shows.
const LOGS: usize = 100;

/// The event `Transfer(address,address,uint256)` of ERC-20 and, with a fourth topic, ERC-721.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// Stands for an absent sender.
const NOBODY: &str = "0x0000000000000000000000000000000000000000";

/// Stands for an absent value.
const NONE: &str = "–";

/// The differences between the report of `page.js` and its JSON requests.
pub(crate) fn differences(origin: &str, page: &Value) -> Vec<String> {
    let (mut found, mut totals) = (Vec::new(), Vec::new());
    for request in list(&page["requests"]) {
        let request = request.as_str().unwrap();
        let (status, json) = get(&format!("{origin}{request}"));
        totals.push(text(&json["pagination"]["total"]));
        let mut differences = Vec::new();
        if status != 200 {
            differences.push(format!("status {status}"));
        } else if let Some((label, elements, cells)) = list_of(request, &json) {
            differences.extend(compare_table(page, label, elements, cells));
        } else {
            differences.extend(compare_facts(page, facts_of(request, &json)));
            let logs = list(&json["tx"]["logs"]);
            if request.contains("/evm-txs/") {
                differences.extend(compare_table(page, "Logs", &logs[..logs.len().min(LOGS)], log));
            }
        }
        found.extend(differences.into_iter().map(|difference| format!("{request}: {difference}")));
    }
    let shown = list(&page["totals"]).iter().map(text);
    let wrong = shown.filter(|shown| !totals.iter().any(|total| *shown == format!("{total} in total")));
    found.extend(wrong.map(|total| format!("{total}, but the JSON has {totals:?}")));
    found
}

fn compare_facts(page: &Value, facts: Vec<Shown>) -> Vec<String> {
    // A fact without a value is left out.
    let is_left_out = |name: &str, value: &str| {
        ["", NONE].contains(&value) && (page["facts"][name].is_null() || name == "From")
    };
    let wrong = facts
        .into_iter()
        .filter(|(name, value)| !is_left_out(name, value) && !shows(&page["facts"][name], value));
    wrong.map(|(name, value)| format!("{name} is {}, not {value}", page["facts"][name])).collect()
}

type Cells = fn(&Value) -> Vec<Shown>;

/// The label of the table that shows a list of the JSON, the list, and the cells of an element.
fn list_of<'a>(request: &str, json: &'a Value) -> Option<(&'static str, &'a [Value], Cells)> {
    let is_evm = request.contains("/evm-txs");
    // The calls of one transaction are a tree.
    let is_tree = request.contains("/evm-internal-txs/0x");
    if request.contains("token_id=") {
        // Only one record is wanted.
        return None;
    }
    let is_ledger = request.starts_with("/indexer/ledger/");
    let kinds: [(&str, &str, Cells); 10] = [
        ("blocks", "Blocks", block),
        ("txs", if is_evm { "EVM transactions" } else { "Transactions" }, if is_evm { evm_tx } else { tx }),
        if is_tree {
            ("internal_txs", "Internal calls", call_in_tree as Cells)
        } else {
            ("internal_txs", "Internal transactions", call_frame)
        },
        ("collections", "Collections", collection),
        // In its own collection a token has no column for it.
        if is_ledger {
            ("tokens", "Tokens", ledger_token as Cells)
        } else {
            (
                "tokens",
                "Tokens",
                if request.contains("/by_collection/") { token_of_collection } else { token },
            )
        },
        ("transfers", "Token transfers", transfer),
        ("balances", "Balances", balance),
        ("holders", "Holders", holder),
        ("channels", "Channels", channel),
        ("packets", "Packets", packet),
    ];
    kinds.into_iter().find_map(|(name, label, cells)| Some((label, json[name].as_array()?.as_slice(), cells)))
}

fn compare_table(page: &Value, label: &str, elements: &[Value], cells: Cells) -> Vec<String> {
    let Some(table) = list(&page["tables"]).iter().find(|table| table["label"] == label) else {
        return if elements.is_empty() { Vec::new() } else { vec![format!("no table {label:?}")] };
    };
    let (rows, columns) = (list(&table["rows"]), list(&table["columns"]));
    if rows.len() != elements.len() && rows.len() != LATEST {
        return vec![format!("{label}: {} rows of {} elements", rows.len(), elements.len())];
    }
    let mut found = Vec::new();
    for (row, element) in rows.iter().zip(elements) {
        for (name, value) in cells(element) {
            // A column may have a unit after its name.
            let is_named = |column: &Value| text(column).split(" (").next() == Some(name);
            let cell = columns.iter().position(is_named).map_or(&Value::Null, |place| &row[place]);
            if !shows(cell, &value) {
                found.push(format!("{label}: {name} is {cell}, not {value}"));
            }
        }
    }
    found
}

/// True if one of the forms of a cell is `value`, or its start before an ellipsis.
fn shows(cell: &Value, value: &str) -> bool {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let value = if value.is_empty() { NONE } else { &value };
    let is_start = |form: &str| form.strip_suffix('…').is_some_and(|start| value.starts_with(start));
    list(cell).iter().filter_map(Value::as_str).any(|form| form == value || is_start(form))
}

fn facts_of(request: &str, json: &Value) -> Vec<Shown> {
    let mut facts = Vec::new();
    if let Some(block) = json.get("block") {
        let gas = format!("{} used of {} wanted", text(&block["gas_used"]), text(&block["gas_wanted"]));
        facts.extend([
            ("Hash", text(&block["hash"])),
            ("Time", time(&block["timestamp"])),
            ("Since the block before", format!("{} ms", text(&block["block_time"]))),
            ("Proposer", text(&block["proposer"]["operator_address"])),
            ("Gas", gas),
            ("Transactions", text(&block["tx_count"])),
        ]);
        facts.extend(coins("Fees", &block["total_fee"]));
    } else if let Some(tx) = json.get("tx").filter(|_| request.contains("/evm-txs/")) {
        facts.extend([
            ("EVM hash", text(&tx["transactionHash"])),
            ("Result", outcome(tx["status"] == "0x1")),
            ("Height", number(&tx["blockNumber"])),
            ("Index in the block", number(&tx["transactionIndex"])),
            // The EVM has no sender of what it did not run itself, and the page then has that of the Cosmos half.
            ("From", if text(&tx["from"]) == NOBODY { String::new() } else { text(&tx["from"]) }),
            ("To", text(&tx["to"])),
            ("Created contract", text(&tx["contractAddress"])),
            ("Gas used", number(&tx["gasUsed"])),
            ("Gas price", number(&tx["effectiveGasPrice"])),
            ("Type", number(&tx["type"])),
        ]);
    } else if let Some(tx) = json.get("tx") {
        let gas = format!("{} used of {} wanted", text(&tx["gas_used"]), text(&tx["gas_wanted"]));
        facts.extend([
            ("Hash", text(&tx["txhash"])),
            ("Result", outcome(tx["code"] == 0)),
            ("Height", text(&tx["height"])),
            ("Time", time(&tx["timestamp"])),
            ("Gas", gas),
        ]);
        facts.extend(coins("Fee", &tx["tx"]["auth_info"]["fee"]["amount"]));
    } else if let Some(channel) = json.get("channel") {
        facts.extend([
            ("Port", text(&channel["port_id"])),
            ("Connection", text(&channel["connection_id"])),
            ("Client", text(&channel["client_id"])),
            ("Sent", text(&channel["packets"]["sent"])),
            ("Received", text(&channel["packets"]["received"])),
            ("Failed", text(&channel["packets"]["failed"])),
        ]);
    } else if let Some(packet) = [&json["sent"], &json["received"]].into_iter().find(|side| side.is_object())
    {
        facts.extend([
            ("State", text(&packet["state"]).replace('_', " ")),
            ("Sender", text(&packet["data"]["sender"])),
            ("Receiver", text(&packet["data"]["receiver"])),
            ("Denom", text(&packet["data"]["denom"])),
            ("Amount", text(&packet["data"]["amount"])),
        ]);
    } else if let Some(collection) = json.get("collection") {
        let detail = &collection["collection"];
        facts.extend([
            ("Name", text(&detail["name"])),
            ("Name at its origin", text(&detail["origin_name"])),
            ("Address", text(&collection["object_addr"])),
            ("Creator", text(&detail["creator"])),
            ("Tokens", text(&detail["nfts"]["length"])),
            ("Since", text(&collection["height"])),
        ]);
    } else if let Some(token) = json.get("token") {
        facts.extend([
            ("Name", text(&token["name"])),
            ("Symbol", text(&token["symbol"])),
            ("Denom", text(&token["denom"])),
            ("Supply", text(&token["supply"])),
            ("Holders", text(&token["holders"])),
            ("Transfers", text(&token["transfers"])),
        ]);
    } else if let Some(token) = json["tokens"].get(0) {
        facts.extend([
            ("Id", text(&token["nft"]["token_id"])),
            ("Collection", text(&token["collection_name"])),
            ("Owner", text(&token["owner"])),
            ("URI", text(&token["nft"]["uri"])),
            ("Last change", text(&token["height"])),
            ("Last change", time(&token["timestamp"])),
        ]);
    } else if request == "/status" {
        facts.extend([("Chain", text(&json["chain_id"])), ("Height", text(&json["height"]))]);
    }
    facts
}

fn block(block: &Value) -> Vec<Shown> {
    let mut cells = vec![
        ("Height", text(&block["height"])),
        ("Time", time(&block["timestamp"])),
        ("Transactions", text(&block["tx_count"])),
        ("Gas used", text(&block["gas_used"])),
        ("Proposer", text(&block["proposer"]["moniker"])),
    ];
    cells.extend(coins("Fees", &block["total_fee"]));
    cells
}

fn tx(tx: &Value) -> Vec<Shown> {
    let is_block_data = tx["code"] != 0 && list(&tx["tx"]["body"]["messages"]).is_empty();
    let result = if is_block_data { "Block data".to_owned() } else { outcome(tx["code"] == 0) };
    let mut cells = vec![
        ("Hash", text(&tx["txhash"])),
        ("Result", result),
        ("Height", text(&tx["height"])),
        ("Time", time(&tx["timestamp"])),
    ];
    let messages = list(&tx["tx"]["body"]["messages"]).iter().take(2);
    cells.extend(messages.map(|message| ("Messages", text(&message["@type"]))));
    cells.extend(coins("Fee", &tx["tx"]["auth_info"]["fee"]["amount"]));
    cells
}

fn evm_tx(tx: &Value) -> Vec<Shown> {
    let to = if text(&tx["to"]).is_empty() { &tx["contractAddress"] } else { &tx["to"] };
    vec![
        ("Hash", text(&tx["transactionHash"])),
        ("From", text(&tx["from"])),
        ("To", text(to)),
        ("Result", outcome(tx["status"] == "0x1")),
        ("Height", number(&tx["blockNumber"])),
        ("Gas used", number(&tx["gasUsed"])),
    ]
}

fn call_frame(call: &Value) -> Vec<Shown> {
    vec![
        ("Transaction", text(&call["hash"])),
        ("Call", text(&call["type"])),
        ("From", text(&call["from"])),
        ("To", text(&call["to"])),
        ("Value", number(&call["value"])),
        ("Height", text(&call["height"])),
    ]
}

/// A call of the transaction that the page is of.
fn call_in_tree(call: &Value) -> Vec<Shown> {
    vec![
        ("Call", text(&call["type"])),
        ("From", text(&call["from"])),
        ("To", text(&call["to"])),
        ("Value", number(&call["value"])),
        ("Gas used", number(&call["gasUsed"])),
    ]
}

fn log(log: &Value) -> Vec<Shown> {
    let mut cells = vec![("Index", number(&log["logIndex"])), ("Contract", text(&log["address"]))];
    if let [event, from, to] = list(&log["topics"])
        && event == TRANSFER
    {
        // Addresses are the last 20 bytes of a topic.
        let address = |topic: &Value| format!("0x{}", text(topic).get(26..).unwrap_or_default());
        cells.extend([("From", address(from)), ("To", address(to)), ("Value", number(&log["data"]))]);
    }
    cells
}

fn collection(collection: &Value) -> Vec<Shown> {
    let name = text(&collection["collection"]["name"]);
    vec![
        ("Collection", if name.is_empty() { "(no name)".to_owned() } else { name }),
        ("Tokens", text(&collection["collection"]["nfts"]["length"])),
        ("Creator", text(&collection["collection"]["creator"])),
        ("Height", text(&collection["height"])),
        ("Time", time(&collection["timestamp"])),
    ]
}

fn token_of_collection(of: &Value) -> Vec<Shown> {
    token(of).into_iter().filter(|(column, _)| *column != "Collection").collect()
}

fn token(token: &Value) -> Vec<Shown> {
    let id = text(&token["nft"]["token_id"]);
    vec![
        ("Token", if id.is_empty() { "(empty id)".to_owned() } else { id }),
        ("Collection", text(&token["collection_name"])),
        ("Owner", text(&token["owner"])),
        ("URI", text(&token["nft"]["uri"])),
        ("Last change", text(&token["height"])),
        ("Last change", time(&token["timestamp"])),
    ]
}

fn holder(holder: &Value) -> Vec<Shown> {
    vec![("Account", text(&holder["account"])), ("Amount", text(&holder["amount"]))]
}

/// The denom of a token of the ledger, or the address of its contract.
fn named(token: &Value) -> String {
    let denom = text(&token["denom"]);
    if denom.is_empty() { text(&token["address"]) } else { denom }
}

fn ledger_token(token: &Value) -> Vec<Shown> {
    vec![
        ("Token", named(token)),
        ("Name", text(&token["name"])),
        ("Supply", text(&token["supply"])),
        ("Holders", text(&token["holders"])),
        ("Transfers", text(&token["transfers"])),
    ]
}

fn transfer(transfer: &Value) -> Vec<Shown> {
    let token = &transfer["token"];
    if ["erc721", "collection", "cw721"].contains(&&*text(&token["type"])) {
        return vec![("Amount", text(&transfer["token_id"]))];
    }
    vec![("Amount", format!("{} {}", text(&transfer["amount"]), named(token)))]
}

fn balance(balance: &Value) -> Vec<Shown> {
    let amount = format!("{} {}", text(&balance["amount"]), named(balance));
    let known = balance["known"] == true;
    vec![("Token", named(balance)), ("Amount", if known { amount } else { "not known".to_owned() })]
}

fn channel(channel: &Value) -> Vec<Shown> {
    let other = &channel["counterparty"];
    let packets = &channel["packets"];
    vec![
        ("Channel", text(&channel["channel_id"])),
        ("Port", text(&channel["port_id"])),
        ("Other end", format!("{}/{}", text(&other["port_id"]), text(&other["channel_id"]))),
        ("Sent", text(&packets["sent"])),
        ("Received", text(&packets["received"])),
    ]
}

fn packet(packet: &Value) -> Vec<Shown> {
    let first = if packet["send"].is_null() { &packet["receive"] } else { &packet["send"] };
    vec![
        ("Sequence", text(&packet["sequence"])),
        ("State", text(&packet["state"]).replace('_', " ")),
        ("Sender", text(&packet["data"]["sender"])),
        ("Receiver", text(&packet["data"]["receiver"])),
        ("Height", text(&first["height"])),
        ("Time", time(&first["timestamp"])),
    ]
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string as it is, another value as JSON; nothing for none.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A hex quantity in decimal.
fn number(value: &Value) -> String {
    let digits = text(value);
    let digits = digits.strip_prefix("0x").filter(|digits| !digits.is_empty());
    let quantity = digits.and_then(|digits| U256::from_str_radix(digits, 16).ok());
    quantity.map_or(NONE.to_owned(), |quantity| quantity.to_string())
}

/// The title of a time, as in `2025-01-31 12:00:00 UTC`.
fn time(value: &Value) -> String {
    let text = text(value);
    format!("{} UTC", text.get(..19).unwrap_or(&text).replace('T', " "))
}

fn outcome(succeeded: bool) -> String {
    if succeeded { "Success".to_owned() } else { "Failed".to_owned() }
}

/// Amounts, each of which is the title of a text in display units.
fn coins(name: &'static str, coins: &Value) -> Vec<Shown> {
    let coins = list(coins).iter().take(8);
    coins.map(|coin| (name, format!("{} {}", text(&coin["amount"]), text(&coin["denom"])))).collect()
}
