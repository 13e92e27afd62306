//! HTTP server framework: a list of endpoints defines a server; routing, limits and OpenAPI derive from it.
//!
//! # Invariants
//! * This crate knows neither chains nor the store, and is the only one that names hyper's server.
//! * Every request is answered or refused within bounded memory and time.
//!
//! | module | purpose |
//! |---|---|
//! | [`endpoint`] | an API operation as a value: path, parameters, response, handler |
//! | [`schema`] | JSON schemas of responses |
//! | [`call`] | the decoded request of a handler |
//! | [`reply`], [`refusal`] | success and error responses of handlers |
//! | [`router`] | path to endpoint; 404 and 405 |
//! | [`app`] | the request pipeline, without a socket |
//! | [`cors`] | cross-origin resource sharing |
//! | [`openapi`] | the Swagger document |
//! | [`limits`], [`clock`] | all limits of a server, and their clock |
//! | [`health`] | `/healthz` and `/readyz` |
//! | [`meter`] | request metrics |
//! | [`serve`], [`raw`] | an [`app::App`], or any request handler, on a socket |
//! | [`upgrade`] | protocol upgrade of a connection (101) |
//! | [`server`] | a server with its own threads |
//!
//! ```
//! use web::app::App;
//! use web::call::Call;
//! use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
//! use web::refusal::Refusal;
//! use web::reply::Reply;
//! use web::schema::{Field, Kind, Schema};
//!
//! /// The shared state of the handlers.
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
//!     summary: "A greeting by name.",
//!     params: &[Param::path("name", "Whom to greet.")],
//!     response: &GREETING,
//!     handler: Handler::Now(greet),
//!     cache: Freshness::LIST,
//! }]];
//!
//! fn greet(greetings: &Greetings, call: &Call<'_>) -> Result<Reply, Refusal> {
//!     match call.text("name") {
//!         "unknown" => Err(Refusal::not_found("there is no greeting for this name")),
//!         name => Ok(Reply::json(format!(r#"{{"text":"{} {name}"}}"#, greetings.greeting).into_bytes())),
//!     }
//! }
//!
//! let app = App::new(Greetings { greeting: "hello" }, GROUPS)?;
//! assert_eq!(app.get("/greet/you").body().as_ref(), br#"{"text":"hello you"}"#);
//! assert_eq!(app.get("/greet/unknown").status(), 404);
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
