//! HTTP server framework: a list of endpoints defines a server; routing, limits and OpenAPI derive from it.
//!
//! # Invariants
//! * This crate depends on neither chains nor the store.
//! * Every request is answered or rejected within bounded memory and time.
//!
//! | module | purpose |
//! |---|---|
//! | [`endpoint`] | an API operation as a value: path, parameters, response, handler |
//! | [`openapi::schema`] | JSON schemas of responses |
//! | [`call`] | the decoded request of a handler |
//! | [`event`] | server-sent events, the responses of stream handlers |
//! | [`pushes`] | messages of a WebSocket besides its responses |
//! | [`reply`], [`http_error`] | success and error responses of handlers |
//! | [`router`] | path to endpoint; 404 and 405 |
//! | [`app`] | the request pipeline, without a socket |
//! | [`cors`] | cross-origin resource sharing |
//! | [`openapi`], [`openapi::swagger2`] | the OpenAPI 3.1 document, and its Swagger 2.0 form |
//! | [`openapi::api_page`] | the interactive page over the document |
//! | [`limits`], [`clock`] | all limits of a server, and their clock |
//! | [`limits::lane`], [`mod@limits::share`], [`bodies`] | what a client may use at once: threads for cheap and for expensive work, bytes of bodies |
//! | [`limits::priority`] | lower priorities of threads |
//! | [`health`] | `/healthz` and `/readyz` |
//! | [`meter`] | request metrics |
//! | [`json_rpc`] | the envelope of JSON-RPC 2.0 |
//! | [`mounts`] | several apps behind one socket, by path prefix or host name |
//! | [`serve`] | an [`app::App`], or any request handler, on a socket |
//! | `serve::websocket` | WebSocket messages as requests |
//! | [`serve::http2`] | a request handler on a socket, over HTTP/2 |
//! | [`serve::server`] | a server with its own threads |
//!
//! ```
//! use web::app::App;
//! use web::call::Call;
//! use web::endpoint::{Endpoint, MaxAge, Handler, Method, Param};
//! use web::http_error::HttpError;
//! use web::openapi::About;
//! use web::reply::Reply;
//! use web::openapi::schema::of;
//!
//! /// The shared state of the handlers.
//! struct Greetings {
//!     greeting: &'static str,
//! }
//!
//! /// A greeting.
//! #[derive(schemars::JsonSchema)]
//! struct Greeting {
//!     /// The words.
//!     text: String,
//! }
//!
//! static GROUPS: &[&[Endpoint<Greetings>]] = &[&[Endpoint {
//!     method: Method::Get,
//!     path: "/greet/{name}",
//!     tag: "Greetings",
//!     summary: "A greeting by name.",
//!     params: &[Param::path("name", "The name to greet.")],
//!     response: of::<Greeting>(),
//!     handler: Handler::Sync(greet),
//!     cache: MaxAge::LIST,
//! }]];
//!
//! fn greet(greetings: &Greetings, call: &Call<'_>) -> Result<Reply, HttpError> {
//!     match call.text("name") {
//!         "unknown" => Err(HttpError::not_found("there is no greeting for this name")),
//!         name => Ok(Reply::json(format!(r#"{{"text":"{} {name}"}}"#, greetings.greeting).into_bytes())),
//!     }
//! }
//!
//! let app = App::new(Greetings { greeting: "hello" }, GROUPS)?;
//! assert_eq!(app.get("/greet/you").body().as_ref(), br#"{"text":"hello you"}"#);
//! assert_eq!(app.get("/greet/unknown").status(), 404);
//!
//! let examples = serde_json::Value::Null;
//! let about = About { title: "Greetings", description: "Says hello.", version: "1", names: &[], examples: &examples };
//! let document = web::openapi::document(&about, GROUPS, |_| true);
//! assert_eq!(document["paths"]["/greet/{name}"]["get"]["tags"][0], "Greetings");
//! # Ok::<(), web::router::RouteError>(())
//! ```

pub mod app;
pub mod bodies;
pub mod call;
pub mod clock;
pub mod cors;
pub mod endpoint;
pub mod event;
pub mod health;
pub mod http_error;
pub mod json_rpc;
pub mod limits;
pub mod meter;
pub mod mounts;
pub mod openapi;
pub mod pushes;
pub mod reply;
pub mod router;
pub mod serve;

mod compress;
mod encoding;
mod etag;
mod percent;
mod query;
