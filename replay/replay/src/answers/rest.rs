//! The Cosmos REST gateway: blocks, their transactions and searches are derived from the heights; all other replies are
//! from the state file.
//!
//! Errors have the gateway's shape `{"code","message","details"}`. A state request matches only with its height header:
//! the reply of one height is never that of another.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::gateway::{GatewayBlock, gateway_block};
use super::rest_reply::{at, error, invalid, missing, ok, unknown, unreadable};
use super::{Deviation, HttpReply, View, absent, byzantine, module_state, move_views, rest_txs};
use crate::counters::Call;
use crate::recording::{Height, RestReply, items, query_pairs};

/// The header that selects the height of a state request.
const HEIGHT_HEADER: &str = "x-cosmos-block-height";
const BLOCKS: &str = "/cosmos/base/tendermint/v1beta1/blocks/";
const BLOCK_TXS: &str = "/cosmos/tx/v1beta1/txs/block/";
const TXS: &str = "/cosmos/tx/v1beta1/txs";
const TX: &str = "/cosmos/tx/v1beta1/txs/";
const DECODE: &str = "/cosmos/tx/v1beta1/decode";
const NODE_INFO: &str = "/cosmos/base/tendermint/v1beta1/node_info";
const ACCOUNT: &str = "/cosmos/auth/v1beta1/accounts/";
const BECH32: &str = "/cosmos/auth/v1beta1/bech32";
/// Page size of a request without pagination (`query.DefaultLimit`).
const DEFAULT_LIMIT: u64 = 100;

pub(super) fn answer(view: View<'_>, request: &Request<Bytes>) -> HttpReply {
    let path = request.uri().path();
    let get = request.method() == Method::GET;
    let (call, answer) = if let Some(height) = path.strip_prefix(BLOCKS).filter(|_| get) {
        (Call::RestBlock, block(view, height))
    } else if let Some(height) = path.strip_prefix(BLOCK_TXS).filter(|_| get) {
        (Call::BlockTxs, block_txs(view, height, request.uri().query().unwrap_or_default()))
    } else if let Some(hash) = path.strip_prefix(TX).filter(|hash| get && !hash.contains('/')) {
        (Call::RestTx, rest_txs::tx(view, path, hash))
    } else if path == TXS && get {
        let whole = request.uri().path_and_query().map_or(path, http::uri::PathAndQuery::as_str);
        (Call::RestTxs, rest_txs::txs(view, whole))
    } else if path == DECODE && request.method() == Method::POST {
        (Call::Decode, decode(view, request.body()))
    } else {
        (Call::RestState, state(view, request))
    };
    view.counters.count(call);
    answer.unwrap_or_else(|error| error)
}

