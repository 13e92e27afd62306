//! HTTP plumbing: a server is a list of endpoints, and everything else is derived from that list.
//!
//! What must hold: this crate knows no chain and no store; it is the only one that names hyper's server;
//! whatever a client sends is answered or refused within a bound of memory and time.
//!
//! | module | one job |
//! |---|---|
//! | [`endpoint`] | an API operation as a value: path, parameters, answer, handler |
//! | [`schema`] | the JSON objects that endpoints answer with |
//! | [`call`] | what a handler is given |
//! | [`reply`], [`refusal`] | what a handler gives back |
//! | [`router`] | path to endpoint; 404 and 405 |
//! | [`app`] | a request in, a response out, no socket involved |
//! | [`cors`] | which web pages may read the answers |
//! | [`openapi`] | the Swagger document |
//! | [`limits`], [`clock`] | every bound of a server |
//! | [`health`] | `/healthz` and `/readyz` |
//! | [`meter`] | requests counted and timed |
//! | [`serve`], [`raw`] | an [`app::App`], or any function of requests, on a socket |
//! | [`upgrade`] | a connection that goes on as something else than HTTP |
//! | [`server`] | a server with threads of its own |
//!
//! ```
//! use web::app::App;
//! use web::call::Call;
//! use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
//! use web::refusal::Refusal;
//! use web::reply::Reply;
//! use web::schema::{Field, Kind, Schema};
//!
//! /// What the handlers share.
//! struct Greetings {
//!     greeting: &'static str,
//! }
//!
//! static GREETING: Schema =
//!     Schema { name: "Greeting", doc: "A greeting.", fields: &[Field::new("text", Kind::String, "The words.")] };
//!
//! static GROUPS: &[&[Endpoint<Greetings>]] = &[&[Endpoint {
//!     method: Method::Get,
//!     path: "/greet/{name}",
//!     tag: "Greetings",
//!     summary: "A greeting for somebody.",
//!     params: &[Param::path("name", "Whom to greet.")],
//!     response: &GREETING,
//!     handler: Handler::Now(greet),
//!     cache: Freshness::LIST,
//! }]];
//!
//! fn greet(greetings: &Greetings, call: &Call<'_>) -> Result<Reply, Refusal> {
//!     match call.text("name") {
//!         "nobody" => Err(Refusal::not_found("nobody is not here")),
//!         name => Ok(Reply::json(format!(r#"{{"text":"{} {name}"}}"#, greetings.greeting).into_bytes())),
//!     }
//! }
//!
//! let app = App::new(Greetings { greeting: "hello" }, GROUPS)?;
//! assert_eq!(app.get("/greet/you").body().as_ref(), br#"{"text":"hello you"}"#);
//! assert_eq!(app.get("/greet/nobody").status(), 404);
//!
//! let document = web::openapi::document("Greetings", "Says hello.", "1", GROUPS, |_| true);
//! assert_eq!(document["paths"]["/greet/{name}"]["get"]["tags"][0], "Greetings");
//! # Ok::<(), web::router::RouteError>(())
//! ```

pub mod app;
pub mod call;
pub mod clock;
pub mod cors;
pub mod endpoint;
pub mod health;
pub mod limits;
pub mod meter;
pub mod openapi;
pub mod raw;
pub mod refusal;
pub mod reply;
pub mod router;
pub mod schema;
pub mod serve;
pub mod server;
pub mod upgrade;

mod compress;
mod concurrency_limit;
mod encoding;
mod etag;
mod lazy_timeout;
mod percent;
mod query;
mod rate_limit;
mod response_body;
mod service;
mod timeout_stream;
