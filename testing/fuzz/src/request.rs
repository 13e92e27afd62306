//! Requests to the indexer over recorded chains: no server errors, pages within their limit, and `previous` is the
//! inverse of `next`.

use std::sync::{Arc, LazyLock};

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use query::Indexer;
use replay::{Options, Recording};
use serde_json::Value;
use store::{MemStore, Store};
use web::app::App;

use crate::input::Input;

/// Maximum number of rows of a page.
const MAX_ROWS: usize = 1_000;

/// The same of an account's movements, which are a table too.
const MAX_TABLE_ROWS: usize = 10_000;

/// The parameters of movements whose rows are searched for, so that no row may be behind a cursor.
const SEARCHES: [&str; 3] = ["kind", "counterparty", "token_id"];

/// Maximum number of parameters of a query string (`web`).
const MAX_PARAMETERS: usize = 128;

const NAMES: [&str; 3] = ["evm-scenario", "move-scenario", "wasm-scenario"];

static STORES: LazyLock<[Arc<dyn Store>; 3]> = LazyLock::new(|| NAMES.map(index));

static APPS: LazyLock<Vec<App<Indexer>>> = LazyLock::new(|| {
    let app = |store: &Arc<dyn Store>| {
        App::new(testkit::indexed::indexer(Arc::clone(store)).unwrap(), query::ENDPOINTS).unwrap()
    };
    STORES.iter().map(app).collect()
});

/// Parameters and their values.
pub const WORDS: &[&str] = &[
    "pagination.key=",
    "pagination.offset=",
    "pagination.limit=",
    "pagination.reverse=",
    "pagination.count_total=",
    "order_by=",
    "token_id=",
    "collection_addr=",
    "is_signer=true",
    "msgs=",
    "msgs=/cosmos.bank.v1beta1.MsgSend",
    "name=",
    "/indexer/ledger/v1/transfers?",
    "/indexer/ledger/v1/transfers/by_token/GAS?",
    "/indexer/ledger/v1/transfers/by_account/0x1?",
    "direction=in,self",
    "kind=transfer",
    "kind=fee,mint",
    "counterparty=0x1",
    "include_fees=true",
    "include_zero=true",
    "from_height=3",
    "to_height=",
    "from_time=2026-11-21T07:00:00Z",
    "to_time=2026-11-21T07:10:00.5%2B01:00",
    "format=csv",
    "token=GAS",
    "token_id",
    "height",
    "false",
    "18446744073709551615",
    "9223372036854775807",
    "-1",
    "%00",
    "%ff",
    "%2F",
    "&",
    "/",
    "\nAccept-Encoding: zstd",
    "\nAccept-Encoding: identity;q=0, *;q=0",
    "\nIf-None-Match: *",
    "\nOrigin: https://a",
];

static LEDGER: schema::index::Index = schema::ledger::LEDGER;

/// A recorded chain, indexed.
///
/// # Panics
/// If no recording has that name.
pub fn store(name: &str) -> Arc<dyn Store> {
    Arc::clone(&STORES[NAMES.iter().position(|other| *other == name).unwrap()])
}

fn index(name: &str) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = testkit::indexed::config(&recording).unwrap();
    let config = ingest::Config { indexes: vec![&LEDGER], ..config };
    runtime
        .block_on(testkit::indexed::index_as(config, recording, Options::default(), Arc::clone(&store)))
        .unwrap();
    store
}

/// Input: a byte for the chain, a byte for the method, and lines: the target, then headers.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let app = &APPS[usize::from(input.byte()) % APPS.len()];
    let methods = [Method::GET, Method::GET, Method::GET, Method::HEAD, Method::OPTIONS, Method::POST];
    let method = methods[usize::from(input.byte()) % methods.len()].clone();
    let text = String::from_utf8_lossy(input.rest());
    let mut lines = text.split('\n');
    let target = lines.next().unwrap_or_default();
    // Hyper rejects invalid targets and headers before our code.
    let Ok(mut request) = Request::builder().method(method.clone()).uri(target).body(()) else {
        return false;
    };
    for line in lines.take(16) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let name = http::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value.trim())) {
            request.headers_mut().append(name, value);
        }
    }
    let parts = request.into_parts().0;
    let response = app.respond(&parts, b"");
    let body = checked(target, &response);
    if let Some(body) = body.filter(|_| method == Method::GET && response.status() == StatusCode::OK) {
        page(app, &parts.uri, &body);
    }
    response.status().is_success()
}

/// The body of a reply, if it is plain JSON.
fn checked(target: &str, response: &Response<bytes::Bytes>) -> Option<Value> {
    // A valid id of a stream may be far above the head of the index.
    let is_ahead = response.status() == StatusCode::SERVICE_UNAVAILABLE && target.contains("/stream/");
    let is_of_type = |wanted: &str| response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == wanted);
    // Errors of a bridge's executor are texts with the status 500.
    let is_executor = target.to_ascii_lowercase().contains("/indexer/bridge/v1/withdrawal")
        && is_of_type("text/plain; charset=utf-8");
    let is_expected = is_ahead || is_executor;
    assert!(is_expected || !response.status().is_server_error(), "{} for {target}", response.status());
    let json = is_of_type("application/json");
    if !json || response.headers().contains_key(CONTENT_ENCODING) {
        return None;
    }
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_else(|e| panic!("{e} for {target}"));
    if response.status().is_client_error() {
        assert!(body["code"].is_u64() && body["message"].is_string(), "{body}");
    }
    Some(body)
}

