//! Etherscan's API over the index of a recorded chain, compared with scans of the recorded receipts and traces that share no code
//! with it.

mod calls;
mod creations;
mod decoded;
mod holders;
mod naive;
mod requests;
mod windows;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use etherscan::Etherscan;
use evm_rpc::{Dialect, EvmRpc};
use http::{Request, Response};
use replay::Recording;
use serde_json::Value;
use store::Store;
use testkit::{indexed, recording};
use tokio::sync::OnceCell;
use web::app::App;

pub(crate) use naive::with_dispatched;

/// The interface over the index of a chain.
async fn opened(name: &str) -> App<Etherscan> {
    let played = Arc::new(Recording::open(&recording(name)).unwrap());
    over(indexed::index_for_json_rpc(played, true).await.unwrap())
}

/// The interface over an index.
pub(crate) fn over(store: Arc<dyn Store>) -> App<Etherscan> {
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(app)));
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0.0.0");
    Etherscan::new(rpc).app().unwrap()
}

/// That of the chain `evm-fees`.
async fn fees() -> &'static App<Etherscan> {
    static APP: OnceCell<App<Etherscan>> = OnceCell::const_new();
    APP.get_or_init(|| opened("evm-fees")).await
}

async fn response(app: &App<Etherscan>, target: &str) -> Response<Bytes> {
    let request = Request::builder().uri(target).body(()).unwrap().into_parts().0;
    app.respond_later(&request, b"").await
}

/// The whole reply to `GET /api?{query}`.
pub(crate) async fn reply(app: &App<Etherscan>, query: &str) -> Value {
    let response = response(app, &format!("/api?{query}")).await;
    assert_eq!(response.status(), 200, "{query}: {response:?}");
    serde_json::from_slice(response.body()).unwrap()
}

/// The result of a successful request.
async fn result(app: &App<Etherscan>, query: &str) -> Value {
    let reply = reply(app, query).await;
    assert_eq!((&reply["status"], &reply["message"]), (&"1".into(), &"OK".into()), "{query}: {reply}");
    reply["result"].clone()
}

/// The rows of a list, which may have none.
pub(crate) async fn rows(app: &App<Etherscan>, query: &str) -> Vec<Value> {
    let reply = reply(app, query).await;
    let is_list = reply["status"] == "1" || reply["message"].as_str().unwrap().contains("found");
    assert!(is_list, "{query}: {reply}");
    reply["result"].as_array().unwrap().clone()
}

#[test]
fn the_book_has_a_row_for_each_action() {
    let path = testkit::root().join("docs/src/etherscan.md");
    let book = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = book.split_once("| module | action | needs |").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let written = format!("{before}{}\n{after}", etherscan::actions::table());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    } else {
        assert!(book == written, "{} is out of date: UPDATE_GOLDEN=1 writes it", path.display());
    }
}
