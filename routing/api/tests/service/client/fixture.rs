//! An HTTP server with the replies of a test, for nodes that no recording has.

use std::future::Future;
use std::net::Ipv4Addr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use web::limits::Limits;
use web::serve::serve_fn;

/// A running server, until it is dropped.
pub(crate) struct Fixture {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Fixture {
    /// Answers `GET` with `rest` of its path and query, or an error of its status, and `POST` as JSON-RPC with the
    /// result `rpc` of the method.
    pub(crate) async fn start(
        rest: impl Fn(&str) -> Result<Value, StatusCode> + Send + Sync + 'static,
        rpc: impl Fn(&str) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::calls(rest, move |ask| rpc(ask["method"].as_str().unwrap())).await
    }

    /// The same, with the result `rpc` of a whole request.
    pub(crate) async fn calls(
        rest: impl Fn(&str) -> Result<Value, StatusCode> + Send + Sync + 'static,
        rpc: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::serve(move |request| {
            let reply = if request.body().is_empty() {
                match rest(&request.uri().to_string()) {
                    Ok(answer) => response(StatusCode::OK, &answer),
                    // Codes of grpc-gateway.
                    Err(status) => {
                        let (code, message) = match status {
                            StatusCode::NOT_IMPLEMENTED => (12, "not there"),
                            // The upgrade module about a module that the chain does not have.
                            StatusCode::INTERNAL_SERVER_ERROR => {
                                (2, "x/upgrade: QueryModuleVersions module x not found: not found")
                            }
                            _ => (5, "not there"),
                        };
                        response(status, &json!({ "code": code, "message": message, "details": [] }))
                    }
                }
            } else {
                let ask: Value = serde_json::from_slice(request.body()).unwrap();
                let result = rpc(&ask);
                response(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": ask["id"], "result": result }))
            };
            std::future::ready(reply)
        })
        .await
    }

    /// Accepts requests and never answers.
    pub(crate) async fn silent() -> Self {
        Self::serve(|_| std::future::pending()).await
    }

    async fn serve<F>(handler: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response<Bytes>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(serve_fn(listener, Limits::default(), handler, std::future::pending()));
        Self { url, task }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn response(status: StatusCode, body: &Value) -> Response<Bytes> {
    let builder = Response::builder().status(status).header("content-type", "application/json");
    builder.body(Bytes::from(body.to_string())).unwrap()
}
