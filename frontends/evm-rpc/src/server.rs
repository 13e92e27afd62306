//! One endpoint: `POST /` with a call or a batch of them; WebSocket messages are the same.
//!
//! # Invariants
//! * All calls of a request that are read from the index see one snapshot, in the share of its client.
//! * Forwarded calls of a batch run beside them, few at once, and delay none of them.
//! * Each call of a batch counts in the rate of its client.
//! * The results of a response have at most [`MAX_RESPONSE`] bytes, and the last one.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use query::evm::history::Standard;
use query::{Indexer, SlowReader};
use tokio::time::timeout;
use web::app::App;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method as HttpMethod};
use web::http_error::HttpError;
use web::json_rpc::{self, Body, Content, Message};
use web::limits::Limits;
use web::limits::share::Share;
use web::openapi::schema::of;
use web::pushes::Pushes;
use web::reply::Reply;
use web::router::RouteError;

use crate::calls::{self, MAX_RESPONSE, Outcome, Step};
use crate::filters::{Context, Filters};
use crate::forward::{Forward, Group};
use crate::methods::{self, Method, Source};
use crate::otterscan::{self, Otterscan, Site};
use crate::params::{self, Value};
use crate::reads::Chain;
use crate::rpc_error::{BUSY, INTERNAL, INVALID_REQUEST, METHOD_MISSING, RpcError};
use crate::subscriptions::{self, Subscriptions};
use crate::{Dialect, Frames, meter};

/// Maximum bytes of a request body, as go-ethereum's server has.
pub const MAX_BODY: usize = 5 << 20;

/// Time for all calls of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which the server itself gives up a request, so that the error of [`TIMEOUT`] arrives.
const HTTP_TIMEOUT: Duration = Duration::from_secs(12);

/// Maximum of open WebSockets, unless there are fewer streams.
const SOCKETS: usize = 1024;

/// Calls of a request that are forwarded at once.
const FORWARDED_AT_ONCE: usize = 16;

/// The media types of go-ethereum's server (`rpc/http.go`).
const MEDIA_TYPES: [&str; 3] = ["application/json", "application/json-rpc", "application/jsonrequest"];

/// The index; empty until there is a database.
pub type Index = Arc<OnceLock<Arc<App<Indexer>>>>;

/// The readiness check; its error is the reason.
pub type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The height of the node, if it is known.
pub type Tip = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// The EVM interface of an index.
#[derive(Clone)]
pub struct EvmRpc {
    index: Index,
    ready: Ready,
    tip: Tip,
    dialect: Dialect,
    frames: Frames,
    otterscan: Option<Arc<Otterscan>>,
    forward: Option<Arc<Forward>>,
    subscriptions: Subscriptions,
    filters: Option<Filters>,
    client: String,
}

/// The endpoints.
pub const ENDPOINTS: &[&[Endpoint<EvmRpc>]] = &[CALLS];

/// The same with those of Otterscan.
const WITH_PAGES: &[&[Endpoint<EvmRpc>]] = &[CALLS, &otterscan::endpoints()];

const CALLS: &[Endpoint<EvmRpc>] = &[Endpoint {
    method: HttpMethod::Post,
    path: "/",
    tag: "EVM",
    summary: "JSON-RPC 2.0 of Ethereum.",
    params: &[],
    response: of::<query::v1::GetStatusResponse>(),
    handler: Handler::Async(post),
    cache: MaxAge::LIST,
}];

impl EvmRpc {
    /// Reads `index`, which is empty until there is a database: until then, the response is 503 with the reason of `ready`.
    /// `version` is that of the program.
    pub fn new(index: Index, ready: Ready, dialect: Dialect, version: &str) -> Self {
        let (tip, client): (Tip, _) = (Arc::new(|| None), format!("cairn/{version}"));
        let (forward, frames, otterscan) = (None, Frames::default(), None);
        let (subscriptions, filters) = (Subscriptions::default(), None);
        Self { index, ready, tip, dialect, frames, otterscan, forward, subscriptions, filters, client }
    }

