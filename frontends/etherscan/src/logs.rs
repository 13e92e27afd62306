//! Module `logs`. Numbers in its rows are hex, as on Etherscan.

use query::evm::history::TopicQuery;
use serde::Serialize;

use crate::form::{Form, bytes};
use crate::outcome::{Failure, NO_RECORDS, Outcome, Success};
use crate::reads::Reads;
use crate::row::push;

/// Rows of a page.
const MAX_ROWS: u64 = 1000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    address: &'a str,
    topics: Vec<&'a str>,
    data: &'a str,
    block_number: &'a str,
    block_hash: &'a str,
    time_stamp: String,
    gas_price: &'a str,
    gas_used: &'a str,
    log_index: &'a str,
    transaction_hash: &'a str,
    transaction_index: &'a str,
}

pub(crate) fn get_logs(reads: &Reads<'_>) -> Outcome {
    let form = reads.form;
    let height = |name| form.height(name, reads.view.head());
    let heights = height("fromblock")?.unwrap_or(0)..=height("toblock")?.unwrap_or(u64::MAX);
    let (window, query) = (form.page(MAX_ROWS, heights)?, query(form)?);
    let mut rows = Vec::new();
    reads.view.logs_of(&query, &window, &mut |row| {
        let (receipt, log) = (row.receipt, row.log);
        let log = Row {
            address: &log.address,
            topics: log.topics.iter().map(|topic| &**topic).collect(),
            data: &log.data,
            block_number: &log.block_number,
            block_hash: &log.block_hash,
            time_stamp: format!("{:#x}", row.timestamp),
            gas_price: &receipt.effective_gas_price,
            gas_used: &receipt.gas_used,
            log_index: &log.log_index,
            transaction_hash: &log.transaction_hash,
            transaction_index: &log.transaction_index,
        };
        push(&mut rows, &log)
    })?;
    Ok(Success::list(rows, NO_RECORDS))
}

fn query(form: &Form) -> Result<TopicQuery, Failure> {
    let mut query = TopicQuery { address: form.address("address")?, ..TopicQuery::default() };
    for (place, topic) in query.topics.iter_mut().enumerate() {
        let Some(text) = form.get(&format!("topic{place}")) else { continue };
        let invalid = || Failure::Text(format!("Error! Invalid topic{place}: 32 bytes in hex are expected"));
        *topic = Some(bytes(text).ok_or_else(invalid)?);
    }
    for (left, right) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let name = format!("topic{left}_{right}_opr");
        query.or[left][right] = match form.get(&name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("and") => false,
            Some("or") => true,
            Some(_) => return Err(Failure::Text(format!("Error! Invalid {name}: and or or is expected"))),
        };
    }
    Ok(query)
}
