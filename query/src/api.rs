//! The endpoints, grouped by subject.

pub(crate) mod block;
pub(crate) mod collection;
pub(crate) mod evm_tx;
pub(crate) mod internal_tx;
pub(crate) mod nft_tx;
pub(crate) mod rich_list;
pub(crate) mod status;
pub(crate) mod token;
pub(crate) mod tx;

use web::refusal::Refusal;
use web::reply::Reply;

use crate::array::Array;
use crate::cursor::Row;
use crate::indexer::Indexer;
use crate::page::page;
use crate::params::Paging;

/// The response `{"<member>":[…],"pagination":{…}}` with the requested page of `array`. `write` appends the records
/// of its rows, separated by commas.
fn list<R: Row>(
    indexer: &Indexer,
    member: &str,
    array: &dyn Array<Row = R>,
    paging: &Paging<R>,
    total: Option<u64>,
    write: impl FnOnce(&mut Vec<u8>, &[R]) -> Result<(), Refusal>,
) -> Result<Reply, Refusal> {
    let page = page(array, &paging.request).map_err(Refusal::internal)?;
    // The typical size of a record; longer ones grow the buffer.
    let mut body = Vec::with_capacity(256 + page.rows.len() * 2048);
    body.extend_from_slice(b"{\"");
    body.extend_from_slice(member.as_bytes());
    body.extend_from_slice(b"\":[");
    write(&mut body, &page.rows)?;
    body.extend_from_slice(b"],");
    paging.write(&mut body, page, total, indexer.empty_cursor);
    body.push(b'}');
    Ok(Reply::json(body))
}

/// The response `{"<member>":…}` with the record that `write` appends.
fn one(member: &str, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Refusal>) -> Result<Reply, Refusal> {
    let mut body = Vec::with_capacity(4096);
    body.extend_from_slice(b"{\"");
    body.extend_from_slice(member.as_bytes());
    body.extend_from_slice(b"\":");
    write(&mut body)?;
    body.push(b'}');
    Ok(Reply::json(body))
}

/// A JSON string.
fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
