//! The endpoints: a path for each method, and `POST /` with a call or a batch of them.
//!
//! # Invariants
//! * All calls of a request see one snapshot, in the share of its client. Each call of a batch counts in the client's rate.
//! * The results of a response have at most [`MAX_RESPONSE`] bytes, and the last one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use http::request::Parts;
use query::Indexer;
use web::app::App;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method as HttpMethod, Param, Type};
use web::http_error::HttpError;
use web::json_rpc::{self, Body, Content, Message, NO_ID, Refusal};
use web::limits::{Limits, lane};
use web::openapi::schema::of;
use web::reply::Reply;
use web::router::RouteError;

use crate::methods::{self, BLOCK_SEARCH, HEALTH, METHODS, Method, TX, TX_SEARCH};
use crate::params::{self, Value};
use crate::rpc_error::RpcError;

/// Maximum bytes of a request body, as CometBFT's server has.
pub const MAX_BODY: usize = 1_000_000;

/// Bytes of results after which the rest of a batch is refused.
const MAX_RESPONSE: usize = 25_000_000;

/// Time after which the server gives up a request.
const TIMEOUT: Duration = Duration::from_secs(12);

/// Characters of the name of an unknown method in an error, at most.
const SHOWN: usize = 100;

/// The id of a response to `GET`.
const URI_ID: &str = "-1";

/// The index; empty until there is a database.
pub type Index = Arc<OnceLock<Arc<App<Indexer>>>>;

/// The readiness check; its error is the reason.
pub type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// CometBFT's interface of an index.
#[derive(Clone)]
pub struct CometRpc {
    index: Index,
    ready: Ready,
}

const fn endpoint(
    method: HttpMethod,
    path: &'static str,
    summary: &'static str,
    params: &'static [Param],
    handler: Handler<CometRpc>,
) -> Endpoint<CometRpc> {
    let (tag, response) = ("CometBFT", of::<query::v1::GetStatusResponse>());
    Endpoint { method, path, tag, summary, params, response, handler, cache: MaxAge::LIST }
}