fn block(view: View<'_>, height: &str) -> Result<HttpReply, HttpReply> {
    let height = if height == "latest" { view.shown } else { number("height", height)? };
    if height > view.shown {
        let message = "requested block height is bigger then the chain length";
        return Err(error(StatusCode::BAD_REQUEST, 3, message));
    }
    let GatewayBlock { block_id, block, sdk_block } =
        in_gateway_form(view, &at(view, view.answered(height))?)?;
    Ok(ok(&[r#"{"block_id":"#, &block_id, r#","block":"#, &block, r#","sdk_block":"#, &sdk_block, "}"]))
}

/// `GetBlockWithTxs` of `cosmos-sdk` `x/auth/tx/service.go`: only `offset` and `limit` have an effect, `next_key` is
/// null, and the total includes transactions that do not decode although they are omitted.
fn block_txs(view: View<'_>, height: &str, query: &str) -> Result<HttpReply, HttpReply> {
    let height = number("height", height)?;
    if height == 0 || height > view.shown {
        let shown = view.shown;
        return Err(unknown(&format!(
            "codespace sdk code 26: invalid height: requested height {height} but height must not be less than 1 or greater than the current height {shown}"
        )));
    }
    let recorded = at(view, view.answered(height))?;
    let total = recorded.raw_txs().map_err(|e| unreadable(view, height, &e.to_string()))?.len();
    let txs = page(view, &recorded, total, query)?;
    let GatewayBlock { block_id, block, .. } = in_gateway_form(view, &recorded)?;
    let mut parts = vec![r#"{"txs":["#];
    for (i, tx) in txs.iter().enumerate() {
        parts.extend([if i == 0 { "" } else { "," }, tx]);
    }
    let total = total.to_string();
    parts.extend([r#"],"block_id":"#, &block_id, r#","block":"#, &block]);
    parts.extend([r#","pagination":{"next_key":null,"total":""#, &total, r#""}}"#]);
    Ok(ok(&parts))
}

/// The recorded transactions of a page.
fn page<'a>(
    view: View<'_>,
    recorded: &'a Height,
    total: usize,
    query: &str,
) -> Result<Vec<&'a str>, HttpReply> {
    let pairs = query_pairs(query).ok_or_else(|| invalid("the query is not UTF-8"))?;
    let pagination =
        |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(n, v)| number(n, v)).transpose();
    let (limit, offset) = (pagination("pagination.limit")?, pagination("pagination.offset")?.unwrap_or(0));
    let paginated = pairs.iter().any(|(name, _)| name.starts_with("pagination."));
    let limit = limit.unwrap_or(if paginated { 0 } else { DEFAULT_LIMIT });
    let (limit, offset) =
        (usize::try_from(limit).unwrap_or(usize::MAX), usize::try_from(offset).unwrap_or(usize::MAX));
    if offset >= total && total != 0 {
        return Err(unknown(&format!(
            "out of range: cannot paginate {total} txs with offset {offset} and limit {limit}"
        )));
    }
    let height = recorded.height;
    let raw = match &recorded.rest_txs {
        Some(raw) => raw,
        None if total == 0 => return Ok(Vec::new()),
        None => return Err(missing(view, &format!("the REST transactions of height {height}"))),
    };
    let txs = items(raw).map_err(|e| unreadable(view, height, &e.to_string()))?;
    let whole = offset == 0 && limit >= total;
    if txs.len() != total && !whole {
        // The recording does not show which transactions did not decode, so a part of the block cannot be derived
        // exactly.
        return Err(missing(view, &format!("a page of height {height}, where a transaction did not decode")));
    }
    let page = if whole { 0..txs.len() } else { offset..offset.saturating_add(limit).min(txs.len()) };
    Ok(txs[page].iter().map(|tx| tx.get()).collect())
}

/// The node's own JSON of a recorded transaction, found by its bytes.
fn decode(view: View<'_>, body: &[u8]) -> Result<HttpReply, HttpReply> {
    #[derive(Deserialize)]
    struct Wanted<'a> {
        tx_bytes: &'a str,
    }
    let wanted: Wanted<'_> = serde_json::from_slice(body).map_err(|e| invalid(&e.to_string()))?;
    let bytes = STANDARD.decode(wanted.tx_bytes).map_err(|e| invalid(&format!("tx_bytes: {e}")))?;
    let hash: [u8; 32] = Sha256::digest(&bytes).into();
    let not_recorded = || missing(view, &format!("POST {DECODE} of transaction {}", hex::encode_upper(hash)));
    let (height, index) = view.recording.place_of_tx(&hash).ok_or_else(not_recorded)?;
    let recorded = at(view, height)?;
    let raw = recorded.rest_txs.as_ref().ok_or_else(not_recorded)?;
    let txs = items(raw).map_err(|e| unreadable(view, height, &e.to_string()))?;
    let total = recorded.raw_txs().map_err(|e| unreadable(view, height, &e.to_string()))?.len();
    let tx = txs.get(index).filter(|_| txs.len() == total).ok_or_else(not_recorded)?;
    Ok(ok(&[r#"{"tx":"#, tx.get(), "}"]))
}

fn state(view: View<'_>, request: &Request<Bytes>) -> Result<HttpReply, HttpReply> {
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let height = match request.headers().get(HEIGHT_HEADER) {
        None => None,
        Some(value) => {
            Some(number(HEIGHT_HEADER, value.to_str().unwrap_or("(not ASCII)"))?).filter(|h| *h != 0)
        }
    };
    if height.is_some_and(|h| h > view.shown) {
        return Err(unknown(
            "codespace sdk code 26: invalid height: cannot query with height in the future; please provide a valid height",
        ));
    }
    if let Some(why) = height.and_then(|h| view.no_state(h)) {
        return Err(unknown(&format!("codespace sdk code 18: invalid request: {why}")));
    }
    let method = request.method().as_str();
    if let Some((extension, first)) = view.recording.extension_at(height.unwrap_or(view.shown)) {
        let computed = extension.rest(path, view.state_of(height.unwrap_or(view.shown)));
        let computed = computed.filter(|_| request.method() == Method::GET);
        let found = || view.recording.state().rest_up_to(method, path, first - 1, request.body()).cloned();
        if let Some(RestReply { status, body }) = computed.or_else(|| height.and_then(|_| found())) {
            return Ok(HttpReply::new(StatusCode::from_u16(status).unwrap_or_default(), body));
        }
    }
    if let Some(account) = account(view, request, height) {
        return Ok(account);
    }
    if request.method() == Method::GET {
        let query = request.uri().query().unwrap_or_default();
        let of_modules =
            module_state::answer(view, request.uri().path(), query, height.unwrap_or(view.shown));
        if let Some(answer) = of_modules {
            return Ok(answer);
        }
    }
    let found = view.recording.state().rest(method, path, height, Some(request.body()));
    if found.is_none() && path == move_views::BATCH && request.method() == Method::POST {
        return move_views::batch(view, request, height);
    }
    if let (Some(height), Some(_)) = (height, found)
        && view.state_of(height) < height
    {
        return Ok(absent::rest(view, method, path, request.body(), height - 1));
    }
    if let (Some(height), None) = (height, found)
        && view.recording.is_forked_at(height)
    {
        return Ok(absent::rest(view, method, path, request.body(), view.state_of(height)));
    }
    let found = found.ok_or_else(|| {
        let at = height.map(|h| format!(" at height {h}")).unwrap_or_default();
        let body = String::from_utf8_lossy(request.body());
        missing(view, &format!("{method} {path}{at} {body}"))
    })?;
    let status = StatusCode::from_u16(found.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if path != NODE_INFO || !view.deviations.has(Deviation::WrongChain) {
        return Ok(HttpReply::new(status, found.body.clone()));
    }
    let malformed = |e: &str| missing(view, &format!("a well-formed {path}: {e}"));
    let body = std::str::from_utf8(&found.body).map_err(|e| malformed(&e.to_string()))?;
    let body = byzantine::network(body, "/default_node_info/network", &view.deviations)
        .map_err(|e| malformed(&e))?;
    Ok(HttpReply::new(status, body))
}

/// An account derived from its transactions; `None` if that is impossible, or the reply was recorded.
fn account(view: View<'_>, request: &Request<Bytes>, height: Option<u64>) -> Option<HttpReply> {
    let path = request.uri().path();
    let address = path.strip_prefix(ACCOUNT).filter(|_| request.method() == Method::GET)?;
    let requested = height.unwrap_or(view.shown);
    let account = view.recording.accounts().json(address, requested);
    if account.is_none() || view.recording.state().rest("GET", path, height, None).is_some() {
        return None;
    }
    let account = view.recording.accounts().json(address, view.state_of(requested))?;
    Some(ok(&[&serde_json::json!({ "account": account }).to_string()]))
}

fn in_gateway_form(view: View<'_>, height: &Height) -> Result<GatewayBlock, HttpReply> {
    #[derive(Deserialize)]
    struct Bech32<'a> {
        bech32_prefix: &'a str,
    }
    let prefix = view.recording.state().rest("GET", BECH32, None, None);
    let prefix = prefix.ok_or_else(|| missing(view, &format!("GET {BECH32}")))?;
    let prefix: Bech32<'_> =
        serde_json::from_slice(&prefix.body).map_err(|e| missing(view, &format!("GET {BECH32}: {e}")))?;
    gateway_block(&height.block, prefix.bech32_prefix).map_err(|e| unreadable(view, height.height, &e))
}

fn number(name: &str, text: &str) -> Result<u64, HttpReply> {
    text.parse()
        .map_err(|_| invalid(&format!("type mismatch, parameter: {name}, error: {text:?} is not a number")))
}
