//! Ethereum's JSON-RPC over the index of a recorded chain.

mod envelope;
mod goldens;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use evm_rpc::{Dialect, EvmRpc};
use http::request::Parts;
use http::{Request, Response};
use replay::{Options, Recording};
use schema::evm_block::BLOCKS;
use schema::logs::LOGS;
use store::MemStore;
use testkit::{indexed, recording};
use tokio::sync::OnceCell;
use web::app::App;

/// The index of the chain `evm-fees`.
async fn index() -> evm_rpc::Index {
    static INDEX: OnceCell<evm_rpc::Index> = OnceCell::const_new();
    let open = || async {
        let store = Arc::new(MemStore::new());
        let recording = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
        let mut config = indexed::config(&recording).unwrap();
        config.indexes = vec![&BLOCKS, &LOGS];
        indexed::index_as(config, recording, Options::default(), Arc::clone(&store) as _).await.unwrap();
        let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
        Arc::new(OnceLock::from(Arc::new(app)))
    };
    Arc::clone(INDEX.get_or_init(open).await)
}

/// The interface over it.
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