/// The endpoint of a method that is refused with the reason, by `GET` as by `POST`.
const fn unserved(
    path: &'static str,
    handler: fn(&CometRpc, &Call<'_>) -> Result<Reply, HttpError>,
) -> Endpoint<CometRpc> {
    endpoint(HttpMethod::Get, path, "Refused with the reason.", &[], Handler::Sync(handler))
}

const fn text(name: &'static str, doc: &'static str) -> Param {
    Param::query(name, Type::String, doc)
}

const QUERY: Param = text("query", "Conditions in quotes, joined by AND.");
const PROVE: Param = text("prove", "Whether transactions have proofs, true or false.");
const PAGE: Param = text("page", "The number of the page, from 1.");
const PER_PAGE: Param = text("per_page", "Transactions of a page, at most 100.");
const ORDER_BY: Param = text("order_by", "\"asc\" or \"desc\".");

/// The endpoints.
pub const ENDPOINTS: &[&[Endpoint<CometRpc>]] = &[&[
    endpoint(
        HttpMethod::Get,
        "/tx",
        "A transaction by its hash.",
        &[text("hash", "Hex after 0x."), PROVE],
        Handler::Sync(|rpc, call| rpc.get(call, &TX)),
    ),
    endpoint(
        HttpMethod::Get,
        "/tx_search",
        "Transactions by their events.",
        &[QUERY, PROVE, PAGE, PER_PAGE, ORDER_BY],
        Handler::Sync(|rpc, call| rpc.get(call, &TX_SEARCH)),
    ),
    endpoint(
        HttpMethod::Get,
        "/block_search",
        "Blocks by their events.",
        &[QUERY, PAGE, PER_PAGE, ORDER_BY],
        Handler::Sync(|rpc, call| rpc.get(call, &BLOCK_SEARCH)),
    ),
    endpoint(
        HttpMethod::Get,
        "/health",
        "That the process answers.",
        &[],
        Handler::Sync(|rpc, call| rpc.get(call, &HEALTH)),
    ),
    unserved("/status", |_, _| Ok(refused_method("status"))),
    unserved("/block", |_, _| Ok(refused_method("block"))),
    unserved("/block_results", |_, _| Ok(refused_method("block_results"))),
    endpoint(HttpMethod::Post, "/", "JSON-RPC 2.0 of CometBFT.", &[], Handler::Async(post)),
]];

impl CometRpc {
    /// Reads `index`, which is empty until there is a database: until then, the response is 503 with the reason of `ready`.
    pub fn new(index: Index, ready: Ready) -> Self {
        Self { index, ready }
    }

    /// The server over it.
    ///
    /// # Errors
    /// None: see [`web::router::Router::new`].
    pub fn app(self) -> Result<App<Self>, RouteError> {
        let ready = Arc::clone(&self.ready);
        Ok(App::new(self, ENDPOINTS)?.with_ready(move || ready()).with_error_body(error_body))
    }

    /// The limits of its server, from those of others.
    pub fn limits(limits: Limits) -> Limits {
        Limits { body: MAX_BODY, answer: TIMEOUT, ..limits }
    }

    /// The index, once there is a database.
    fn index(&self) -> Result<&Arc<App<Indexer>>, HttpError> {
        let reason = || (self.ready)().err().unwrap_or_else(|| "there is no database yet".to_owned());
        self.index.get().ok_or_else(|| HttpError::unavailable(reason()))
    }

    /// The reply to `GET`: a node sends 500 with every error.
    fn get(&self, call: &Call<'_>, method: &'static Method) -> Result<Reply, HttpError> {
        let index = self.index()?;
        let values = params::of_uri(method.params, |name| call.first(name));
        let step = values.map(|values| (method, values));
        let outcome = read(index, &[step])?.pop().unwrap_or_else(|| Err(too_large()));
        let status = if outcome.is_ok() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        let mut body = Vec::new();
        write_response(&mut body, URI_ID, &outcome);
        Ok(Reply { status, ..Reply::json(body) })
    }
}

/// A method with its values, or why there is none.
type Step = Result<(&'static Method, Vec<Value>), RpcError>;

/// The result of a call as JSON, or its error.
type Outcome = Result<Vec<u8>, RpcError>;

/// The outcomes of calls, until they are too large.
fn read(index: &App<Indexer>, steps: &[Step]) -> Result<Vec<Outcome>, HttpError> {
    let view = index.state().comet()?;
    let (mut outcomes, mut bytes) = (Vec::with_capacity(steps.len()), 0);
    for step in steps {
        if bytes > MAX_RESPONSE {
            break;
        }
        let outcome = match step {
            Ok((method, values)) => (method.read)(&view, values).map_err(RpcError::from),
            Err(error) => Err(error.clone()),
        };
        if lane::is_over() {
            // Dropped: the request runs again in another lane.
            break;
        }
        bytes += outcome.as_ref().map_or(0, Vec::len);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn step(message: &Message) -> Step {
    let Content::Call { method: name, params } = &message.content else {
        return Err(RpcError::invalid_request("it is no call of JSON-RPC 2.0"));
    };
    let method = methods::find(name).ok_or_else(|| missing(name))?;
    params::of_json(method.params, params.as_deref()).map(|values| (method, values))
}

/// The reply to `GET` of a method that is not served.
fn refused_method(name: &str) -> Reply {
    let mut body = Vec::new();
    write_response(&mut body, URI_ID, &Err(missing(name)));
    Reply { status: StatusCode::INTERNAL_SERVER_ERROR, ..Reply::json(body) }
}

fn missing(name: &str) -> RpcError {
    if let Some((_, reason)) = methods::UNSERVED.iter().find(|(known, _)| *known == name) {
        return RpcError::method_missing(format!(
            "`{name}` is not served here, because {reason}: ask a node"
        ));
    }
    let shown: String = name.chars().take(SHOWN).collect();
    let served = METHODS.map(|method| format!("`{}`", method.name)).join(", ");
    RpcError::method_missing(format!("`{shown}` is not served here, but {served}: ask a node"))
}

fn post<'a>(rpc: &'a CometRpc, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async move {
        let (messages, is_batch) = match json_rpc::read(call.body()) {
            Body::Empty => return Ok(refuse(&Refusal::NoJson)),
            Body::Refused(refusal) => return Ok(refuse(&refusal)),
            Body::Single(message) => (vec![message], false),
            Body::Batch(messages) => (messages, true),
        };
        let index = Arc::clone(rpc.index()?);
        let steps: Vec<Step> = messages.iter().map(step).collect();
        let job = move || read(&index, &steps);
        let outcomes = match call.share() {
            Some(share) => {
                share.charge(u32::try_from(messages.len()).unwrap_or(u32::MAX) - 1);
                share.run(job).await??
            }
            None => job()?,
        };
        Ok(response(&messages, outcomes, is_batch))
    })
}

/// The response with the outcome of each message that is no notification.
fn response(messages: &[Message], outcomes: Vec<Outcome>, is_batch: bool) -> Reply {
    let mut out = Vec::new();
    let mut outcomes = outcomes.into_iter();
    for message in messages {
        let outcome = outcomes.next().unwrap_or_else(|| Err(too_large()));
        let Some(id) = &message.id else { continue };
        if is_batch {
            out.push(if out.is_empty() { b'[' } else { b',' });
        }
        write_response(&mut out, id, &outcome);
    }
    if is_batch && !out.is_empty() {
        out.push(b']');
    }
    Reply::json(out)
}

fn too_large() -> RpcError {
    RpcError::internal(format!(
        "the results before have more than {MAX_RESPONSE} bytes: send fewer calls at once"
    ))
}

/// The response to a body that is not read.
fn refuse(refusal: &Refusal) -> Reply {
    let (id, error) = match refusal {
        Refusal::NoJson => (NO_ID, RpcError::no_json()),
        Refusal::EmptyBatch => (NO_ID, RpcError::invalid_request("the batch has no calls")),
        Refusal::LargeBatch { id } => {
            let most = json_rpc::MAX_BATCH;
            (id.as_str(), RpcError::invalid_request(&format!("the batch has more than {most} calls")))
        }
    };
    let mut body = Vec::new();
    write_response(&mut body, id, &Err(error));
    Reply { status: StatusCode::INTERNAL_SERVER_ERROR, ..Reply::json(body) }
}

fn write_response(out: &mut Vec<u8>, id: &str, outcome: &Outcome) {
    match outcome {
        Ok(result) => json_rpc::write_result(out, id, result),
        Err(error) => {
            let mut object = Vec::new();
            error.write(&mut object);
            json_rpc::write_error(out, id, &object);
        }
    }
}

/// The body of a request that fails as a whole.
fn error_body(_: &Parts, error: &HttpError) -> Bytes {
    let mut body = Vec::new();
    write_response(&mut body, NO_ID, &Err(RpcError::from(error)));
    body.into()
}
