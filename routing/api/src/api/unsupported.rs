//! Known endpoints that this service does not implement, and the health check.

use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema::{ERROR_RESPONSE, Schema};

use crate::errors;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    unsupported(
        "/v2/tx/submit",
        "Broadcasts: never done here. The client broadcasts, then calls /v2/tx/track.",
    ),
    unsupported("/nft", "Messages of NFT transfers: not made here."),
    Endpoint {
        method: Method::Get,
        path: "/health",
        tag: "App",
        summary: "Whether the service is up.",
        params: &[],
        response: &HEALTH,
        handler: Handler::Sync(health),
        cache: MaxAge(0),
    },
];

static HEALTH: Schema = Schema { name: "app.Health", doc: "The text OK.", fields: &[] };

const fn unsupported(path: &'static str, summary: &'static str) -> Endpoint<Service> {
    Endpoint {
        method: Method::Post,
        path,
        tag: "App",
        summary,
        params: &[],
        response: &ERROR_RESPONSE,
        handler: Handler::Sync(refuse),
        cache: MaxAge(0),
    }
}

fn refuse(_: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    Err(errors::unsupported())
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn health(_: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply { content_type: "text/plain", ..Reply::json("OK") })
}