    /// Sets the height of the node, for `eth_syncing`.
    #[must_use]
    pub fn with_tip(self, tip: Tip) -> Self {
        Self { tip, ..self }
    }

    /// Sets what is forwarded.
    #[must_use]
    pub fn with_forward(self, forward: Option<Forward>) -> Self {
        Self { forward: forward.map(Arc::new), ..self }
    }

    /// Sets which calls Otterscan's methods show.
    #[must_use]
    pub fn with_frames(self, frames: Frames) -> Self {
        Self { frames, ..self }
    }

    /// Sets the pages that `GET` requests get.
    #[must_use]
    pub fn with_otterscan(self, otterscan: Option<Otterscan>) -> Self {
        Self { otterscan: otterscan.map(Arc::new), ..self }
    }

    /// Sets whether clients may open filters, which this process remembers.
    #[must_use]
    pub fn with_filters(self, is_on: bool) -> Self {
        Self { filters: is_on.then(Filters::default), ..self }
    }

    /// Sets when a subscription whose client reads too slowly is ended.
    #[must_use]
    pub fn with_slow_reader(mut self, slow: SlowReader) -> Self {
        self.subscriptions.slow = slow;
        self
    }

    /// The server over it.
    ///
    /// # Errors
    /// None: see [`web::router::Router::new`].
    pub fn app(self) -> Result<App<Self>, RouteError> {
        let ready = Arc::clone(&self.ready);
        let (endpoints, headers) = match &self.otterscan {
            Some(_) => (WITH_PAGES, otterscan::headers()),
            None => (ENDPOINTS, HeaderMap::new()),
        };
        let app = App::new(self, endpoints)?.with_ready(move || ready()).with_headers(headers);
        Ok(app.with_websockets_at(&["/"]).with_error_body(error_body))
    }

    /// The limits of its server, from those of others.
    pub fn limits(limits: Limits) -> Limits {
        Limits { body: MAX_BODY, answer: HTTP_TIMEOUT, streams: limits.streams.min(SOCKETS), ..limits }
    }

    fn chain(&self) -> Chain {
        let (dialect, client, frames) = (self.dialect, self.client.clone(), self.frames);
        Chain { dialect, client, tip: (self.tip)(), frames }
    }

    /// True if calls of `group` are forwarded.
    pub fn forwards(&self, group: Group) -> bool {
        self.forward.as_ref().is_some_and(|forward| forward.has(group))
    }

    /// What is done for a call.
    fn step(&self, message: &Message) -> Step {
        let Content::Call { method: name, params } = &message.content else {
            return Step::Refused(RpcError::new(INVALID_REQUEST, "invalid request"));
        };
        let missing = |label| {
            meter::count(label, "refused");
            Step::Refused(RpcError::method_missing(name))
        };
        let Some(method) = methods::find(name) else { return missing(meter::OTHER) };
        match method.source {
            Source::Index(_, only) if only.is_some_and(|dialect| dialect != self.dialect) => {
                missing(method.name)
            }
            Source::Index(read, _) | Source::Either(read, ..) => {
                match params::read(params.as_deref(), method.params) {
                    Ok(values) => match method.source {
                        Source::Either(_, group, instead) if self.forwards(group) => {
                            Step::Forward(method, Some((instead.params)(&values)))
                        }
                        _ => Step::Read(method, read, values),
                    },
                    Err(error) => {
                        meter::count(method.name, "error");
                        Step::Refused(error)
                    }
                }
            }
            Source::Subscription => Step::Subscription(method, params.clone()),
            Source::Node(group) if self.forwards(group) => Step::Forward(method, params.clone()),
            Source::Node(_) => missing(method.name),
            Source::Filter if self.filters.is_none() => missing(method.name),
            Source::Filter => match params::read(params.as_deref(), method.params) {
                Ok(values) => Step::Filter(method, values),
                Err(error) => {
                    meter::count(method.name, "error");
                    Step::Refused(error)
                }
            },
        }
    }
}

