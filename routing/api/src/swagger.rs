//! The OpenAPI document of the service.

use serde_json::Value;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema::Schema;

use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINT_PATH: &str = "/swagger/doc.json";

pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Get,
    path: ENDPOINT_PATH,
    tag: "App",
    summary: "This document.",
    params: &[],
    response: &DOCUMENT,
    handler: Handler::Sync(show),
    cache: MaxAge::RECORD,
}];

static DOCUMENT: Schema = Schema { name: "app.Document", doc: "A Swagger 2.0 document.", fields: &[] };

/// The Swagger 2.0 document of all endpoints.
pub fn document(version: &str) -> Value {
    let description = "Plans transfers of fungible tokens between chains, makes the messages to sign, and follows them. \
                       Holds no key and broadcasts nothing.";
    web::openapi::document("cairn route", description, version, crate::ENDPOINTS, |path| {
        path != ENDPOINT_PATH
    })
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn show(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(document(&service.version).to_string()))
}
