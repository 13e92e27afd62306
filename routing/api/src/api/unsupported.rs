//! Known endpoints that this service does not implement, and the health check.

use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema::{ERROR_RESPONSE, Text};

use crate::errors;
use crate::service::Service;

const NFT: &str = "/nft";

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    unsupported(NFT, "Messages of NFT transfers: not made here."),
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

static HEALTH: Text = Text { content_type: "text/plain", doc: "The text OK." };

/// True for the endpoints that only refuse.
pub(crate) fn has(path: &str) -> bool {
    path == NFT
}

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
    Ok(Reply { content_type: HEALTH.content_type, ..Reply::json("OK") })
}