impl Site for EvmRpc {
    fn otterscan(&self) -> Option<&Otterscan> {
        self.otterscan.as_deref()
    }

    fn chain(&self) -> Option<(String, bool)> {
        let view = self.index.get()?.state().evm(self.dialect).ok()?;
        Some((view.cosmos_chain_id().to_owned(), view.token_contracts(Standard::Erc20).is_ok()))
    }
}

/// The body of a request that fails as a whole: that of HTTP is an error of JSON-RPC too.
fn error_body(_: &Parts, error: &HttpError) -> Bytes {
    let code = match error.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => BUSY,
        status if status.is_server_error() => INTERNAL,
        _ => INVALID_REQUEST,
    };
    let mut body = Vec::new();
    calls::write_error(&mut body, json_rpc::NO_ID, &RpcError::new(code, error.message()));
    body.into()
}

fn post<'a>(rpc: &'a EvmRpc, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async move {
        let media_type = call.media_type().unwrap_or_default();
        if !MEDIA_TYPES.iter().any(|known| media_type.eq_ignore_ascii_case(known)) {
            let message = "invalid content type, only application/json is supported\n";
            let body = Bytes::from_static(message.as_bytes());
            let (status, content_type) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "text/plain; charset=utf-8");
            return Ok(Reply { status, content_type, ..Reply::json(body) });
        }
        rpc.reply(call.body(), call.share(), call.pushes()).await
    })
}

impl EvmRpc {
    /// The index, once there is a database.
    ///
    /// # Errors
    /// 503 with the reason, before.
    pub fn index(&self) -> Result<&Arc<App<Indexer>>, HttpError> {
        let reason = || (self.ready)().err().unwrap_or_else(|| "there is no database yet".to_owned());
        self.index.get().ok_or_else(|| HttpError::unavailable(reason()))
    }

    /// How replies are printed.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The reply to the call or the batch in `body`, of a client with this share, in a socket if it has `pushes`.
    ///
    /// # Errors
    /// 503 until there is a database.
    pub async fn reply(
        &self,
        body: &[u8],
        share: Option<&Share>,
        pushes: Option<&Pushes>,
    ) -> Result<Reply, HttpError> {
        let (messages, is_batch) = match json_rpc::read(body) {
            Body::Empty => return Ok(Reply::json(Bytes::new())),
            Body::Refused(refusal) => return Ok(Reply::json(calls::refuse(&refusal))),
            Body::Single(message) => (vec![message], false),
            Body::Batch(messages) => (messages, true),
        };
        let index = self.index()?;
        let steps: Arc<Vec<Step>> = Arc::new(messages.iter().map(|message| self.step(message)).collect());
        if let Some(share) = share {
            share.charge(steps.iter().map(Step::weight).sum::<u32>() - 1);
        }
        let done = timeout(TIMEOUT, outcomes(self, index, (share, pushes), &steps)).await;
        let outcomes = done.unwrap_or_else(|_| steps.iter().map(|_| Err(RpcError::timed_out())).collect());
        Ok(calls::response(&messages, outcomes, is_batch))
    }
}

