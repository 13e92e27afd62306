//! Ethereum's JSON-RPC over the index of a recorded chain.

mod decimals;
mod envelope;
mod filters;
mod fixed;
mod forwarding;
mod goldens;
mod sockets;
mod subscriptions;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use evm_rpc::{Dialect, EvmRpc};
use http::request::Parts;
use http::{Request, Response};
use query::Indexer;
use tokio::sync::OnceCell;
use web::app::App;

/// The index of the chain `evm-fees`.
async fn index() -> evm_rpc::Index {
    static INDEX: OnceCell<evm_rpc::Index> = OnceCell::const_new();
    let open = || async {
        let (_, indexer) = crate::evm_reads::index("evm-fees").await;
        Arc::new(OnceLock::from(Arc::new(App::new(indexer, query::ENDPOINTS).unwrap())))
    };
    Arc::clone(INDEX.get_or_init(open).await)
}

/// The interface over an index.
fn over(indexer: Indexer, dialect: Dialect) -> EvmRpc {
    let index = Arc::new(OnceLock::from(Arc::new(App::new(indexer, query::ENDPOINTS).unwrap())));
    EvmRpc::new(index, Arc::new(|| Ok(())), dialect, "0.0.0")
}

/// The interface over the index of `evm-fees`.
async fn rpc(dialect: Dialect) -> EvmRpc {
    EvmRpc::new(index().await, Arc::new(|| Ok(())), dialect, "0.0.0")
}

async fn app(dialect: Dialect) -> App<EvmRpc> {
    rpc(dialect).await.app().unwrap()
}

fn head(method: &str, path: &str) -> Parts {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    request.body(()).unwrap().into_parts().0
}

async fn post(app: &App<EvmRpc>, body: &str) -> Response<Bytes> {
    app.respond_later(&head("POST", "/"), body.as_bytes()).await
}

async fn text(app: &App<EvmRpc>, body: &str) -> String {
    String::from_utf8(post(app, body).await.into_body().to_vec()).unwrap()
}

#[test]
fn the_book_has_a_row_for_each_method() {
    let path = testkit::root().join("docs/src/ethereum.md");
    let book = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = book.split_once("| method | result |").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let written = format!("{before}{}\n{after}", evm_rpc::methods::table());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    } else {
        assert!(book == written, "{} is out of date: UPDATE_GOLDEN=1 writes it", path.display());
    }
}