/// Checks a page of a list: it is within its limit, and the page before the next one is this one.
fn page(app: &App<Indexer>, target: &Uri, body: &Value) {
    let Some(pagination) = body.get("pagination") else { return };
    let shown = rows(body);
    let is_table = target.path().contains("/transfers/by_account/");
    let max = if is_table { MAX_TABLE_ROWS } else { MAX_ROWS };
    assert!(shown.is_some_and(|rows| rows.len() <= max), "{target}");
    let Some(next) = pagination["next_key"].as_str() else { return };
    let Some(following) = go(app, target, next) else { return };
    let query = target.query().unwrap_or_default();
    let is_searched =
        target.path().contains("/transfers") && SEARCHES.iter().any(|name| query.contains(name));
    if is_searched && shown.is_none_or(Vec::is_empty) {
        return;
    }
    assert!(
        is_searched || rows(&following).is_some_and(|rows| !rows.is_empty()),
        "there is a next page of {target}"
    );
    let previous = following["pagination"]["previous_key"].as_str();
    let back = go(app, target, previous.expect("there is a page before the next one"));
    assert_eq!(back.as_ref().and_then(rows), shown, "{target}");
}

/// The rows of a list: its only member apart from `pagination`.
fn rows(body: &Value) -> Option<&Vec<Value>> {
    body.as_object()?.iter().find(|(name, _)| *name != "pagination")?.1.as_array()
}

/// The page of the same list at `key`; `None` if the request has too many parameters.
fn go(app: &App<Indexer>, target: &Uri, key: &str) -> Option<Value> {
    let (path, query) = (target.path(), target.query().unwrap_or_default());
    if query.matches('&').count() + 2 > MAX_PARAMETERS {
        return None;
    }
    // The server uses the first parameter of a name.
    let target = format!("{path}?pagination.key={key}&{query}");
    let response = app.get(&target);
    assert_eq!(response.status(), StatusCode::OK, "{target}");
    Some(checked(&target, &response).expect("a response without Accept-Encoding is not compressed"))
}

/// Every endpoint, with data of the chains.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut targets = Vec::new();
    let account = "0x0000000000000000000000000000000000000001";
    for endpoint in query::ENDPOINTS.iter().copied().flatten() {
        let mut path = endpoint.path.to_owned();
        for (name, value) in [("account", account), ("height", "20"), ("collection_addr", account)] {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        targets.push(path.replace(['{', '}'], ""));
    }
    let lists = [
        "/indexer/block/v1/blocks?pagination.limit=3",
        "/indexer/tx/v1/txs?pagination.limit=2&pagination.reverse=false",
        "/indexer/tx/v1/txs?pagination.offset=5&pagination.limit=2&msgs=cosmos.bank.v1beta1.MsgSend",
        "/indexer/tx/v1/txs/by_height/20?pagination.limit=1",
        "/indexer/tx/v1/evm-txs?pagination.limit=2&pagination.key=AQMAAAAAAAAAAAc",
        "/indexer/tx/v1/evm-internal-txs?pagination.limit=2\nAccept-Encoding: gzip",
        "/indexer/nft/v1/collections?pagination.limit=1",
        "/indexer/ledger/v1/transfers?pagination.limit=2&kind=transfer,mint&from_height=3",
        "/indexer/ledger/v1/transfers?pagination.limit=2&from_time=2026-11-21T07:00:00Z",
        "/indexer/ledger/v1/transfers/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?direction=in&include_fees=true",
        "/indexer/ledger/v1/transfers/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?format=csv&counterparty=0x1",
    ];
    targets.extend(lists.map(str::to_owned));
    let mut seeds = Vec::new();
    for chain in 0_u8..3 {
        seeds.extend(targets.iter().map(|target| [&[chain, 0], target.as_bytes()].concat()));
    }
    seeds.extend(real().into_iter().map(|(chain, target)| [&[chain, 0], target.as_bytes()].concat()));
    seeds
}

/// Lists of existing accounts, collections and tokens.
fn real() -> Vec<(u8, String)> {
    let mut targets = Vec::new();
    for (chain, app) in (0_u8..).zip(APPS.iter()) {
        let get = |target: &str| checked(target, &app.get(target)).unwrap_or_default();
        let collections = get("/indexer/nft/v1/collections?pagination.limit=3");
        let found = collections["collections"].as_array().cloned().unwrap_or_default();
        for collection in &found {
            let Some(address) = collection["object_addr"].as_str() else { continue };
            let tokens = format!("/indexer/nft/v1/tokens/by_collection/{address}?pagination.limit=1");
            for order in ["token_id", "height"] {
                targets.push((chain, format!("{tokens}&order_by={order}")));
            }
            let body = get(&tokens);
            let Some(owner) = body["tokens"][0]["owner_addr"].as_str() else { continue };
            for order in ["token_id", "height"] {
                let list =
                    format!("/indexer/nft/v1/tokens/by_account/{owner}?pagination.limit=1&order_by={order}");
                targets.push((chain, format!("{list}&collection_addr={address}")));
                targets.push((chain, list));
            }
            targets
                .push((chain, format!("/indexer/nft/v1/collections/by_account/{owner}?pagination.limit=1")));
            targets.push((
                chain,
                format!("/indexer/tx/v1/txs/by_account/{owner}?pagination.limit=2&is_signer=true"),
            ));
            targets.push((chain, format!("/indexer/tx/v1/txs/by_account/{owner}?pagination.limit=2")));
            targets.push((chain, format!("/indexer/tx/v1/evm-txs/by_account/{owner}?pagination.limit=2")));
        }
    }
    targets
}