/// The outcome of each step, in order.
async fn outcomes(
    rpc: &EvmRpc,
    index: &Arc<App<Indexer>>,
    (share, pushes): (Option<&Share>, Option<&Pushes>),
    steps: &Arc<Vec<Step>>,
) -> Vec<Outcome> {
    let reads = async {
        if !steps.iter().any(|step| matches!(step, Step::Read(..))) {
            return Ok(Vec::new());
        }
        let (index, steps, chain) = (Arc::clone(index), Arc::clone(steps), rpc.chain());
        let job = move || calls::read(&index, &chain, &steps);
        match share {
            Some(share) => match share.run(job).await {
                Ok(read) => read.map_err(RpcError::from),
                Err(busy) => Err(RpcError::new(BUSY, busy.message())),
            },
            None => job().map_err(RpcError::from),
        }
    };
    let forwards = async {
        let mut calls = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            if let Step::Forward(method, params) = step {
                calls.push(forward(rpc, index, place, method, params.as_deref()));
            }
        }
        let mut calls = stream::iter(calls).buffer_unordered(FORWARDED_AT_ONCE);
        let (mut done, mut bytes) = (Vec::new(), 0);
        while let Some((place, outcome)) = calls.next().await {
            bytes += outcome.as_ref().map_or(0, Vec::len);
            done.push((place, outcome));
            if bytes > MAX_RESPONSE {
                break;
            }
        }
        done
    };
    let filters = async {
        let mut done = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            if let Step::Filter(method, values) = step {
                done.push((place, filter(rpc, index, share, method, values).await));
            }
        }
        done
    };
    let (reads, forwards, filters) = tokio::join!(reads, forwards, filters);
    let failed = |error: &RpcError| -> Vec<_> { steps.iter().map(|_| Some(Err(error.clone()))).collect() };
    let mut outcomes = reads.unwrap_or_else(|error| failed(&error));
    outcomes.resize(steps.len(), None);
    for (place, outcome) in forwards.into_iter().chain(filters) {
        outcomes[place] = Some(outcome);
    }
    let outcome = |(step, outcome): (&Step, Option<Outcome>)| match step {
        Step::Refused(error) => Err(error.clone()),
        Step::Subscription(method, params) => subscribe(rpc, index, pushes, method, params.as_deref()),
        Step::Read(..) | Step::Forward(..) | Step::Filter(..) => {
            outcome.unwrap_or_else(|| Err(RpcError::too_large()))
        }
    };
    steps.iter().zip(outcomes).map(outcome).collect()
}

/// The outcome of a call that begins or ends a subscription.
fn subscribe(
    rpc: &EvmRpc,
    index: &Arc<App<Indexer>>,
    pushes: Option<&Pushes>,
    method: &'static Method,
    params: Option<&str>,
) -> Outcome {
    let outcome = match (method.name, pushes) {
        ("eth_subscribe", Some(pushes)) => rpc.subscriptions.open(index, rpc.dialect, pushes, params),
        ("eth_subscribe", None) => Err(RpcError::new(METHOD_MISSING, "notifications not supported")),
        (_, pushes) => subscriptions::close(pushes, params),
    };
    meter::count(method.name, if outcome.is_ok() { "ok" } else { "error" });
    outcome
}

/// The outcome of a call about a filter.
async fn filter(
    rpc: &EvmRpc,
    index: &Arc<App<Indexer>>,
    share: Option<&Share>,
    method: &'static Method,
    values: &[Value],
) -> Outcome {
    let begun = Instant::now();
    let outcome = match &rpc.filters {
        Some(filters) => {
            filters.call(Context { index, chain: rpc.chain(), share }, method.name, values).await
        }
        // There are none.
        None => Err(RpcError::method_missing(method.name)),
    };
    meter::observe(method.name, if outcome.is_ok() { "ok" } else { "error" }, begun.elapsed());
    outcome
}

/// The outcome of a call that is forwarded, with its place.
async fn forward(
    rpc: &EvmRpc,
    index: &App<Indexer>,
    place: usize,
    method: &'static Method,
    params: Option<&str>,
) -> (usize, Outcome) {
    let begun = Instant::now();
    let view = || {
        let view = index.state().evm(rpc.dialect)?;
        Ok((view.chain_id()?, view.head()))
    };
    let instead = method.instead();
    let name = instead.map_or(method.name, |instead| instead.name);
    let result = |result| match instead {
        Some(instead) => (instead.result)(result),
        None => result,
    };
    let outcome = match &rpc.forward {
        Some(forward) => forward.call(view, name, params).await.map(result),
        // A group is forwarded only if there is a node.
        None => Err(RpcError::method_missing(method.name)),
    };
    meter::observe(method.name, "forwarded", begun.elapsed());
    (place, outcome)
}
