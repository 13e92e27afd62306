//! A replay node whose answers a test can override.
//!
//! Every request is answered from the recording first; the function of the test may replace the reply.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use node::{Endpoints, Limits, Node};
use replay::Recording;
use replay::answers::{Deviations, HttpReply, Service, View, answer};
use replay::counters::Counters;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use web::serve::serve_fn;

/// A running node. Dropping it closes its sockets.
#[derive(Debug)]
pub struct OverriddenNode {
    urls: [String; Service::ALL.len()],
    requests: Arc<[AtomicU64; Service::ALL.len()]>,
    tasks: JoinSet<()>,
}

/// A request and its recorded reply.
#[derive(Debug)]
pub struct RecordedExchange<'a> {
    /// The service.
    pub service: Service,
    /// The request.
    pub request: &'a Request<Bytes>,
    /// The recorded reply.
    pub answer: HttpReply,
}

impl OverriddenNode {
    /// Plays all of `recording`; `override_answer` may replace each reply.
    pub async fn start(
        recording: Arc<Recording>,
        override_answer: impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
    ) -> Result<Self> {
        let (override_answer, counters) = (Arc::new(override_answer), Arc::new(Counters::default()));
        let (mut urls, mut tasks) = (Vec::new(), JoinSet::new());
        let requests: Arc<[AtomicU64; Service::ALL.len()]> = Arc::default();
        for service in Service::ALL {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            urls.push(format!("http://{}", listener.local_addr()?));
            let (recording, override_answer, counters) =
                (Arc::clone(&recording), Arc::clone(&override_answer), Arc::clone(&counters));
            let requests = Arc::clone(&requests);
            let reply = move |request: Request<Bytes>| {
                requests[service as usize].fetch_add(1, Ordering::Relaxed);
                let (deviations, shown) = (Deviations::default(), recording.last());
                let view =
                    View { recording: &recording, shown, deviations, lagging: &[], counters: &counters };
                let one = |request: &Request<Bytes>| {
                    override_answer(RecordedExchange {
                        service,
                        request,
                        answer: answer(service, view, request),
                    })
                };
                let answered = match calls(&request) {
                    Some(calls) => batch(&calls.iter().map(one).collect::<Vec<_>>()),
                    None => one(&request),
                };
                std::future::ready(response(answered))
            };
            tasks.spawn(serve_fn(listener, web::limits::Limits::default(), reply, std::future::pending()));
        }
        let urls = urls.try_into().ok().context("an address for every service")?;
        Ok(Self { urls, requests, tasks })
    }

    /// Clients for it.
    pub fn clients(&self) -> Result<Node> {
        Ok(Node::new(self.endpoints()?, Limits::default())?)
    }

    /// Its addresses.
    pub fn endpoints(&self) -> Result<Endpoints> {
        let [comet, rest, json_rpc, _executor] = &self.urls;
        let url = |text: &String| text.parse().context("an address of one's own");
        Ok(Endpoints {
            comet: vec![url(comet)?],
            rest: vec![url(rest)?],
            json_rpc: vec![url(json_rpc)?],
            grpc: Vec::new(),
        })
    }

    /// Number of requests to a service; a batch counts as one.
    pub fn requests(&self, service: Service) -> u64 {
        self.requests[service as usize].load(Ordering::Relaxed)
    }

    /// Whether it is running.
    pub fn is_up(&self) -> bool {
        !self.tasks.is_empty()
    }
}

impl RecordedExchange<'_> {
    /// Whether this is the `CometBFT` call `method` about `height`.
    pub fn is_comet(&self, method: &str, height: u64) -> bool {
        let target = self.request.uri().path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        self.service == Service::Comet && target == format!("/{method}?height={height}")
    }

    /// Whether this is the JSON-RPC call `method` with `text` in its parameters.
    pub fn is_rpc(&self, method: &str, text: &str) -> bool {
        let call = self.call();
        self.service == Service::JsonRpc
            && call["method"] == method
            && call["params"].to_string().contains(text)
    }

    /// Replaces the `result` of the reply.
    pub fn with_result(self, result: &Value) -> HttpReply {
        let id = &self.call()["id"];
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        HttpReply { status: StatusCode::OK, body: body.into() }
    }

    /// Replaces the reply by this JSON-RPC error.
    pub fn with_error(self, code: i64, message: &str) -> HttpReply {
        let (id, message) = (&self.call()["id"], Value::from(message));
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#);
        HttpReply { status: StatusCode::OK, body: body.into() }
    }

    /// Applies `change` to the recorded `result`.
    pub fn with_change(self, change: impl FnOnce(&mut Value)) -> HttpReply {
        let mut body: Value = serde_json::from_slice(&self.answer.body).unwrap_or_default();
        change(&mut body["result"]);
        HttpReply { status: self.answer.status, body: body.to_string().into() }
    }

    /// The JSON-RPC call; null for a `GET`.
    fn call(&self) -> Value {
        serde_json::from_slice(self.request.body()).unwrap_or_default()
    }
}

/// The calls of a batch, each as a separate request.
fn calls(request: &Request<Bytes>) -> Option<Vec<Request<Bytes>>> {
    let calls: Vec<Value> = serde_json::from_slice(request.body()).ok()?;
    let alone = |call: &Value| request.clone().map(|_| Bytes::from(call.to_string()));
    Some(calls.iter().map(alone).collect())
}

fn batch(answers: &[HttpReply]) -> HttpReply {
    let bodies: Vec<&[u8]> = answers.iter().map(|answer| &answer.body[..]).collect();
    HttpReply { status: StatusCode::OK, body: [b"[", &bodies.join(&b","[..])[..], b"]"].concat().into() }
}

fn response(answer: HttpReply) -> Response<Bytes> {
    let mut response = Response::new(answer.body);
    *response.status_mut() = answer.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
