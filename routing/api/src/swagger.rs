//! The documents of the service: OpenAPI 3.1, its Swagger 2.0 form, and the page over them.

use serde_json::Value;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::http_error::HttpError;
use web::openapi::About;
use web::openapi::api_page;
use web::openapi::schema::{Document, Object};
use web::reply::Reply;

use crate::api::submit::SUBMIT;
use crate::service::Service;

const SWAGGER_PATH: &str = "/swagger/doc.json";
const OPENAPI_PATH: &str = "/openapi.json";

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    document_at(OPENAPI_PATH, "The OpenAPI 3.1 document.", &OPENAPI, Handler::Sync(openapi)),
    document_at(SWAGGER_PATH, "The document in the form of Swagger 2.0.", &SWAGGER, Handler::Sync(swagger)),
];

/// The page over the document.
pub(crate) const PAGE: &[Endpoint<Service>] = &api_page::endpoints();

static OPENAPI: Document = Document("An OpenAPI 3.1 document.");
static SWAGGER: Document = Document("A Swagger 2.0 document.");

/// Requests and answers over the recorded chains of `registry/example`.
const EXAMPLES: &str = include_str!("examples.json");

const fn document_at(
    path: &'static str,
    summary: &'static str,
    response: &'static dyn Object,
    handler: Handler<Service>,
) -> Endpoint<Service> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "App",
        summary,
        params: &[],
        response,
        handler,
        cache: MaxAge::RECORD,
    }
}

/// The OpenAPI 3.1 document of all endpoints.
pub fn document(version: &str) -> Value {
    of(version, |_| true)
}

/// The same in the form of Swagger 2.0.
pub fn swagger_document(version: &str) -> Value {
    web::openapi::swagger2::document(&document(version))
}

/// The document of a service: one that relays nothing does not offer it.
fn served(service: &Service) -> Value {
    of(&service.version, |path| service.config.submit || path != SUBMIT)
}

fn of(version: &str, keep: impl Fn(&str) -> bool) -> Value {
    let about = About {
        title: "cairn route",
        description: "Plans transfers of fungible tokens between chains, makes the messages to sign, and follows them. \
                      Holds no key, and broadcasts nothing but transactions that a client signed, if it is switched on.",
        version,
        names: &[],
        examples: &examples(),
    };
    web::openapi::document(&about, crate::ENDPOINTS, |path| keep(path) && !api_page::has(path))
}

fn examples() -> Value {
    serde_json::from_str(EXAMPLES).unwrap_or_default()
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn openapi(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(served(service).to_string()))
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn swagger(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(web::openapi::swagger2::document(&served(service)).to_string()))
}
